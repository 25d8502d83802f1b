"""What is kept of a triage: ``recurring/<id>/triage/<n>.json``, with its prompt and answer beside it."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loki.jobs.recurring.recurring_run import Moment

Status: TypeAlias = Literal["running", "done", "failed"]


class Refusal(BaseModel):
    """Something that a triage agent tried and was not let.

    Attributes:
        at: when; None where nobody knows.
        what: the command, with secrets masked, or what it changed.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    at: Moment | None = None
    what: str = ""


class TriageRecord(BaseModel):
    """A triage; unknown fields are kept.

    Attributes:
        id: ``.triage-<task>-<number>``; title, tags: as of any task.
        task_id: the recurring task; number: 1, 2, … of it.
        agent: who is asked; model, tokens, cost: what it took, cost in US dollars, where known.
        status: running, done, or failed: it came to no answer; reason: why it failed.
        failures: the task's failures in a row when it began.
        verdict, root_cause, evidence, action_taken: what the agent said.
        problem: why nothing could be read of its answer.
        acted: what loki did about the verdict, in a sentence; fix: id of the task that it submitted.
        recommendation: what the agent asks for and loki does not do.
        refused: what it tried to change and could not.
        meanwhile: definitions and queue entries that changed while it ran, by whom nobody can tell.
        prompt, answer: names of the documents that hold them.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str
    number: int = Field(ge=1)
    task_id: str
    title: str = ""
    tags: tuple[str, ...] = ()
    agent: str = ""
    model: str = ""
    tokens: int | None = None
    cost: float | None = None
    status: Status
    started_at: Moment
    ended_at: Moment | None = None
    reason: str = ""
    failures: int = 0
    verdict: str = ""
    root_cause: str = ""
    evidence: str = ""
    action_taken: str = ""
    problem: str = ""
    acted: str = ""
    fix: str = ""
    recommendation: str = ""
    refused: tuple[Refusal, ...] = ()
    meanwhile: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    def with_(self, **changes: Any) -> TriageRecord:
        """The same with some fields changed."""
        return self.model_copy(update=changes)

    def to_dict(self) -> dict[str, Any]:
        """As it is kept, JSON-able."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_text(self) -> str:
        """What its file says."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"


def read(text: str) -> TriageRecord | None:
    """A record from its file; None: it is none.

    Example:
        >>> read("[]") is None
        True
    """
    try:
        return TriageRecord.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        return None


def document(task: str, number: int, suffix: str = ".json") -> str:
    """The name of a document of a triage.

    Example:
        >>> document("backup", 1, ".prompt.md")
        'recurring/backup/triage/1.prompt.md'
    """
    return f"recurring/{task}/triage/{number}{suffix}"
