"""A task's specification as it is kept in ``task.json``, so that its id is enough to go on with it.

Secrets are not kept: a command that holds one is kept masked, and has to be said again.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from loki.action.checks.check import Check
from loki.action.task import TaskSpec
from loki.base.error import UsageError
from loki.base.secret import mask_secrets
from loki.decision.budget import Budget
from loki.memory.task_record import KeptBudget, KeptCheck, TaskRecord

MASKED = "masked"

SPECIFIED = frozenset(field.name for field in fields(TaskSpec))
"""Fields of a task's record that say what is to be achieved, and within which limits."""


def kept_command(words: Sequence[str]) -> dict[str, Any]:
    """A command as it is kept; ``masked`` is true where it held a secret and so cannot be run again.

    Example:
        >>> kept_command(["pytest", "-q"])
        {'command': ['pytest', '-q']}
        >>> kept_command(["agent", "--password", "hunter2hunter2"])["masked"]
        True
    """
    joined = shlex.join(words)
    masked = mask_secrets(joined)
    if masked == joined:
        return {"command": list(words)}
    return {"command": [masked], MASKED: True}


def record_of(spec: TaskSpec) -> TaskRecord:
    """What is kept of a specification, secrets masked; nothing of how the task stands."""
    asked = {name: _plain(getattr(spec, name)) for name in SPECIFIED - {"checks", "budget"}}
    checks = tuple(map(_kept_check, spec.checks))
    return TaskRecord(**asked, checks=checks, budget=KeptBudget(**asdict(spec.budget)))


def spec_of(record: TaskRecord, checks: Sequence[Check] | None = None) -> TaskSpec:
    """The specification in a task's record.

    Args:
        record: what is kept of a task.
        checks: used instead of those in the record; None: those in the record.

    Raises:
        UsageError: a check held a secret, or the record cannot be read.
    """
    flaws = [one for one in record.flaws if one.split(".")[0].split(":")[0] in SPECIFIED]
    try:
        if flaws or not record:  # fewer checks, or no budget, would be another task
            raise ValueError(flaws[0] if flaws else "nothing is kept")
        asked = {name: getattr(record, name) for name in SPECIFIED - {"checks", "budget"}}
        limits = record.budget or KeptBudget()
        return TaskSpec(
            **asked,
            checks=tuple(map(_check_of, record.checks) if checks is None else checks),
            budget=Budget(limits.attempts, limits.seconds, limits.tokens, limits.cost),
        )
    except ValueError as error:
        raise UsageError(
            f"what is kept of task {record.id} is damaged ({error}): begin it anew with `loki run`"
        ) from error


def _kept_check(check: Check) -> KeptCheck:
    said = {name: _plain(getattr(check, name)) for name in _CHECK}
    return KeptCheck(**{**said, "timeout": check.timeout, **_command(check.command)})


def _command(words: Sequence[str]) -> dict[str, Any]:
    kept = kept_command(words)
    return {**kept, "command": tuple(kept["command"])}


def _plain(value: Any) -> Any:
    return mask_secrets(value) if isinstance(value, str) else value


_CHECK = ("kind", "name", "pattern", "expected", "description")


def _check_of(kept: KeptCheck) -> Check:
    if kept.masked:
        raise UsageError(
            f"the check `{' '.join(kept.command)}` holds a secret, which loki does not keep: "
            "say the checks again (--check)"
        )
    said = {name: getattr(kept, name) for name in _CHECK}
    said["name"] = said["name"] or " ".join(kept.command)
    return Check(kept.command, **said, timeout=kept.timeout)
