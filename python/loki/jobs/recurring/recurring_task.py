"""A recurring task as its file has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from loki import _core
from loki.base.secret import mask_secrets
from loki.base.time import nanoseconds, seconds
from loki.base.validation import sentence
from loki.jobs.recurring.recurring_run import KeptModel, Moment, Running
from loki.jobs.recurring.schedule import Cron

MOST_FAILURES = 2**32 - 1
"""More are not counted; what `loki.Backoff` takes."""


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"found {value!r}, expected a duration with its unit, like '90s'")
    return seconds(value)


def _duration(value: float) -> str:
    return _core.format_duration(nanoseconds(value))


Seconds = Annotated[float, BeforeValidator(_seconds), PlainSerializer(_duration)]
"""Seconds; text with units in files."""


@lru_cache(maxsize=1024)
def _cron(expression: str, zone: str) -> Cron:
    """Looked through once, however often the task's file is written."""
    return Cron(expression, zone)


class CronPart(KeptModel):
    """``schedule`` of a task that runs at times."""

    cron: str
    zone: str = "UTC"


class CyclePart(KeptModel):
    """``schedule`` of a task that runs again and again, with a pause in between.

    Attributes:
        delay: seconds from the end of an iteration to the next one.
        max_iterations: successful ones after which it is done; None: no end.
        max_failure_restarts: failures in a row that are tried again; one more stops the task, and a
            person has to look.
    """

    delay: Seconds
    max_iterations: int | None = Field(default=None, ge=1)
    max_failure_restarts: int = Field(default=3, ge=0)

    def gap(self, moment: datetime) -> float:
        """Seconds that failures are waited out from: the delay."""
        del moment
        return self.delay


class AgentPart(KeptModel):
    """``agent``: what an agent works on, as `loki run` takes it."""

    task: str
    agent: str | None = None
    agent_command: str | None = None
    checks: tuple[str, ...] = ()
    reviewer_command: str | None = None
    evaluate_command: str | None = None
    kind: str = "bug_fix"
    complexity: str = "medium"
    scope: tuple[str, ...] = ()
    max_attempts: int | None = Field(default=None, ge=1)
    max_time: Seconds | None = None


class Hold(KeptModel):
    """Why a task does not run: paused by somebody, or stopped by itself.

    Attributes:
        since: from when on.
        reason: why.
        by: who; "" where it stopped by itself.
        status: of one that stopped: ``failed``, or ``done`` where nothing is left to do.
    """

    since: Moment
    reason: str = ""
    by: str = ""
    status: Literal["paused", "failed", "done"] = "paused"


class RecurringTask(KeptModel):
    """``recurring/<id>/task.json``; unknown fields are kept and written back.

    Attributes:
        schedule: a cron expression with its zone, or a cycle.
        command: the words of a shell task's command; ``agent``: what an agent works on. One of them.
        timeout: seconds that a command may take.
        runs: number of the last run; ``iterations``: successful ones.
        consecutive_failures: failures since the last success: by this the next run is put back.
        total_failures: failures in the task's life.
        failure_restarts: failures in a row that a cycle has tried again since a person last looked.
        next_run_at: when it is due; ``not_before``: put off until then for ``put_off``.
        pending: number of the run whose evaluation is awaited.
        last_triaged_at: when a triage of it was last started; ``triages``: how many there were.
    """

    id: str
    title: str = ""
    schedule: CronPart | CyclePart
    command: tuple[str, ...] = ()
    agent: AgentPart | None = None
    timeout: Seconds | None = None
    pass_environment: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    created_at: Moment | None = None
    runs: int = Field(default=0, ge=0)
    iterations: int = Field(default=0, ge=0)
    consecutive_failures: int = Field(default=0, ge=0, le=MOST_FAILURES)
    total_failures: int = Field(default=0, ge=0)
    failure_restarts: int = Field(default=0, ge=0)
    next_run_at: Moment | None = None
    not_before: Moment | None = None
    put_off: str = ""
    last_scheduled_at: Moment | None = None
    last_failure_at: Moment | None = None
    last_success_at: Moment | None = None
    last_status: str = ""
    last_triaged_at: Moment | None = None
    triages: int = Field(default=0, ge=0)
    paused: Hold | None = None
    stopped: Hold | None = None
    running: Running | None = None
    pending: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """What others write as null is not said."""
        if isinstance(data, Mapping):
            known = cls.model_fields
            return {k: v for k, v in data.items() if v is not None or k not in known}
        return data

    @model_validator(mode="after")
    def _is_usable(self) -> RecurringTask:
        if bool(self.command) == (self.agent is not None):
            raise ValueError("expected either a `command` or an `agent`")
        self.timing()
        return self

    def timing(self) -> Cron | CyclePart:
        """Its schedule, to calculate with."""
        part = self.schedule
        return _cron(part.cron, part.zone) if isinstance(part, CronPart) else part

    @property
    def status(self) -> str:
        """running, paused, failed or done (stopped), pending_evaluation, backing_off or scheduled."""
        if self.running is not None:
            return "running"
        for held in (self.paused, self.stopped):
            if held is not None:
                return held.status
        if self.pending is not None:
            return "pending_evaluation"
        return "backing_off" if self.consecutive_failures else "scheduled"

    def to_text(self) -> str:
        """What its file says."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Unreadable:
    """A task whose file cannot be used; it is shown, never run, and left as it is."""

    id: str
    reason: str


UNSAFE = (
    "a secret stands in its command: put it into an environment variable, and name that in "
    "pass_environment (--pass-env)"
)


@lru_cache(maxsize=1024)
def _holds_secret(text: str) -> bool:
    return mask_secrets(text) != text


def read(id_: str, text: str) -> RecurringTask | Unreadable:
    """A task from its file, whatever is in it.

    Args:
        id_: the name of its folder: that is its id, whatever the file says.
        text: what the file says.

    Example:
        >>> read("x", "[]").reason
        'found a list, expected a mapping'
    """
    try:
        data = json.loads(text)
        if "\\ud" in text.lower():  # nobody could write half a character again
            json.dumps(data, ensure_ascii=False).encode()
        if isinstance(data, dict):
            data["id"] = id_
        task = RecurringTask.model_validate(data)
        if _holds_secret("\n".join(task.command)):  # writing the file would mask it
            return Unreadable(id_, UNSAFE)
        return task
    except Exception as error:
        return Unreadable(id_, _reason(error))


def problem_of(error: ValidationError) -> str:
    """What is wrong with a task, in a sentence."""
    return sentence(error.errors()[0])


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return problem_of(error)
    if isinstance(error, UnicodeEncodeError):
        return "a text in it holds half a character (a lone surrogate)"
    is_json = not isinstance(error, (ValueError, RecursionError))
    return str(error) if is_json else f"no JSON: {error}"
