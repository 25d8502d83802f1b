"""What is installed where a project's checks run; nothing of the project is executed.

Nothing of the project is executed; the program is asked once, in a folder that holds nothing of it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from loki.action.processes import process
from loki.action.processes.command_line import find_program, leading_assignments
from loki.action.processes.sandbox import read_only
from loki.action.strategies.dependency.manifest_requirements import (
    Ecosystem,
    Requirement,
    ecosystems,
    plain_name,
    satisfies,
)
from loki.base.error import LokiError
from loki.base.toml import tomllib
from loki.recognition.fix import program_name

# --- The Python that a project's checks run in: which program it is, and what it says of itself -------

SECONDS = 10.0
"""Until an interpreter that does not answer is given up; chosen, not measured."""

_ASK = """
import json, sys
print(json.dumps({
    "path": [p for p in sys.path if p],
    "builtin": sorted(set(sys.builtin_module_names) | set(getattr(sys, "stdlib_module_names", ()))),
    "version": list(sys.version_info[:2]),
}))
"""


def interpreter_of_project(root: Path) -> str | None:
    """The program that a project's checks would run as ``python``; None where there is none.

    Of the project's own environment, else of the one that is active, else the one on the ``PATH``.
    """
    on_path = (found for name in _python().interpreters if (found := find_program(name, root)))
    return own_interpreter(root) or next(on_path, None)


def own_interpreter(root: Path) -> str | None:
    """That of the project's own environment, or of the one that is active; None: there is neither."""
    active = os.environ.get("VIRTUAL_ENV")
    places = [
        *(root / name for name in _python().environments),
        *([Path(active)] if active else []),
    ]
    whole = (place for place in places if (place / "pyvenv.cfg").is_file())
    folders = (place / folder for place in whole for folder in ("bin", "Scripts"))
    return next((program for folder in folders for program in interpreter_beside(folder)), None)


def interpreter_beside(folder: Path) -> Iterator[str]:
    """The interpreters in a folder."""
    paths = (folder / name for name in _python().interpreters)
    return (str(path) for path in paths if path.is_file())


def ask_interpreter(program: str) -> dict[str, Any] | None:
    """An interpreter's ``path``, ``builtin`` modules and ``version``; None where it does not answer."""
    with suppress(TimeoutError):  # of a machine at load: the next one may have its answer
        return _ask(program, interpreter_stamp(program))
    return None


