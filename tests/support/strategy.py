"""A strategy's situation in a real project: the check runs, and what fails is recognized."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loki.action.changes.executor import Executor
from loki.action.changes.journal import Journal
from loki.action.checks.check import Check
from loki.action.checks.check_runner import CheckRunner
from loki.action.strategies.strategy_context import StrategyContext
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet


def write(root: Path, **files: str) -> Path:
    """A project of these files; ``__`` in a name is a slash, ``_dot_`` the dot of its extension."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def situation(
    root: Path,
    check: str | None = None,
    *,
    output: str = "",
    command: str | None = None,
    failure: Failure | None = None,
    changed: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> StrategyContext:
    """What a strategy gets after a check failed.

    Args:
        root: the project.
        check: a command that is run, and fails.
        output: instead of a check: what a tool printed.
        command: what printed it.
        failure: instead of both.
        changed, allowed: as `Situation` has them.
    """
    patterns = PatternSet.default()
    runner, executor = CheckRunner(root, patterns), Executor(root, Journal(None, root), patterns)
    made = Check.of(check) if check else None
    if made is not None:
        result = runner.run_one(made)
        assert result.failure is not None, f"{check} passed"
        failure, output = result.failure, result.output
    if failure is None:
        failure = recognize(output, command, 1, root=str(root), patterns=patterns)
    return StrategyContext(
        root,
        failure,
        made,
        patterns,
        executor.run,
        lambda again: runner.run_one(again).passed,
        output,
        changed,
        allowed,
    )
