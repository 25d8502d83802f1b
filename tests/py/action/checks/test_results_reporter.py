"""Results per test from real runners, asked for in the way that their tool files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.checks import check_runner
from loki.action.processes.command_line import split_command_line


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("go test -race ./...", "go test -json -race ./..."),
        ("go test -json .", "go test -json ."),
        ("go build ./...", "go build ./..."),
        ("cargo test -q", "cargo test"),
        ("cargo build -q", "cargo build -q"),
        ("cargo test --lib -- --quiet cart", "cargo test --lib -- cart"),
        ("jest -i", "jest -i --json --outputFile=/r/jest.report"),
        ("eslint .", "eslint ."),
    ],
)
def test_how_a_command_is_asked(project: Path, command: str, asked: str) -> None:
    words = check_runner.ask_for_results(split_command_line(command), project, Path("/r")).command
    assert " ".join(words) == asked


def test_pytest_is_asked_by_its_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it also works behind `make test`."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    options = check_runner.ask_for_results(("make", "test"), project, Path("/r")).environment[
        "PYTEST_ADDOPTS"
    ]
    assert options.split()[:2] == ["-x", "--junitxml=/r/pytest.report"]
