"""What is kept of a task: ``tasks/<id>/task.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any

from loki.base import codec, documents
from loki.base.codec import IsoTime, Positive, kept
from loki.base.documents import kept_as
from loki.base.error import UsageError
from loki.base.markup import html_card
from loki.base.secret import mask_secrets
from loki.base.time import isoformat
from loki.memory.store import Store

# --- How a task ended ---------------------------------------------------------------------------------

DONE = ("success", "unverified")
"""Statuses after which nothing is left to resume."""

EXIT_CODES = {"success": 0, "escalated": 3, "failed": 4, "paused": 6, "interrupted": 130}
"""By status."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended.

    Attributes:
        task_id: the task.
        status: success, failed, escalated, unverified, interrupted or paused. A task that was
            interrupted or paused goes on where it stood when it is run again.
        attempts: attempts made in this execution; 0 where the task was already done.
        files: paths changed since the task first began, relative to the project.
        pattern: id of the last failure's pattern, or None.
        reason: one sentence.
        duration_ms: milliseconds from begin to end of this execution.
        trigger: short name of what ended it, or "": retry_budget_exhausted, budget, …
        page: the dead-letter or escalation page, relative to ``.loki/``, or None.
        breaker: name of the circuit breaker that paused it, or None.
        awaiting: names of the criteria that a person has to approve, where nothing else is missing.
        review: id of the request that a person has to answer first, or None.
        retry_at: when that breaker may let a call through again, in UTC; None: nobody knows.
        other: fields that a newer version wrote; kept.
    """

    task_id: str = kept(plain="")
    status: str = kept(plain="unknown")
    attempts: int = kept(plain=0)
    files: tuple[str, ...] = kept(name="files_modified", default=())
    pattern: str | None = kept(name="failure_pattern", default=None)
    reason: str = ""
    duration_ms: int = 0
    trigger: str = ""
    page: str | None = None
    breaker: str | None = None
    retry_at: datetime | None = None
    awaiting: tuple[str, ...] = ()
    review: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def exit_code(self) -> int:
        """Exit code of ``loki run``, 5 where the budget is spent; 1 for what it cannot end with."""
        if self.status == "failed" and self.trigger == "budget":
            return 5
        return EXIT_CODES.get(self.status, 1)

    def _repr_html_(self) -> str:
        return html_card(
            f"Outcome: {self.status}",
            [
                ("task", self.task_id),
                ("attempts", self.attempts),
                ("files", ", ".join(self.files)),
                ("last pattern", self.pattern),
                ("took", f"{self.duration_ms / 1000:.1f} s"),
                ("ended by", self.trigger),
                ("page", self.page and f".loki/{self.page}"),
                ("waits for", ", ".join(self.awaiting)),
                ("breaker", self.breaker),
                ("again at", self.retry_at and isoformat(self.retry_at)),
            ],
            said=self.reason,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return codec.fields_of(self)


# --- A person stepped in ----------------------------------------------------------------------------

MAX_CONTEXT = 8_000
"""Most characters of what a person says, some 2,000 tokens, as it stands in every later briefing;
chosen, not measured."""

RESUME, ABORT = "resume", "abort"


@dataclass(frozen=True, slots=True)
class Intervention:
    """A person's answer to a task that stopped.

    Attributes:
        at: when, ISO 8601 UTC.
        kind: ``resume`` or ``abort``.
        context: what they said, secrets masked; "" where they said nothing.
        execution: the execution that it belongs to, 1 or more.
        attempt: number of the last attempt before it, 0 where there was none.
        status: what the task had ended with: escalated, failed, …
    """

    at: IsoTime
    kind: str = RESUME
    context: str = ""
    execution: int = 1
    attempt: int = 0
    status: str = ""


def intervention_text(context: str) -> str:
    """What a person said, as it is kept.

    Args:
        context: their words.

    Raises:
        UsageError: they are too many for every later briefing.

    Example:
        >>> intervention_text("  The sign is wrong.\\n")
        'The sign is wrong.'
    """
    text = mask_secrets(context.strip())
    if len(text) > MAX_CONTEXT:
        raise UsageError(
            f"the context has {len(text)} characters: expected at most {MAX_CONTEXT}; put the rest "
            "into a file of the project, and name that file"
        )
    return text


def words_of(interventions: Sequence[Intervention], execution: int) -> tuple[str, ...]:
    """What people said in an execution, oldest first."""
    return tuple(
        i.context
        for i in interventions
        if i.execution == execution and i.context and i.kind == RESUME
    )


def last_attempt_before(interventions: Sequence[Intervention], execution: int) -> int:
    """Number of the last attempt that a person has seen the end of; 0 where none stepped in.

    What was tried up to there counts for no limit any more: something has changed.
    """
    return max((i.attempt for i in interventions if i.execution == execution), default=0)


# --- What is kept of a task -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptCheck:
    """A check of a task, as `loki.action.checks.check.Check` has it; ``masked`` where its command held a
    secret."""

    kind: str = "command"
    command: tuple[str, ...] = ()
    name: str = kept(default="", omit=True)
    pattern: str = kept(default="", omit=True)
    expected: str = kept(default="", omit=True)
    description: str = kept(default="", omit=True)
    timeout: float = 600.0
    masked: bool = kept(default=False, omit=True)
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptBudget:
    """Limits of a task, as `loki.decision.budget.Budget` has them."""

    attempts: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a person has to approve: the criteria, of which content, and what each asks."""

    criteria: tuple[str, ...] = ()
    digest: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Agent:
    """What an agent's own ``to_dict`` says, as far as it is needed to start it again."""

    name: str = ""
    command: tuple[str, ...] = ()
    preset: str | None = None
    briefing: str | None = None
    timeout: float | None = None
    reflect: bool = False
    pass_environment: tuple[str, ...] | None = None


