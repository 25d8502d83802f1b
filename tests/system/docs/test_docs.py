"""What the documentation shows is true: its examples run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import loki
from support.paths import ROOT
from support.project import RIGHT, make_project

MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(loki.__path__, "loki.")
    if not name.startswith(("loki.__main__", "loki.cli.demo.project"))
    and name != "loki._core"
    and not name.endswith(".supervisor")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


README = blocks(ROOT / "README.md", "python")


@pytest.mark.parametrize("number", range(len(README)))
def test_the_readmes_python_runs(tmp_path: Path, number: int) -> None:
    project = make_project(tmp_path / "calc")
    code = README[number].replace("python -m pytest", f"{sys.executable} -m pytest")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if "calc.py" in code:
        assert "success" in done.stdout
        assert (project / "calc.py").read_text() == RIGHT


def test_the_readmes_patterns_say_what_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text("utf-8")
    (definition,) = re.findall(r"```yaml\n(version: 2\n.*?)```", text, re.DOTALL)
    Path(".loki").mkdir()
    Path(".loki/failure-patterns.yml").write_text(definition, "utf-8")
    (session,) = re.findall(r"```console\n(\$ loki patterns .*?)```", text, re.DOTALL)
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert len(commands) > 2
    for command, expected in commands:
        words = shlex.split(command)
        if words[0] == "loki":
            words[:1] = [sys.executable, "-m", "loki"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.stdout == expected


RESILIENCE = ROOT / "docs" / "resilience.md"


def test_the_examples_of_resilience_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for code in blocks(RESILIENCE, "python"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, code + done.stderr
    (session,) = blocks(RESILIENCE, "console")  # of the file that an example has written
    for command, expected in re.findall(
        r"^\$ loki (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE
    ):
        words = [sys.executable, "-m", "loki", *shlex.split(command)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        pattern = re.escape(expected).replace("…", ".+")
        assert re.fullmatch(pattern, done.stdout), done.stdout + done.stderr


def test_ticks_of_ours_are_proved() -> None:
    text = RESILIENCE.read_text("utf-8")
    ours = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| ")]
    assert len([cell for cell in ours if cell.startswith("[✓](../tests/")]) > 40
    assert not [cell for cell in ours if "✓" in cell and not cell.startswith("[✓](../tests/")]
    for path, name in re.findall(r"\]\((\.\./tests/[^#)]+)#(\w+)\)", text):
        test = rf"def {name}\(" if path.endswith(".py") else rf"TEST(?:_P)?\(\w+, {name}\)"
        assert re.search(test, (RESILIENCE.parent / path).read_text("utf-8")), f"{path}: {name}"


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_documentation_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http:", "https:")):
            path, _, anchor = target.partition("#")
            assert (page.parent / path).exists(), target
            if anchor and not path:
                heads = re.findall(r"^#+ (.*)", text, re.MULTILINE)
                assert anchor in [
                    re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in heads
                ]


def test_files_that_the_documentation_names_exist() -> None:
    package = ROOT / "python" / "loki"
    files = {path.as_posix() for path in package.rglob("*")}
    folders = {path.name for path in package.rglob("*") if path.is_dir()}
    for page in (
        "README.md",
        "AGENTS.md",
        *(f"docs/design/{p.name}" for p in (ROOT / "docs/design").iterdir()),
    ):
        text = (ROOT / page).read_text("utf-8")
        for path in re.findall(r"`((?:cpp|bindings|python|tests|docs)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{page} names {path}"
        for path in re.findall(r"`([\w-]+(?:/[\w-]+)+\.(?:py|yml))`", text):
            if path.partition("/")[0] in folders and not (ROOT / path).exists():
                assert any(file.endswith(f"/{path}") for file in files), f"{page} names {path}"


def test_agents_md_is_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) <= 120
