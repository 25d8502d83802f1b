"""A task's specification as it is kept in ``task.json``, so that its id is enough to go on with it.

Secrets are not kept: a command that holds one is kept masked, and has to be said again.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from loki.action.checks.check import DEFAULT_TIMEOUT, Check
from loki.action.task import TaskSpec
from loki.base.error import UsageError
from loki.base.secret import mask_secrets
from loki.decision.budget import Budget
from loki.memory.document_validation import FLAWS

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


def to_dict(spec: TaskSpec) -> dict[str, Any]:
    """JSON-able form of a specification."""
    data = {field.name: _plain(getattr(spec, field.name)) for field in fields(spec)}
    checks = [_check_to_dict(check) for check in spec.checks]
    return {**data, "checks": checks, "budget": asdict(spec.budget)}


def from_dict(record: Mapping[str, Any], checks: Sequence[Check] | None = None) -> TaskSpec:
    """The specification in a task's record.

    Args:
        record: what `to_dict` gave, perhaps with more in it.
        checks: used instead of those in the record; None: those in the record.

    Raises:
        UsageError: a check held a secret, or the record cannot be read.
    """
    if flaws := [
        one for one in record.get(FLAWS, ()) if one.split(".")[0].split(":")[0] in SPECIFIED
    ]:
        # Fewer checks, or no budget, would be another task.
        raise UsageError(
            f"what is kept of task {record.get('id')} is damaged ({flaws[0]}): begin it anew with "
            "`loki run`"
        )
    try:
        found = tuple(map(_check_from_dict, record["checks"])) if checks is None else tuple(checks)
        names = {field.name for field in fields(TaskSpec)} & record.keys()
        budget = Budget(**record.get("budget") or {})
        values = {name: record[name] for name in names}
        scope = tuple(map(str, record.get("scope") or ()))
        return TaskSpec(**{**values, "checks": found, "budget": budget, "scope": scope})
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"what is kept of task {record.get('id')} cannot be read ({error!r}): begin it anew with "
            "`loki run`"
        ) from error


def _check_to_dict(check: Check) -> dict[str, Any]:
    data = {key: _plain(value) for key, value in check.to_dict().items()}
    return {**data, "timeout": check.timeout, **kept_command(check.command)}


def _plain(value: Any) -> Any:
    return mask_secrets(value) if isinstance(value, str) else value


def _check_from_dict(data: Mapping[str, Any]) -> Check:
    if data.get(MASKED):
        raise UsageError(
            f"the check `{' '.join(data['command'])}` holds a secret, which loki does not keep: "
            "say the checks again (--check)"
        )
    return Check.from_dict(data, float(data.get("timeout", DEFAULT_TIMEOUT)))
