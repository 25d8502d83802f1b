"""One pass of the loop over a task, as it is kept.

The log holds three kinds of records: attempts; ``{"amends": n, "strategy_used": …}``, where another
strategy than the recorded one was used; ``{"ends": execution, "at": …, "outcome": {…}}``, where an
execution of the task ended, was paused or interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from loki.base import codec
from loki.base.codec import Positive, kept
from loki.base.markup import fence, inline
from loki.memory.quote import one_line
from loki.memory.store import Store
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


Number = int | float
"""Of counts and durations: another program may write 12.0."""

LISTED = frozenset({"gates", "violations", "warnings"})
"""What of a validation is a list; anything else in its place is left out."""


def _texts(values: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, values))


def _objects(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one for one in values if isinstance(one, Mapping))


def _listed(validation: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not validation or all(type(validation.get(name, [])) is list for name in LISTED):
        return validation  # as nearly always
    return {
        name: value
        for name, value in validation.items()
        if name not in LISTED or isinstance(value, (list, tuple))
    }


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

    name: str = kept(plain="")
    kind: str = kept(plain="command")
    command: str = kept(plain="")
    passed: bool = kept(plain=False)
    exit_code: int | None = kept(form=Number | None, plain=None)
    duration_ms: int = kept(form=Number, plain=0)
    output: str = ""
    other: Mapping[str, Any] = field(default_factory=dict)


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

    attempt: Positive
    timestamp: str
    action: str
    result: Result
    error: str | None = None
    pattern_matched: str | None = None
    strategy_used: str | None = None
    duration_ms: int = kept(default=0, form=Number)
    files_modified: tuple[str, ...] = kept(default=(), form=Annotated[tuple[Any, ...], _texts])
    execution: int = 1
    phase: str = ""
    infrastructure: bool = False
    failure: Mapping[str, Any] | None = None
    fingerprint: str | None = None
    signature: str | None = None
    recognizer_version: int | None = None
    confidence: float | None = kept(default=None, form=Number | None)
    decision: Mapping[str, Any] | None = None
    checks: tuple[CheckRecord, ...] = ()
    validation: Annotated[Mapping[str, Any] | None, _listed] = None
    regression: Mapping[str, Any] | None = None
    progress: Mapping[str, Any] | None = None
    commands: tuple[Mapping[str, Any], ...] = kept(
        default=(), form=Annotated[tuple[Any, ...], _objects]
    )
    findings: tuple[Mapping[str, Any], ...] = kept(
        default=(), form=Annotated[tuple[Any, ...], _objects]
    )
    agent: str = ""
    agent_confidence: float | None = kept(default=None, form=Number | None)
    model: str | None = None
    tokens: int | None = kept(default=None, form=Number | None)
    cost: float | None = kept(default=None, form=Number | None)
    delay_ms: int = kept(default=0, form=Number)
    branch: str | None = None
    commit: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return codec.fields_of(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Attempt:
        """An attempt from what `to_dict` gave, or a newer version's record.

        Raises:
            ValueError: it names no attempt, or a field has the wrong shape.
        """
        return codec.parse(cls, data, "attempt record")

    def recognized(self) -> Failure | None:
        """The failure, fingerprinted anew where another version of recognition kept it.

        Nothing of it is computed before somebody asks. What cannot be read is told and passed over.
        """
        try:
            return Failure.from_dict(self.failure) if self.failure else None
        except ValueError as error:
            logger.warning("attempt %d of %s: %s", self.attempt, self.timestamp, error)
            return None


REQUIRED = ("attempt", "timestamp", "action", "result")


# --- What was tried already, in bounded memory ------------------------------------------------------

MOST = 8
"""Approaches that are told of, the newest distinct ones. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Approach:
    """An approach and what came of it.

    Attributes:
        attempt: number of the attempt that took it last.
        times: how often it was taken.
        action: what was done, one line.
        error: what it failed with the last time, one line.
        strategy: the strategy chosen in answer, or None.
    """

    attempt: int
    times: int
    action: str
    error: str
    strategy: str | None


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """The attempts of one execution of a task, summed up.

    Attributes:
        attempts: how many there were.
        counted: how many of them count for the retry budget: not failed by infrastructure, nor
            sent back for drift, and made since a person last stepped in.
        since: number of the last attempt before that.
        approaches: the newest distinct ones, newest last.

    Example:
        >>> told = AttemptSummary.of(Attempt(n, "", "guard", "failed", "TS2339") for n in (1, 2, 3))
        >>> told.attempts, [(a.attempt, a.times) for a in told.approaches]
        (3, [(3, 3)])
    """

    attempts: int = 0
    counted: int = 0
    since: int = 0
    approaches: tuple[Approach, ...] = ()

    @property
    def left_out(self) -> int:
        """Attempts whose approach is not among those told of."""
        return self.attempts - sum(approach.times for approach in self.approaches)

    def after(self, attempt: Attempt) -> AttemptSummary:
        """The same after one more attempt."""
        action = one_line(attempt.action)
        known = next((a for a in self.approaches if a.action == action), None)
        latest = Approach(
            attempt.attempt,
            known.times + 1 if known else 1,
            action,
            one_line(attempt.error or attempt.result),
            attempt.strategy_used,
        )
        others = (a for a in self.approaches if a is not known)
        is_work = not attempt.infrastructure and attempt.result != DRIFT
        counts = attempt.attempt > self.since and is_work
        return replace(
            self,
            attempts=self.attempts + 1,
            counted=self.counted + counts,
            approaches=(*others, latest)[-MOST:],
        )

    def amended(self, attempt: int, strategy: str) -> AttemptSummary:
        """The same where another strategy than the recorded one was used."""
        amended = (
            replace(a, strategy=strategy) if a.attempt == attempt else a for a in self.approaches
        )
        return replace(self, approaches=tuple(amended))

    def later(self, attempt: int) -> AttemptSummary:
        """The same of what was done after an attempt: what came before is told of elsewhere."""
        kept = tuple(a for a in self.approaches if a.attempt > attempt)
        return replace(self, attempts=sum(a.times for a in kept), approaches=kept)

    @classmethod
    def of(cls, attempts: Iterable[Attempt], since: int = 0) -> AttemptSummary:
        """A summary of attempts, oldest first; those after number ``since`` count."""
        tried = cls(since=since)
        for attempt in attempts:
            tried = tried.after(attempt)
        return tried


