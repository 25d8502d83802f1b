"""What tests of action/strategies/test_auto_fix of both tiers share."""

from __future__ import annotations

from pathlib import Path

from loki.action.checks.check import Check
from loki.action.processes.process import CommandResult
from loki.action.strategies.auto_fix import auto_fix
from loki.action.strategies.strategy_context import StrategyContext
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet


def ran(
    check: str, path: str | None, root: Path, language: str | None = None
) -> list[tuple[str, ...]]:
    """The fix commands that are run for a check that fails whatever is done."""
    commands = []

    def run(command: tuple[str, ...]) -> tuple[CommandResult, tuple[str, ...]]:
        commands.append(command)
        return CommandResult(0), ("changed",)

    for program in ("eslint", "ruff"):
        (root / program).write_text("#!/bin/sh\n")
        (root / program).chmod(0o755)
    failure = Failure(message="a rule is broken", path=path, language=language)
    patterns = PatternSet.default()
    auto_fix(StrategyContext(root, failure, Check.of(check), patterns, run, lambda _: False))
    return commands
