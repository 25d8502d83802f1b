"""One pass of the loop over a task, as it is kept."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from loki.recognition.failure import Failure

logger = logging.getLogger("loki")

HEAD, TAIL = 500, 1500
"""Characters kept of a command's output: its first and its last."""

Result = str
"""``success``, ``failed``, ``interrupted``, ``unverified`` or ``drift``."""

DRIFT = "drift"
"""Result of an attempt whose proposal left its task: it was not applied, and counts for no retry."""


def shorten(text: str) -> str:
    """Output as it is kept: the first 500 and the last 1,500 characters.

    Example:
        >>> len(shorten("x" * 10_000)) < 2_100
        True
    """
    if len(text) <= HEAD + TAIL:
        return text
    return f"{text[:HEAD]}\n… {len(text) - HEAD - TAIL} characters left out …\n{text[-TAIL:]}"


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """What a check did.

    Attributes:
        name: name of the check; kind: lint, type, test, build, syntax or command.
        passed: it ran and exited with 0.
        exit_code: None where it was ended by a signal or its time-out.
        duration_ms: milliseconds; output: shortened.
        other: fields that a newer version wrote; kept.
    """

    name: str
    kind: str
    command: str
    passed: bool
    exit_code: int | None
    duration_ms: int
    output: str = ""
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        data = {name: getattr(self, name) for name in _CHECK_FIELDS}
        return _joined(data, self.other)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CheckRecord:
        """What `to_dict` gave, or a newer version's record; what is missing has a plain value.

        Raises:
            ValueError: a field has the wrong shape.
        """
        known, other = sort_out(data, CHECK_SHAPES, "check")
        get = known.get
        return cls(
            get("name", ""),
            get("kind", "command"),
            get("command", ""),
            get("passed", False),
            get("exit_code"),
            get("duration_ms", 0),
            get("output", ""),
            other,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt's record: one JSON line.

    Attributes:
        attempt: its number in the task's life, 1 or more.
        timestamp: when it began, ISO 8601 UTC.
        action: what the agent says it did.
        result: success, failed, interrupted, unverified or drift.
        error: message of the failure, or None.
        pattern_matched: id of the failure's pattern, or None.
        strategy_used: the strategy chosen in answer to this attempt's failure, or None.
        duration_ms: from asking the agent to the end of the checks, in milliseconds.
        files_modified: paths relative to the project.
        execution: which execution of the task it belongs to, 1 or more.
        phase: the phase that failed, or "" where none did.
        infrastructure: infrastructure failed, not the work.
        failure: the failure's own fields, or None.
        fingerprint, signature, recognizer_version: of the failure, as they were at the time; see
            `recognized`.
        confidence: of the pattern's match, 0 to 1; None where nothing failed.
        decision: action, rule and reason of what was decided.
        checks, validation: what the checks and the gates said.
        regression: what the regression check said, or None where it had no say: ``ran`` and
            ``skipped`` (bool), ``regressions`` (how many tests), ``fixed`` (bool: those that an
            earlier attempt of the execution caused are gone).
        progress: ``unmended``, how many tests failed or were missing after it, and
            ``fewest_before``, the fewest of the execution until then; None where nobody counted.
        commands: what the change's commands did.
        findings: rationalizations and red flags in what the agent said: each with ``id`` and
            ``quote``, and ``evidence`` where what was recorded contradicts it.
        agent, model, tokens, cost: who answered, and what it took; cost in the agent's currency.
        agent_confidence: the agent's own, 0 to 1, or None.
        delay_ms: how long was waited before it, in milliseconds.
        branch, commit: where git stood, or None.
        other: fields that a newer version wrote; kept.
    """

    attempt: int
    timestamp: str
    action: str
    result: Result
    error: str | None = None
    pattern_matched: str | None = None
    strategy_used: str | None = None
    duration_ms: int = 0
    files_modified: tuple[str, ...] = ()
    execution: int = 1
    phase: str = ""
    infrastructure: bool = False
    failure: Mapping[str, Any] | None = None
    fingerprint: str | None = None
    signature: str | None = None
    recognizer_version: int | None = None
    confidence: float | None = None
    decision: Mapping[str, Any] | None = None
    checks: tuple[CheckRecord, ...] = ()
    validation: Mapping[str, Any] | None = None
    regression: Mapping[str, Any] | None = None
    progress: Mapping[str, Any] | None = None
    commands: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    agent: str = ""
    agent_confidence: float | None = None
    model: str | None = None
    tokens: int | None = None
    cost: float | None = None
    delay_ms: int = 0
    branch: str | None = None
    commit: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        # Not `dataclasses.asdict`, which copies all that tools printed.
        data = {name: getattr(self, name) for name in _FIELDS}
        data["checks"] = [check.to_dict() for check in self.checks]
        return _joined(data, self.other)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Attempt:
        """An attempt from what `to_dict` gave, or a newer version's record.

        Raises:
            ValueError: it names no attempt, or a field has the wrong shape.
        """
        values, other = sort_out(data, SHAPES, "attempt record")
        missing = [name for name in REQUIRED if name not in values]
        if missing:
            raise ValueError(f"not an attempt record: it has no {missing[0]}")
        if values["attempt"] < 1:
            raise ValueError(f"not an attempt record: attempt is {values['attempt']}")
        values["files_modified"] = tuple(map(str, values.get("files_modified", ())))
        for name in ("commands", "findings"):
            values[name] = tuple(one for one in values.get(name, ()) if isinstance(one, Mapping))
        if validation := values.get("validation"):
            values["validation"] = {
                name: value
                for name, value in validation.items()
                if name not in LISTED or isinstance(value, (list, tuple))
            }
        values["checks"] = tuple(CheckRecord.from_dict(c) for c in values.get("checks", ()))
        return cls(**values, other=other)

    def recognized(self) -> Failure | None:
        """The failure, fingerprinted anew where another version of recognition kept it.

        Nothing of it is computed before somebody asks. What cannot be read is told and passed over.
        """
        try:
            return Failure.from_dict(self.failure) if self.failure else None
        except ValueError as error:
            logger.warning("attempt %d of %s: %s", self.attempt, self.timestamp, error)
            return None


_FIELDS = tuple(entry.name for entry in fields(Attempt) if entry.name != "other")
_CHECK_FIELDS = tuple(entry.name for entry in fields(CheckRecord) if entry.name != "other")
REQUIRED = ("attempt", "timestamp", "action", "result")

_TEXT, _WHOLE, _NUMBER = (str,), (int,), (int, float)
SHAPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("timestamp", "action", "result", "error", "phase", "agent", "model"), _TEXT),
    **dict.fromkeys(("pattern_matched", "strategy_used", "fingerprint", "signature"), _TEXT),
    **dict.fromkeys(("branch", "commit"), _TEXT),
    **dict.fromkeys(("attempt", "execution", "recognizer_version"), _WHOLE),
    **dict.fromkeys(("duration_ms", "delay_ms", "tokens", "cost"), _NUMBER),
    **dict.fromkeys(("confidence", "agent_confidence"), _NUMBER),
    **dict.fromkeys(
        ("failure", "decision", "validation", "regression", "progress"), (dict, Mapping)
    ),
    **dict.fromkeys(("files_modified", "checks", "commands", "findings"), (list, tuple)),
    "infrastructure": (bool,),
}
"""What an attempt's fields may be in JSON; null stands for a field's default."""

LISTED = frozenset({"gates", "violations", "warnings"})
"""What of a validation is a list; anything else in its place is left out."""

CHECK_SHAPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "kind", "command", "output"), _TEXT),
    **dict.fromkeys(("exit_code", "duration_ms"), _NUMBER),
    "passed": (bool,),
}


_NAMES: Mapping[type, str] = {
    str: "text",
    int: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def sort_out(
    data: Mapping[str, Any], shapes: Mapping[str, tuple[type, ...]], what: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the fields that are known and not null, all others) of a record.

    Args:
        data: the record.
        shapes: types by name of a known field.
        what: what it ought to be, for the error.

    Raises:
        ValueError: it is no record, or a known field is of another type.

    Example:
        >>> sort_out({"name": "pytest", "passed": None, "mood": 1}, CHECK_SHAPES, "check")
        ({'name': 'pytest'}, {'mood': 1})
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"not a {what}: found {type(data).__name__}, expected an object")
    known: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for name, value in data.items():
        shape, kind = shapes.get(name), type(value)
        if shape is None:
            other[name] = value
        elif kind in shape and kind is not float:  # almost always, and quicker than what follows
            known[name] = value
        elif value is not None:
            if not isinstance(value, shape) or kind is bool:
                found = f"{name} is {value!r:.40}, expected {_NAMES[shape[0]]}"
                raise ValueError(f"not a {what}: {found}")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"not a {what}: {name} is {value}, expected a finite number")
            known[name] = value
    return known, other


def _joined(data: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, **{name: value for name, value in other.items() if name not in data}}
