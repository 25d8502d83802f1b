"""One run of a recurring task: what is kept of it, and what whoever performs it tells."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from loki.base.time import isoformat, moment

if TYPE_CHECKING:
    from typing_extensions import Self

Status: TypeAlias = Literal["success", "failed", "cancelled", "pending_evaluation", "rescued"]
"""How a run ended. Rescued: it failed, and a later evaluation found its work good all the same."""


def _moment(value: Any) -> Any:
    found = moment(value) if isinstance(value, str) else value
    if not isinstance(found, datetime) or found.tzinfo is None:
        raise ValueError(f"found {value!r}, expected a moment in ISO 8601")
    return found


Moment = Annotated[datetime, BeforeValidator(_moment), PlainSerializer(isoformat)]
"""A moment, as ISO 8601 in files."""


class KeptModel(BaseModel):
    """What a file keeps: unknown fields stay as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def with_(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return self.model_copy(update=changes)


class RunRecord(KeptModel):
    """A line of a task's ``runs.jsonl``; unknown fields are kept.

    Attributes:
        number: 1, 2, … in the task's life.
        scheduled_at: when it should have begun; ``started_at``, ``ended_at``: when it did.
        status: how it ended.
        exit_code, signal, timed_out: of a command.
        missed: scheduled times before this one that nobody was there for; this run is for them, too.
        output, error_output: names of the documents with what it printed; kept of the last runs.
        task_id: the task of the closed loop that an agent worked on.
        reason: why it did not succeed, in one sentence.
        signature: what makes two failures the same; ``pattern``, ``kind``: what is known of it.
        triggered_by: schedule, or person (`loki recur run`).
    """

    number: int = Field(ge=1)
    scheduled_at: Moment
    started_at: Moment
    ended_at: Moment
    status: Status
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    missed: int = 0
    output: str | None = None
    error_output: str | None = None
    task_id: str | None = None
    reason: str = ""
    signature: str | None = None
    pattern: str | None = None
    kind: str | None = None
    triggered_by: str = "schedule"

    @property
    def is_success(self) -> bool:
        """Whether it counts as a success."""
        return self.status in {"success", "rescued"}


@dataclass(frozen=True)
class RunResult:
    """How a run went, as whoever performed it tells; `RunRecord` says what the fields mean.

    Attributes:
        stdout, stderr: what it printed, with secrets masked.
    """

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stdout: str = ""
    stderr: str = ""
    task_id: str | None = None
    reason: str = ""
    signature: str | None = None
    pattern: str | None = None
    kind: str | None = None


class Running(KeptModel):
    """The run that is under way; its dispatcher holds the task's lock, or has died.

    The fields mean what they mean in `RunRecord`.
    """

    number: int
    scheduled_at: Moment
    started_at: Moment
    missed: int = 0
    triggered_by: str = "schedule"

    def ended(self, at: datetime, result: RunResult) -> RunRecord:
        """The record of it, now that it has ended."""
        printed = {"stdout", "stderr"}
        known = {name: getattr(self, name) for name in Running.model_fields}
        how = {name: value for name, value in vars(result).items() if name not in printed}
        return RunRecord.model_validate({**known, **how, "ended_at": at})


@dataclass(frozen=True)
class RunPostponed:
    """A run that could not begin for no fault of its own: nothing is counted, it is tried again.

    Attributes:
        until: not before this.
        reason: why, in one sentence.
    """

    until: datetime
    reason: str


@dataclass(frozen=True)
class Verdict:
    """What an evaluation says of a run that failed.

    Attributes:
        is_good: whether its work is good all the same.
        reason: why.
    """

    is_good: bool
    reason: str = ""


class Runner(Protocol):
    """Performs runs; called from several threads at once."""

    def run(
        self, task: Any, running: Running, cancelled: threading.Event
    ) -> RunResult | RunPostponed:
        """Perform a run to its end, or until it is cancelled."""

    def evaluate(self, task: Any, run: RunRecord, cancelled: threading.Event) -> Verdict | None:
        """What a reviewer says of a run that failed; None: it could not be asked."""
