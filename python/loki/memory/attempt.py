"""One pass of the loop over a task, as it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from loki.recognition.failure import Failure

HEAD, TAIL = 500, 1500
"""Characters kept of a command's output: its first and its last."""

Result = str
"""``success``, ``failed``, ``interrupted`` or ``unverified``."""


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
    """

    name: str
    kind: str
    command: str
    passed: bool
    exit_code: int | None
    duration_ms: int
    output: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt's record: one JSON line.

    Attributes:
        attempt: its number in the task's life, 1 or more.
        timestamp: when it began, ISO 8601 UTC.
        action: what the agent says it did.
        result: success, failed, interrupted or unverified.
        error: message of the failure, or None.
        pattern_matched: id of the failure's pattern, or None.
        strategy_used: the strategy chosen in answer to this attempt's failure, or None.
        duration_ms: from asking the agent to the end of the checks, in milliseconds.
        files_modified: paths relative to the project.
        execution: which execution of the task it belongs to, 1 or more.
        phase: the phase that failed, or "" where none did.
        infrastructure: infrastructure failed, not the work.
        failure: the failure's own fields, or None.
        decision: action, rule and reason of what was decided.
        checks, validation: what the checks and the gates said.
        commands: what the change's commands did.
        agent, model, tokens, cost: who answered, and what it took.
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
    commands: tuple[Mapping[str, Any], ...] = ()
    agent: str = ""
    model: str | None = None
    tokens: int | None = None
    cost: float | None = None
    delay_ms: int = 0
    branch: str | None = None
    commit: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        data = asdict(self)
        return {**data.pop("other"), **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Attempt:
        """An attempt from what `to_dict` gave, or a newer version's record.

        Raises:
            ValueError: it names no attempt, or a field has the wrong shape.
        """
        known = {f.name for f in fields(cls)} - {"other"}
        try:
            values = {name: data[name] for name in known if name in data}
            values["attempt"] = int(values["attempt"])
            values["files_modified"] = tuple(values.get("files_modified") or ())
            values["commands"] = tuple(values.get("commands") or ())
            values["checks"] = tuple(CheckRecord(**c) for c in values.get("checks") or ())
            other = {name: value for name, value in data.items() if name not in known}
            return cls(**values, other=other)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an attempt record: {error}") from error

    def recognized(self) -> Failure | None:
        """The failure, recognized anew where a newer recognizer reads it better."""
        return Failure.from_dict(self.failure) if self.failure else None