# --- A task's attempts: the log, and a page for people ----------------------------------------------


def log_name(task_id: str) -> str:
    """Name of a task's log in a store.

    Example:
        >>> log_name("fix-login-1a2b3c")
        'tasks/fix-login-1a2b3c/attempts.jsonl'
    """
    return f"tasks/{task_id}/attempts.jsonl"


class History:
    """The attempts of one task.

    Args:
        store: where they are kept.
        task_id: whose they are.
    """

    def __init__(self, store: Store, task_id: str) -> None:
        self._store = store
        self._task_id = task_id
        self._log = log_name(task_id)

    def append(self, attempt: Attempt) -> None:
        """Keep an attempt; it is on disk when this returns."""
        self._store.append(self._log, attempt.to_dict())

    def amend(self, attempt: int, strategy: str) -> None:
        """Note that another strategy than the recorded one was used in answer to an attempt."""
        self._store.append(self._log, {"amends": attempt, "strategy_used": strategy})

    def end(self, execution: int, outcome: Mapping[str, Any], *, title: str, at: str) -> None:
        """Note how an execution ended, and render the page anew.

        Args:
            execution: its number in the task's life, 1 or more.
            outcome: its ``status`` and what else is known, JSON-able.
            title: of the task.
            at: when, ISO 8601 UTC.
        """
        self._store.append(self._log, {"ends": execution, "at": at, "outcome": dict(outcome)})
        self.write_page(status=str(outcome["status"]), title=title, updated_at=at)

    def attempts(self) -> list[Attempt]:
        """All attempts in order, amendments applied; a record that cannot be read is skipped.

        No failure is recognized anew before `Attempt.recognized` asks for it.
        """
        return read_attempts(self._store.scan(self._log), self._log)

    def write_page(self, *, status: str, title: str, updated_at: str) -> None:
        """Render ``attempts-<task_id>.md`` anew."""
        attempts = self.attempts()
        text = render_page(
            self._task_id, attempts, status=status, title=title, updated_at=updated_at
        )
        self._store.write(f"tasks/{self._task_id}/attempts-{self._task_id}.md", text)


