"""Runs what a recipe says, in a scratch folder, and gives what was printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from samples.recipe import Recipe, Sample

# What the sample says instead of the scratch folder and the home.
ROOT, HOME = "/srv/shop", "/home/ana"
_SECONDS = 900
_DROPPED = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TRAVIS", "FORCE_COLOR", "MAKEFLAGS", "MAKELEVEL")


@dataclass(frozen=True, slots=True)
class Printed:
    """What a sample's command printed.

    Attributes:
        text: its output and errors as they came, paths of the scratch folder replaced.
        exit_code: of the shell.
    """

    text: str
    exit_code: int


class Unprepared(Exception):
    """What must be there before a sample is missing."""


def place(recipe: Recipe, cellar: Path) -> Path:
    """Installs a recipe's programs.

    Args:
        recipe: whose.
        cellar: where tools are kept between runs.

    Returns:
        the tools' folder.

    Raises:
        Unprepared: a program is missing, or the installation failed.
    """
    folder = cellar / recipe.tool
    stamp = folder / ".installed"
    if recipe.install and (not stamp.is_file() or stamp.read_text() != recipe.install):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done = _run(recipe.install, folder, folder, os.environ["HOME"])
        if done.exit_code:
            raise Unprepared(f"installation failed:\n{done.text[-2000:]}")
        stamp.write_text(recipe.install)
    path = _environment(folder, os.environ["HOME"])["PATH"]
    if missing := [p for p in recipe.programs if not shutil.which(p, path=path)]:
        raise Unprepared(f"not on PATH: {', '.join(missing)}")
    return folder


def cook(recipe: Recipe, sample: Sample, folder: Path) -> Printed:
    """Runs one sample.

    Raises:
        Unprepared: its preparation failed.
    """
    # Some tools leave a process behind that still writes into the home.
    scratch_folder = tempfile.TemporaryDirectory(prefix="loki-sample-", ignore_cleanup_errors=True)
    with scratch_folder as scratch:
        root, home = Path(scratch) / "shop", Path(scratch) / "home"
        for place in (root, home):
            place.mkdir()
        for name, content in {**recipe.files, **sample.files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        if sample.prepare:
            # Caches of package managers are the user's own: preparing is no part of the sample.
            done = _run(sample.prepare, root, folder, os.environ["HOME"])
            if done.exit_code:
                raise Unprepared(f"preparation of {sample.name!r} failed:\n{done.text[-2000:]}")
        printed = _run(sample.command, root, folder, str(home), sample.environment)
        text = _neutral(printed.text, {root: ROOT, home: HOME, folder: "/opt/tools"})
        return Printed(_cut(text, sample), printed.exit_code)


def _environment(folder: Path, home: str) -> dict[str, str]:
    own = [folder / "bin", folder / ".venv" / "bin", folder / "node_modules" / ".bin"]
    kept = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    path = os.pathsep.join([*(str(p) for p in own), kept.get("PATH", "")])
    caches = Path(os.environ["HOME"])
    return {
        # Toolchains that live in the user's home are found there although the sample's home is another.
        "CARGO_HOME": str(caches / ".cargo"),
        "RUSTUP_HOME": str(caches / ".rustup"),
        "GOPATH": str(caches / "go"),
        "GOCACHE": str(caches / ".cache" / "go-build"),
        **kept,
        "HOME": home,
        "PATH": path,
        "TOOLS": str(folder),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "100",
    }


def _run(
    command: str, cwd: Path, folder: Path, home: str, extra: dict[str, str] | None = None
) -> Printed:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env={**_environment(folder, home), **(extra or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
        check=False,
    )
    return Printed(done.stdout.decode("utf-8", "replace"), done.returncode)


def _neutral(text: str, places: dict[Path, str]) -> str:
    for place, name in places.items():
        for spelling in {str(place), os.path.realpath(place)}:
            text = text.replace(spelling, name)
    text = text.replace(os.environ["HOME"] + "/", HOME + "/")
    # No sample names the registries or mirrors of the machine that made it.
    return re.sub(r"(?<=https://)[\w.-]+:?\d*(?=/(?:simple|pypi)/)", "pypi.org", text)


def _cut(text: str, sample: Sample) -> str:
    lines = text.splitlines(keepends=True)
    first = sample.first - 1 if sample.first > 0 else max(0, len(lines) + sample.first)
    last = sample.last if sample.last > 0 else len(lines) + sample.last + 1
    return "".join(lines[first:last])
