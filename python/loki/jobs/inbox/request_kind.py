"""What a kind of request is: where those that wait are found, and what a person's answer does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.people.request import Request

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says to a request.

    Attributes:
        by: who.
        note: why.
        context: what the agent has to know.
        abort: with a no: the task is given up, and its files are restored.
    """

    by: str
    note: str = ""
    context: str = ""
    abort: bool = False

    @property
    def words(self) -> str:
        """Whatever they said."""
        return self.context or self.note


@dataclass(frozen=True, slots=True)
class Result:
    """What an answer has led to.

    Attributes:
        done: what was done, a sentence; "" where it goes on where it stopped, which is the caller's.
        next: the command that goes on, or "".
        tasks: ids of the tasks that can go on now.
        run: id of the pipeline's run that can go on now, or "".
        at_once: the answer is to go on with them.
        lets_begin: the run's stage may begin.
        goes_on: the task goes on, unless something else about it waits still.
        frees: a task of the queue was blocked for this alone, and may be claimed again.
    """

    done: str
    next: str = ""
    tasks: tuple[str, ...] = ()
    run: str = ""
    at_once: bool = False
    lets_begin: bool = False
    goes_on: bool = False
    frees: bool = False


Answer = Callable[["Workspace", Request, Said], Result]
"""Carries out what a person said; raises `loki.UsageError` where it cannot be answered so now."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request.

    Attributes:
        label: as lists name it.
        find: those that wait.
        yes, no: what an answer does.
        asks: it asks something; else it has stopped, and goes on when a person says so.
        yields: it is left out where something else about its task waits.
        wants_why: a no without a reason is refused, where the request's options show one.
    """

    label: str
    find: Callable[[Workspace, ProjectSnapshot], Iterable[Request]]
    yes: Answer
    no: Answer
    asks: bool = False
    yields: bool = False
    wants_why: bool = True
