"""What is kept of a task: ``tasks/<id>/task.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from loki.base import codec
from loki.base.codec import IsoTime, Positive, kept
from loki.memory import store as documents
from loki.memory.document_validation import kept_as
from loki.memory.intervention import Intervention
from loki.memory.store import Store
from loki.memory.task_outcome import Outcome


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
        dead_letter: what older versions kept of it as a dead letter, or None.
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
    dead_letter: Mapping[str, Any] | None = kept(default=None, omit=True)
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
    store.put(document(record.id), text)


def load(store: Store, task_id: str) -> TaskRecord:
    """What is kept of a task; a false one where there is none, or it is damaged as a whole."""
    found = documents.load_as(TaskRecord, store, document(task_id))
    # Its folder's name is its id, whatever it says.
    if found is None:
        return TaskRecord(id=task_id, execution=0)
    return found if found.id == task_id else replace(found, id=task_id)
