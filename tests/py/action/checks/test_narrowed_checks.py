"""Test commands, told which files to test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loki.action.checks.check_runner import Narrowed
from loki.action.processes.command_line import split_command_line

FILES = ["a/test_x.py", "a/b/test_y.py"]


@pytest.fixture
def manifest(project: Path) -> Path:
    scripts = {"test": "jest --ci", "unit": "npm run test"}
    (project / "package.json").write_text(json.dumps({"scripts": scripts}))
    return project


def narrowed(command: str, root: Path) -> Narrowed:
    found = Narrowed.of(split_command_line(command), root)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("command", "paths", "expected"),
    [
        ("pytest -q tests", FILES, "pytest -q a/test_x.py a/b/test_y.py"),
        ("pytest -k sum -n 4 tests/test_z.py::test_a", FILES[:1], "pytest -n 4 a/test_x.py"),
        (
            "A=1 /v/bin/python3.11 -m pytest",
            FILES[:1],
            "A=1 /v/bin/python3.11 -m pytest a/test_x.py",
        ),
        ("poetry run pytest -x", FILES[:1], "poetry run pytest -x a/test_x.py"),
        (
            "go test -run TestA ./...",
            ["m_test.go", "a/x_test.go", "a/y_test.go"],
            "go test ./. ./a",
        ),
        ("npx jest -t adds src", ["a.test.js"], "npx jest --runTestsByPath a.test.js"),
        ("npm test", ["a.test.js"], "npm test -- --runTestsByPath a.test.js"),
        ("npm run unit", ["a.test.js"], "npm run unit -- -- --runTestsByPath a.test.js"),
        ("vitest run --silent", ["a.test.ts"], "vitest run --silent a.test.ts"),
    ],
)
def test_the_command_for_some_files(
    manifest: Path, command: str, paths: list[str], expected: str
) -> None:
    assert " ".join(narrowed(command, manifest).for_files(paths)) == expected


@pytest.mark.parametrize("command", ["make test", "cargo test", "pytest-x", "go build ./..."])
def test_what_cannot_be_told(manifest: Path, command: str) -> None:
    assert Narrowed.of(split_command_line(command), manifest) is None


@pytest.mark.parametrize(
    ("command", "selective"),
    [
        ("pytest tests", False),
        ("pytest tests/test_a.py::test_b", True),
        ("pytest -k x", True),
        ("pytest --deselect=x", True),
        ("go test ./...", False),
        ("go test -run=TestA ./...", True),
        ("npx vitest run -t adds", True),
    ],
)
def test_a_command_that_picks_single_tests(manifest: Path, command: str, selective: bool) -> None:
    assert narrowed(command, manifest).is_selective is selective


def test_the_files_that_hold_tests(manifest: Path) -> None:
    paths = ["test_a.py", "x/b_test.py", "x/a.py", "conftest.py", "a.test.js", "x/__tests__/b.js"]
    assert narrowed("pytest", manifest).tests(paths) == ["test_a.py", "x/b_test.py"]
    assert narrowed("npm test", manifest).tests(paths) == ["a.test.js", "x/__tests__/b.js"]


def test_too_many_files_run_everything(manifest: Path) -> None:
    many = [f"test_{number}.py" for number in range(501)]
    assert narrowed("pytest -q", manifest).for_files(many) == ("pytest", "-q")