def read_attempts(records: Iterable[Mapping[str, Any]], log: str = "log") -> list[Attempt]:
    """The attempts in a log's records, by number, amendments applied.

    Args:
        records: the records, oldest first.
        log: its name, for warnings about records that cannot be read.

    A record that a retry wrote twice counts once; different ones with one number are both kept, for
    what was acknowledged is never lost.
    """
    found: list[Attempt] = []
    last: dict[int, int] = {}
    for record in records:
        try:
            if "ends" in record:
                continue
            if "amends" in record:
                index = last[int(record["amends"])]
                found[index] = replace(found[index], strategy_used=str(record["strategy_used"]))
                continue
            attempt = Attempt.from_dict(record)
            before = last.get(attempt.attempt)
            if before is None or found[before] != attempt:
                last[attempt.attempt] = len(found)
                found.append(attempt)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            logger.warning("%s: skipped a record: %s", log, error)
    return sorted(found, key=lambda attempt: attempt.attempt)


def render_page(
    task_id: str, attempts: Sequence[Attempt], *, status: str, title: str, updated_at: str
) -> str:
    """The page of a task's attempts: front matter, then the attempts as YAML."""
    from loki.base.yaml_text import dump, entity, page

    fields = {
        **entity("session.current", f"attempts.{task_id}", "attempts"),
        "task_id": task_id,
        "total_attempts": len(attempts),
        "final_status": status,
        "created_at": attempts[0].timestamp if attempts else updated_at,
        "updated_at": updated_at,
        "tags": ["attempts", "closed-loop"],
    }
    rows = dump({"attempts": [page_row(attempt) for attempt in attempts]})
    block = fence(rows.rstrip("\n"), "yaml")
    return page(fields, [f"# {inline(title)}", f"## Attempt history\n\n{block}"])


def page_row(attempt: Attempt) -> dict[str, Any]:
    """An attempt as its page shows it.

    The document's nine fields always; of the others those that say something, but neither what the
    tools printed nor the failure's own fields, which the log has.
    """
    known = attempt.to_dict()
    known["execution"] = attempt.execution if attempt.execution > 1 else None
    known["checks"] = [_of(check, _CHECK_SHOWN) for check in known["checks"]]
    known["commands"] = [_of(command, ("command", "exit_code")) for command in attempt.commands]
    others = {name: value for name, value in _of(known, _SHOWN).items() if value}
    return {**_of(known, _ALWAYS_SHOWN), **others}


_ALWAYS_SHOWN = (
    "attempt", "timestamp", "action", "result", "error", "pattern_matched", "strategy_used",
    "duration_ms", "files_modified",
)  # fmt: skip
_SHOWN = (
    "execution", "phase", "infrastructure", "signature", "fingerprint", "recognizer_version",
    "confidence", "decision", "checks", "validation", "regression", "commands", "agent",
    "agent_confidence", "model", "tokens", "cost", "delay_ms", "branch", "commit",
)  # fmt: skip
_CHECK_SHOWN = ("name", "passed", "exit_code", "duration_ms")


def _of(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: data.get(name) for name in names}
