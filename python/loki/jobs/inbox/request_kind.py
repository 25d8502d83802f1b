"""What a kind of request is: where those that wait are found, and what a person's answer does.

A number belongs to one request, by what it is, what it asks and since when, and not to a place in a
list: an answer to something that has changed, or is over, is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from loki.base.error import LokiError, UsageError
from loki.execution.resolve import breakers as breakers_of
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queue_index import Lists, in_memory
from loki.memory import task_record
from loki.memory.task_record import TaskRecord
from loki.people.request import Request, RequestLog

if TYPE_CHECKING:
    from loki.decision.breaker import BreakerSnapshot
    from loki.jobs.recurring.recurring_task import RecurringTask, Unreadable
    from loki.workspace import Workspace


# --- Kinds, and what is said to them ------------------------------------------------------------------


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


# --- Numbers for what waits, given out once -----------------------------------------------------------


def numbers_log(workspace: Workspace) -> RequestLog:
    """The log of what waits in a project."""
    return RequestLog(workspace.store, workspace.clock)


def numbered(
    workspace: Workspace, there: Sequence[Request], *, gives: bool = True
) -> list[Request]:
    """What waits, with its numbers.

    Args:
        workspace: the project.
        there: what waits.
        gives: what has no number gets one; else it has 0, and nothing is written.
    """
    wanted = {one.key: f"{one.kind} {one.id}" for one in there} if gives else {}
    given = numbers_log(workspace).number(wanted)
    return [replace(one, number=given.get(one.key, (0, ""))[0]) for one in there]


def of_number(workspace: Workspace, there: Sequence[Request], number: int) -> Request:
    """What a number was given to.

    Raises:
        UsageError: it was given to nothing, or that waits no longer as it was shown.
    """
    told = {
        key: name
        for key, (given, name) in numbers_log(workspace).numbers().items()
        if given == number
    }
    for one in there:
        if one.key in told:
            return one
    for name in told.values():
        raise UsageError(
            f"{number} was {name}, which waits no longer as it was shown: `loki status` shows what does"
        )
    raise UsageError(f"no {number} was shown: `loki status` numbers what waits")


def leave_numbers(workspace: Workspace, one: Request, said: Said) -> Result:
    """A person has seen it, and wants it left as it is: it is shown again once it has changed."""
    numbers_log(workspace).add("left", one.id, key=one.key, by=said.by)
    return Result(f"left as it is: {one.id}; it is shown again once something about it has changed")


# --- One look at a project ----------------------------------------------------------------------------


class ProjectSnapshot:
    """What the lists of what waits are made of, read once however many ask.

    Args:
        workspace: the project.

    Attributes:
        unread: why the queue could not be read; "" where it was, or nobody has asked for it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.unread = ""

    @cached_property
    def records(self) -> dict[str, TaskRecord]:
        """What is kept of each task, by its id."""
        workspace = self._workspace
        return {id_: task_record.load(workspace.store, id_) for id_ in workspace.tasks()}

    def page_of(self, task_id: str) -> str:
        """The page that a task ended with, or ""."""
        record = self.records.get(task_id)
        return (record and record.outcome and record.outcome.page) or ""

    @cached_property
    def lists(self) -> Lists:
        """The queue's lists; empty where they cannot be read."""
        try:
            return queue_of(self._workspace).lists()
        except LokiError as error:
            self.unread = str(error)
            return in_memory()

    @property
    def recurring(self) -> Sequence[RecurringTask]:
        """The recurring tasks that can be run, by their ids."""
        return self._recurring[0]

    @property
    def unusable(self) -> Sequence[Unreadable]:
        """The recurring tasks whose files cannot be used."""
        return self._recurring[1]

    @cached_property
    def _recurring(self) -> tuple[Sequence[RecurringTask], Sequence[Unreadable]]:
        store = self._workspace.store
        if not store.keys("recurring/"):  # what reads them takes long to import
            return (), ()
        from loki.jobs.recurring.recurring_task import Unreadable
        from loki.jobs.recurring.recurring_tasks import RecurringTasks

        tasks = RecurringTasks(store).all()
        unusable = [one for one in tasks if isinstance(one, Unreadable)]
        return [one for one in tasks if not isinstance(one, Unreadable)], unusable

    @cached_property
    def breakers(self) -> Mapping[str, BreakerSnapshot]:
        """The circuit breakers by their names."""
        return breakers_of(self._workspace).snapshot()
