"""A task that stands in the queue: what is asked, before what, and who works on it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from loki.base.time import moment

# --- A task that stands in the queue: what is asked, before what, and who works on it. Pure -----------

ListName: TypeAlias = Literal[
    "pending", "in-progress", "completed", "failed", "dead-letter", "abandoned"
]
"""The lists of SPEC's queue, each a file ``queue/<name>.json``."""

LISTS: tuple[ListName, ...] = get_args(ListName)

PRIORITIES: Mapping[str, float] = {
    "critical": 100,
    "high": 75,
    "medium": 50,
    "normal": 50,
    "low": 25,
}
"""Priorities that have a name, as numbers. SPEC has the words; the numbers are chosen."""

MEDIUM = PRIORITIES["medium"]

LONGEST_LIFE = 5
"""Attempts over a task's life after which it is not queued again. Source: the resilience documents."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A task that nobody may claim.

    Attributes:
        reason: why, for a person.
        since: ISO 8601 UTC.
    """

    reason: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who works on a task, and until when that holds.

    Attributes:
        worker: id of the worker.
        generation: how often the task had been claimed by then, this claim included.
        host: name of its machine; boot: id of its boot, or ""; pid: its process.
        since: when it was claimed, until: when others may take it; ISO 8601 UTC.
        attempts: those of the task's life when it was claimed.
    """

    worker: str
    generation: int
    host: str = ""
    boot: str = ""
    pid: int = 0
    since: str = ""
    until: str = ""
    attempts: int = 0

    def is_over(self, now: datetime) -> bool:
        """Whether its time is up; a time that nobody can read is."""
        end = moment(self.until)
        return end is None or end <= now


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """A task of the queue.

    Attributes:
        id: names it everywhere; title: what is to be achieved; description: more of that.
        priority: a word of `PRIORITIES` or a number; higher comes first.
        dependencies: ids of tasks that must be completed before.
        kind, complexity: as `loki.action.task.TaskSpec` has them.
        checks: lines that `loki.action.checks.check.Check.of` reads; empty: the project's own.
        scope: files, folders and globs that it is about.
        agent: name of who works on it; agent_command: or a program; "": the worker decides.
        reviewer_command: judges criteria that no command can check, or "".
        briefing, agent_timeout, pass_env, reflect: as ``loki run`` takes them; "", (), False: not said.
        max_attempts, max_tokens, max_cost: limits; None: the configuration's. max_time: like ``2h``.
        urgent: it does not wait while a circuit breaker is open; background: it pauses then.
        tags: words for whoever filters.
        after: id of the task that it came from, or "".
        submitted_at: ISO 8601 UTC, or "".
        sequence: numbers what was submitted here; None where another program wrote it.
        lifetime_attempts: attempts over its life, as far as reported.
        lost: claims that ended with their worker's life.
        generation: how often it was claimed.
        taken_from: digest of what it was before it last went from one list to another, or "".
        blocked: nobody may claim it; claim: who works on it.
        raw: all that stands in the file, whoever wrote it.
    """

    id: str
    title: str
    description: str = ""
    priority: str | float = "medium"
    dependencies: tuple[str, ...] = ()
    kind: str = "bug_fix"
    complexity: str = "medium"
    checks: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    agent: str = ""
    agent_command: str = ""
    reviewer_command: str = ""
    briefing: str = ""
    agent_timeout: str = ""
    pass_env: tuple[str, ...] = ()
    reflect: bool = False
    max_attempts: int | None = None
    max_time: str = ""
    max_tokens: int | None = None
    max_cost: float | None = None
    urgent: bool = False
    background: bool = False
    tags: tuple[str, ...] = ()
    after: str = ""
    submitted_at: str = ""
    sequence: int | None = None
    lifetime_attempts: int = 0
    lost: int = 0
    generation: int = 0
    taken_from: str = ""
    blocked: Blocked | None = None
    claim: Lease | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rank(self) -> float:
        """Its priority as a number.

        Example:
            >>> QueuedTask("a", "A", priority="high").rank
            75
            >>> QueuedTask("a", "A", priority=80).rank
            80.0
        """
        return rank(self.priority)


@lru_cache(typed=True)
def rank(priority: str | float) -> float:
    """A priority as a number; medium's where it is none.

    Example:
        >>> rank("LOW"), rank("7"), rank("whenever")
        (25, 7.0, 50)
    """
    if isinstance(priority, str):
        word = priority.strip().lower()
        if word in PRIORITIES:
            return PRIORITIES[word]
    try:
        number = float(priority)
    except (ValueError, OverflowError):
        return MEDIUM
    return number if math.isfinite(number) else MEDIUM


# --- What tasks wait for: other tasks, or a person. Pure ----------------------------------------------


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A dependency that is not completed.

    Attributes:
        id: the task that is waited for.
        where: the list that it stands in; None: nobody knows it.
    """

    id: str
    where: ListName | None

    @property
    def is_stuck(self) -> bool:
        """Whether nothing that is queued will end the wait: somebody has to look."""
        return self.where not in {"pending", "in-progress"}


def waits_for(task: QueuedTask, where: Callable[[str], ListName | None]) -> tuple[InboxItem, ...]:
    """The dependencies of a task that are not completed.

    Example:
        >>> task = QueuedTask("b", "B", dependencies=("a", "x"))
        >>> [one.id for one in waits_for(task, {"a": "completed"}.get)]
        ['x']
    """
    found = ((id_, where(id_)) for id_ in task.dependencies)
    return tuple(InboxItem(id_, place) for id_, place in found if place != "completed")


def cycle(dependencies: Mapping[str, Iterable[str]], starts: Iterable[str]) -> Sequence[str]:
    """Tasks that wait for each other, the first also at the end; empty where there are none.

    Args:
        dependencies: by task, those it waits for.
        starts: tasks to look from.

    Example:
        >>> cycle({"a": ["b"], "b": ["c"], "c": ["a"]}, ["a"])
        ['a', 'b', 'c', 'a']
    """
    done: set[str] = set()
    for start in starts:
        path: dict[str, None] = {start: None}
        stack = [(start, iter(dependencies.get(start, ())))]
        while stack:
            task, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                path.pop(task)
                done.add(task)
            elif following in path:
                names = list(path)
                return [*names[names.index(following) :], following]
            elif following not in done:
                path[following] = None
                stack.append((following, iter(dependencies.get(following, ()))))
    return []
