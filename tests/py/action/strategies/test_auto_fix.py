"""auto_fix runs what mends such a failure, in order, until the check passes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loki.action.processes.process import CommandResult
from loki.action.strategies.auto_fix import auto_fix
from loki.action.strategies.strategy_context import StrategyContext, StrategyNotApplicable
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet
from support.auto_fix import ran
from support.strategy import situation, write


def test_the_projects_own_command_comes_before_the_tools(tmp_path: Path) -> None:
    write(tmp_path, Makefile="fix:\n\ttrue\n")
    assert ran("./ruff check src", "src/cart.py", tmp_path) == [
        ("make", "fix"),
        ("./ruff", "check", "--fix", "src"),
    ]


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_the_projects_own_command_is_for_its_own_language(tmp_path: Path, language: str) -> None:
    write(tmp_path, package_dot_json='{"scripts": {"lint:fix": "eslint --fix ."}}')
    (tmp_path / "npm").write_text("#!/bin/sh\n")
    commands = ran("./ruff check src", "src/cart.py", tmp_path, language)
    own = [command for command in commands if "lint:fix" in command]
    assert bool(own) is (language == "javascript" and shutil.which("npm") is not None)


def test_a_fix_is_for_the_files_of_the_check(tmp_path: Path) -> None:
    commands = ran("./eslint src test", "src/my cart.js", tmp_path)
    assert commands == [("./eslint", "--fix", "src", "test")]


def test_without_the_file_that_it_needs_it_is_not_run(tmp_path: Path) -> None:
    patterns = PatternSet.loads(
        "version: 2\npatterns:\n  - {id: style, description: d, strategy: auto_fix,\n"
        "     fix_command: 'touch {file}', signals: [{literal: a rule is broken}]}\n"
    )
    failure = Failure.of("a rule is broken", pattern="style", patterns=patterns)
    made = StrategyContext(
        tmp_path, failure, None, patterns, lambda _: (CommandResult(0), ()), lambda _: True
    )
    with pytest.raises(StrategyNotApplicable, match="needs a file"):
        auto_fix(made)


def test_a_missing_program_is_no_fix(tmp_path: Path) -> None:
    write(tmp_path, justfile="fix:\n  true\n")
    if shutil.which("just"):
        pytest.skip("just is installed here: it would be run")
    with pytest.raises(StrategyNotApplicable, match="cannot run 'just'"):
        auto_fix(situation(tmp_path, output="it is broken"))