def interpreter_stamp(path: str) -> float:
    """When a file or folder was changed; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=8)
def _ask(program: str, _stamp: float) -> dict[str, Any] | None:
    # PYTHONPATH counts, as it does for checks; the current folder does not.
    try:
        # It runs what stands in the project's environment, which a test may have written.
        box = read_only()
        finished = process.run((program, "-c", _ASK), cwd="/", timeout=SECONDS, box=box)
        if finished.timed_out:
            raise TimeoutError
        said = json.loads(finished.stdout) if finished.is_success else None
    except TimeoutError:
        raise
    except (LokiError, ValueError, OSError):
        return None
    return said if isinstance(said, dict) else None


@cache
def _python() -> Ecosystem:
    return next(known for known in ecosystems() if known.interpreters)


# --- What is installed where a project's checks run; nothing of the project is executed ---------------

MAX_DISTRIBUTIONS = 5_000
MAX_LOCK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Environment:
    """Where a check finds its packages.

    Args:
        known: the ecosystem.
        root: the project's folder.
        command: the check's words; () where none ran.
        near: a file of the project that needs the package, or None.
    """

    known: Ecosystem
    root: Path
    command: tuple[str, ...] = ()
    near: str | None = None

    @property
    def name(self) -> str:
        """What to call it."""
        if self.known.interpreters:
            return self.interpreter or "no interpreter"
        return _PLACES.get(self.known.name, "the environment")

    def version(self, package: str) -> str | None:
        """The version of a package that is installed; "" where it has none; None where it is not."""
        look = {
            "python": self._of_python,
            "npm": self._of_npm,
            "cargo": self._of_cargo,
            "go": self._of_go,
        }
        return look[self.known.name](package)

    def fits(self, version: str, requirement: Requirement) -> bool | None:
        """Whether an installed version is what a manifest requires; None where nobody can tell."""
        if self.known.name == "python":
            try:
                return SpecifierSet(requirement.wanted).contains(version, prereleases=True)
            except (InvalidSpecifier, InvalidVersion):
                return _poetry(version, requirement.wanted)
        if self.known.name in {"npm", "cargo"}:
            bare = "^" if self.known.name == "cargo" else "="
            return satisfies(version, requirement.wanted, bare=bare)
        return None

    # --- Python -----------------------------------------------------------------------------------

    @cached_property
    def interpreter(self) -> str | None:
        """The interpreter that the check runs in, else the project's, else that of the machine."""
        words = leading_assignments(self.command)[1]
        program = find_program(words[0], self.root) if words else None
        if program and program_name(program) in map(program_name, self.known.interpreters):
            return program
        found = next(interpreter_beside(Path(program).parent), None) if program else None
        return found or interpreter_of_project(self.root)

    @cached_property
    def distributions(self) -> dict[str, importlib.metadata.Distribution]:
        """Installed distributions by their plain name."""
        found: dict[str, importlib.metadata.Distribution] = {}
        for distribution in importlib.metadata.distributions(path=list(self._folders())):
            name = distribution.metadata["Name"]
            if name and len(found) < MAX_DISTRIBUTIONS:
                found.setdefault(plain_name(name, "python"), distribution)
        return found

    def _folders(self) -> Iterable[str]:
        said = ask_interpreter(self.interpreter) if self.interpreter else None
        return [str(folder) for folder in said["path"]] if said else []

    def provider(self, module: str) -> str | None:
        """The installed distribution that has a module, by its own files; None where none has."""
        top = module.split(".", maxsplit=1)[0]
        for distribution in self.distributions.values():
            said = distribution.read_text("top_level.txt")
            if top in (said or "").split():
                return str(distribution.metadata["Name"])
        for distribution in self.distributions.values():
            files = distribution.read_text("RECORD") or ""
            if re.search(rf"^{re.escape(top)}(?:/|\.(?:py|pyi|so|\w+\.so),)", files, re.MULTILINE):
                return str(distribution.metadata["Name"])
        return None

    def _of_python(self, package: str) -> str | None:
        found = self.distributions.get(plain_name(package, "python"))
        return None if found is None else str(found.version or "")

    # --- others -----------------------------------------------------------------------------------

    def _of_npm(self, package: str) -> str | None:
        folder = (self.root / (self.near or "")).parent if self.near else self.root
        for place in (folder, *folder.parents):
            manifest = place / "node_modules" / package / "package.json"
            if manifest.is_file():
                return _version_in(manifest)
            if place == self.root:
                break
        return None

    def _of_cargo(self, package: str) -> str | None:
        text = _text(self.root / "Cargo.lock")
        try:
            packages = tomllib.loads(text).get("package") or []
        except ValueError:
            return None
        wanted = plain_name(package, "cargo")
        return next(
            (
                str(p.get("version", ""))
                for p in packages
                if plain_name(p["name"], "cargo") == wanted
            ),
            None,
        )

    def _of_go(self, package: str) -> str | None:
        """The version that go.sum has a hash of."""
        versions = re.findall(
            rf"^{re.escape(package)} (\S+?)(?:/go\.mod)? ", _go_sum(self.root), re.MULTILINE
        )
        return versions[-1] if versions else None


_PLACES = {"npm": "node_modules", "cargo": "Cargo.lock", "go": "go.sum"}


def _poetry(version: str, wanted: str) -> bool | None:
    """Carets and tildes, which Poetry has and Python's own standard does not."""
    if not re.search(r"[\^~*]", wanted):
        return None
    numbers = [*version.split("+", maxsplit=1)[0].split("."), "0", "0"][:3]
    return satisfies(".".join(numbers), wanted)


def _version_in(manifest: Path) -> str:
    try:
        return str(json.loads(_text(manifest)).get("version") or "")
    except (ValueError, AttributeError, RecursionError):
        return ""


def _go_sum(root: Path) -> str:
    return _text(root / "go.sum")


def _text(path: Path) -> str:
    try:
        if os.path.getsize(path) > MAX_LOCK_BYTES:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
