"""The command that auto_fix runs."""

from pathlib import Path

import pytest

from loki.action.check import Check
from loki.action.process import Finished
from loki.action.strategy import CannotHelp, Situation, auto_fix
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet


def ran(check: str, path: str | None, tmp_path: Path) -> tuple[str, ...]:
    """The fix command that is run for a check that failed with an error in a file."""
    commands = []

    def run(command: tuple[str, ...]) -> tuple[Finished, tuple[str, ...]]:
        commands.append(command)
        return Finished(0), ("changed",)

    failure = Failure(message="a rule is broken", path=path)
    auto_fix(
        Situation(tmp_path, failure, Check.of(check), PatternSet.default(), run, lambda _: True)
    )
    return commands[0]


def test_a_fix_that_takes_a_file_gets_the_failing_one(tmp_path: Path) -> None:
    assert ran("eslint src test", "src/my cart.js", tmp_path) == (
        "eslint",
        "--fix",
        "src/my cart.js",
    )


def test_a_fix_for_the_same_files_gets_what_the_check_got(tmp_path: Path) -> None:
    assert ran("ruff check src", "src/cart.py", tmp_path) == ("ruff", "check", "--fix", "src")


def test_without_the_file_that_it_needs_it_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(CannotHelp, match="needs a file"):
        ran("eslint src", None, tmp_path)
