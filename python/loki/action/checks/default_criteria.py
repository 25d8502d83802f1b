"""Success criteria of a task that names none: those of its type, by the project's own commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loki.action.checks.check import DEFAULT_TIMEOUT, PARSES, Check
from loki.action.checks.command_detection import Command
from loki.action.processes.command_line import split_command_line, why_not_runnable
from loki.recognition.pattern import Criterion

BY_PERSON = frozenset({"security"})
"""Kinds of task whose criteria a person judges where no reviewer does."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a task has to fulfil.

    Attributes:
        checks: commands, in the order of the criteria, then what somebody judges.
        notes: a sentence for each command: where it was found.
        warnings: a sentence for each criterion that nobody can check.
    """

    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def default_criteria(
    kind: str,
    criteria: Sequence[Criterion],
    commands: Mapping[str, Command],
    root: Path,
    *,
    has_reviewer: bool = False,
    with_builds: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
) -> Criteria:
    """The checks for a task of a kind.

    Args:
        kind: of the task.
        criteria: what the pattern file says of tasks of this kind.
        commands: the project's own, by kind of check.
        root: the project's folder.
        has_reviewer: there is a reviewer agent.
        with_builds: criteria of kind build count.
        timeout: seconds that a command may take.

    Example:
        >>> criteria = [Criterion("tests_pass", "test"), Criterion("lint_clean", "lint")]
        >>> commands = {"test": Command("test", ("true",), "Makefile: test")}
        >>> found = default_criteria("bug_fix", criteria, commands, Path("/"))
        >>> [check.name for check in found.checks], found.warnings
        (['true'], ("criterion 'lint_clean' is not checked: no command was found for it",))
    """
    checks: list[Check] = []
    notes, warnings = [], []
    for criterion in criteria:
        if criterion.type == "build" and not with_builds:
            continue
        if criterion.type == "syntax" and not criterion.command:
            checks.append(Check((), "syntax", PARSES, timeout))
            notes.append(f"syntax check: {PARSES} (what the task changes, by loki itself)")
            continue
        found, source = _command(criterion, commands, timeout)
        problem = why_not_runnable(found.command, root) if found else None
        if found is not None and problem is None:
            if found.command not in [check.command for check in checks]:
                checks.append(found)
                notes.append(f"{found.kind} check: {found.name} ({source})")
            continue
        judged = _judged(criterion, kind, has_reviewer=has_reviewer)
        if judged is not None:
            checks.append(judged)
        else:
            why = problem or "no command was found for it"
            warnings.append(f"criterion {criterion.name!r} is not checked: {why}")
    checks.sort(key=lambda check: check.is_judged)
    return Criteria(tuple(checks), tuple(notes), tuple(warnings))


def _command(
    criterion: Criterion, commands: Mapping[str, Command], timeout: float
) -> tuple[Check | None, str]:
    """(The check by the criterion's own command or the project's, where it was found)."""
    if criterion.command:
        words, source = split_command_line(criterion.command), f"criterion {criterion.name}"
    elif criterion.type in commands:
        words, source = commands[criterion.type].words, commands[criterion.type].source
    else:
        return None, ""
    check = Check(words, criterion.type, " ".join(words), timeout)
    expected = criterion.expected if criterion.command and criterion.type == "custom" else None
    return replace(check, expected=expected or ""), source


def _judged(criterion: Criterion, kind: str, *, has_reviewer: bool) -> Check | None:
    said = criterion.description or criterion.name.replace("_", " ")
    if has_reviewer:
        return Check((), "custom", criterion.name, description=said)
    if kind in BY_PERSON:
        return Check((), "approval", criterion.name, description=said)
    return None