def _agent(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Half a command would be another agent.

    Raises:
        ValueError: a field does not fit.
    """
    codec.parse(_Agent, data, "agent")
    return data


@kept_as(r"tasks/[^/]+/task\.json")
@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task: what was asked, and how it stands. False where nothing is kept of it.

    Attributes:
        version: of this form.
        id: names its folder; title, checks, kind, complexity, max_retries, budget, wait, run, scope: what
            was asked, as `loki.action.task.TaskSpec` has it.
        agent: what its agent's ``to_dict`` said, or None.
        execution: how often it was begun, 1 or more; 0: nothing is kept of it.
        updated_at: ISO 8601 UTC.
        seen_failing: (check, test) of tests that were seen failing; failing_files: files of such tests.
        interventions: how people stepped in, oldest first.
        tree: digest of the project where it ended last, or "".
        outcome: how it ended; None: it runs, or was killed.
        approval: what a person has to approve, or None.
        flaws: what in the file does not fit, in sentences.
        other: fields that a newer version wrote; kept.
    """

    version: int = 1
    id: str = ""
    title: str = kept(default="", plain="(its record is damaged)")
    checks: tuple[KeptCheck, ...] = ()
    kind: str = "bug_fix"
    complexity: str = "medium"
    max_retries: int | None = None
    budget: KeptBudget | None = None
    wait: bool | None = None
    run: str = ""
    scope: tuple[str, ...] = ()
    agent: Annotated[Mapping[str, Any], _agent] | None = None
    execution: Positive = 1
    updated_at: IsoTime = ""
    seen_failing: frozenset[tuple[str, str]] = frozenset()
    failing_files: frozenset[str] = frozenset()
    interventions: tuple[Intervention, ...] = ()
    tree: str = ""
    outcome: Outcome | None = None
    approval: Awaited | None = None
    flaws: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything is kept of it."""
        return self.execution > 0

    @property
    def status(self) -> str:
        """What it ended with; "" where it did not: it runs, was killed, or nothing is kept of it."""
        return self.outcome.status if self.outcome else ""

    @property
    def trigger(self) -> str:
        """Short name of what ended it, or ""."""
        return self.outcome.trigger if self.outcome else ""


def document(task_id: str) -> str:
    """Name of a task's record in a store."""
    return f"tasks/{task_id}/task.json"


def save(store: Store, record: TaskRecord) -> None:
    """Keep a task's record, which says whose it is by its ``id``."""
    text = json.dumps(codec.write(record), indent=1, ensure_ascii=False) + "\n"
    store.write(document(record.id), text)


def load(store: Store, task_id: str) -> TaskRecord:
    """What is kept of a task; a false one where there is none, or it is damaged as a whole."""
    found = documents.load_as(TaskRecord, store, document(task_id))
    # Its folder's name is its id, whatever it says.
    if found is None:
        return TaskRecord(id=task_id, execution=0)
    return found if found.id == task_id else replace(found, id=task_id)
