"""A task that stands in the queue: what is asked, before what, and who works on it. Pure.

A field of another form than expected spoils only itself. What a task is written back as is what
stood there, with what has changed: under the name that was found, the rest untouched.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, TypeAlias, get_args

from loki.action.task import COMPLEXITIES, KINDS, task_id
from loki.base import codec
from loki.base.time import moment

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
    until: str = codec.kept(default="", name="lease_until")
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


# --- What tasks wait for ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenDependency:
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


def waits_for(
    task: QueuedTask, where: Callable[[str], ListName | None]
) -> tuple[OpenDependency, ...]:
    """The dependencies of a task that are not completed.

    Example:
        >>> task = QueuedTask("b", "B", dependencies=("a", "x"))
        >>> [one.id for one in waits_for(task, {"a": "completed"}.get)]
        ['x']
    """
    found = ((id_, where(id_)) for id_ in task.dependencies)
    return tuple(OpenDependency(id_, place) for id_, place in found if place != "completed")


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


# --- The forms that programs write tasks in -----------------------------------------------------------

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("task_id", "uuid"),
    "title": ("name", "task", "goal", "summary", "subject"),
    "description": ("desc", "details", "prompt"),
    "priority": ("prio",),
    "dependencies": ("depends_on", "deps", "requires"),
    "kind": ("task_type", "type"),
    "checks": ("check",),
    "scope": ("files",),
    "agent_command": (),
    "submitted_at": ("created_at", "queued_at", "timestamp"),
    "lifetime_attempts": ("attempts", "attempt_count", "failure_count"),
}
"""What other orchestrators call a field; letter case, dashes and underscores make no difference."""

_OF_ITS_LIFE = frozenset(
    {
        "submitted_at", "sequence", "lifetime_attempts", "lost", "generation", "taken_from",
        "blocked", "claim", "raw",
    }
)  # fmt: skip

UNNAMED = "refactor"
"""The kind of a task that names none: it wants a change, also where every check passes already, and claims
nothing that was red before."""

ALWAYS = frozenset(
    {"id", "title", "description", "priority", "dependencies", "kind", "complexity", "checks"}
)
"""Fields that a task of loki's own always has in a file, so that other programs find them."""


def read_entry(data: Any) -> QueuedTask:
    """A task from what stands in a list, whoever wrote it.

    Args:
        data: an object; or a text, which is an id where it can be one, else a title; or a number.

    Raises:
        ValueError: nobody can tell which task it is.

    Example:
        >>> read_entry({"task_id": 7, "name": "Log in", "dependsOn": "6", "x": 1}).dependencies
        ('6',)
        >>> read_entry("fix the login").id
        'fix-the-login-23204a'
    """
    if not isinstance(data, Mapping):
        words = _text(data)
        if not words or (isinstance(data, Sequence) and not isinstance(data, str)):
            raise ValueError(f"found {_shown(data)}, expected a task with an id or a title")
        is_id = not any(letter.isspace() for letter in words)
        return QueuedTask(words if is_id else task_id(words), words, kind=UNNAMED)
    values = _values(_flat(data))
    title = values.get("title") or _payload_title(data)
    if not (values.get("id") or title):
        raise ValueError(f"found {_shown(dict(data))}, expected a task with an id or a title")
    values["id"] = values.get("id") or task_id(title)
    values["title"] = title or values.get("description", "").partition("\n")[0] or values["id"]
    return QueuedTask(**{"kind": UNNAMED, **values}, raw=data)


def write_entry(task: QueuedTask) -> dict[str, Any]:
    """What stands in a file for a task: what was read, with what has changed since.

    Example:
        >>> from dataclasses import replace
        >>> write_entry(replace(read_entry({"task_id": 7, "prio": 3, "x": 1}), priority="high"))
        {'task_id': 7, 'prio': 'high', 'x': 1}
    """
    raw = dict(task.raw)
    if not raw:
        values = {one: getattr(task, one.name) for one in fields(task) if one.name != "raw"}
        return {
            one.name: codec.write(value)
            for one, value in values.items()
            if one.name in ALWAYS or value != one.default
        }
    before, names = read_entry(raw), _names(raw)
    for one in fields(task):
        new = getattr(task, one.name)
        if one.name != "raw" and new != getattr(before, one.name):
            name = names.get(one.name, one.name)
            if new is None:
                raw.pop(name, None)
            else:
                raw[name] = codec.write(new)
    return raw


def fresh(task: QueuedTask, **changes: Any) -> QueuedTask:
    """A task with changes, whose ``raw`` is what will be written."""
    changed = replace(task, **changes)
    return replace(changed, raw=write_entry(changed))


def asked(task: QueuedTask) -> dict[str, Any]:
    """What a task asks for, whatever has become of it since.

    Example:
        >>> one = read_entry({"id": "a", "title": "A"})
        >>> other = read_entry({"id": "a", "title": "A", "lost": 2})
        >>> asked(one) == asked(other), asked(one) == asked(replace(other, kind="feature"))
        (True, False)
    """
    names = (one.name for one in fields(task) if one.name not in _OF_ITS_LIFE)
    return {name: getattr(task, name) for name in names}


def entry_digest(task: QueuedTask) -> str:
    """Tells what stands in a file for a task from everything else, in whatever order it is written.

    Example:
        >>> one, other = read_entry({"id": "a", "x": 1}), read_entry({"x": 1, "id": "a"})
        >>> entry_digest(one) == entry_digest(other)
        True
    """
    text = json.dumps(task.raw or task.title, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


# --- reading ------------------------------------------------------------------------------------------


def _flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A dead letter as a task: what was asked stands in its ``task_data``."""
    inner = data.get("task_data")
    if not isinstance(inner, Mapping):
        return data
    hidden = _ID_NAMES if "id" in _names(data) else frozenset()
    return {**{name: value for name, value in inner.items() if name not in hidden}, **data}


_ID_NAMES = frozenset({"id", *OTHER_NAMES["id"]})


def _names(data: Mapping[str, Any]) -> Mapping[str, str]:
    """By field, the name that it has in an object."""
    return _found_names(tuple(data))


@lru_cache(1000)
def _found_names(all_: tuple[str, ...]) -> Mapping[str, str]:
    there = {_folded(name): name for name in reversed(all_)}
    found = {}
    for one in fields(QueuedTask):
        for name in (one.name, *OTHER_NAMES.get(one.name, ())):
            if (key := there.get(_folded(name))) is not None:
                found[one.name] = key
                break
    return found


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _values(data: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for own, name in _names(data).items():
        if own in _READ and data[name] is not None:
            value = _READ[own](data[name])
            if value is not None:
                values[own] = value
    return values


def unread(data: Mapping[str, Any]) -> list[str]:
    """The fields of an object that say nothing that can be read, by the names that they have there.

    Example:
        >>> unread({"id": "a", "kind": "bug", "max_attempts": "some", "priority": "soon", "x": 1})
        ['kind', 'max_attempts', 'priority']
    """
    names, values = _names(data), _values(data)
    found = [
        name
        for field, name in names.items()
        if field in _READ and field not in values and data[name] is not None
    ]
    priority = values.get("priority")
    if (
        isinstance(priority, str)
        and priority.lower() not in PRIORITIES
        and _number(priority) is None
    ):
        found.append(names["priority"])
    return sorted(found)


def _payload_title(data: Mapping[str, Any]) -> str:
    payload = data.get("payload")
    if not isinstance(payload, Mapping):
        return ""
    found = (_text(payload.get(name)) for name in ("title", "description", "action"))
    return next((text for text in found if text), "")


def _text(value: Any) -> str | None:
    """An id or a word; a number is one, too."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _texts(value: Any) -> tuple[str, ...]:
    many = value if isinstance(value, list | tuple) else [value]
    texts = (
        _text(one.get("id", one.get("task_id"))) if isinstance(one, Mapping) else _text(one)
        for one in many
    )
    return tuple(dict.fromkeys(text for text in texts if text))


def _checks(value: Any) -> tuple[str, ...]:
    many = value if isinstance(value, list | tuple) else [value]
    return tuple(line for one in many if (line := _check(one)))


def _check(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return _text(value)
    command = value.get("command")
    words = shlex.join(map(str, command)) if isinstance(command, list) else _text(command)
    kind = _text(value.get("kind"))
    return f"{kind}: {words}" if words and kind else words


def _one_of(allowed: Sequence[str]) -> Callable[[Any], str | None]:
    def find(value: Any) -> str | None:
        text = (_text(value) or "").lower().replace("-", "_")
        return text if text in allowed else None

    return find


def _priority(value: Any) -> str | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _number(value: Any) -> float | None:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _count(value: Any) -> int | None:
    if isinstance(value, list):
        return len(value)
    number = _number(value)
    return None if number is None else int(number)


def _limit(value: Any) -> int | None:
    return _count(value) or None


def _yes(value: Any) -> bool:
    return value is True or (_text(value) or "").lower() in {"true", "yes", "1"}


def _blocked(value: Any) -> Blocked | None:
    if isinstance(value, Mapping):
        return Blocked(_text(value.get("reason")) or "", _text(value.get("since")) or "")
    if value is True:
        return Blocked("no reason given")
    text = _text(value) if isinstance(value, str) else None
    return Blocked(text) if text else None


def _claim(value: Any) -> Lease | None:
    """A claim of loki's; what other programs call a claim says nothing about who may take it."""
    if not isinstance(value, Mapping):
        return None
    worker, generation = _text(value.get("worker")), _count(value.get("generation"))
    if not worker or not generation:
        return None
    host, boot, since, until = (
        _text(value.get(name)) or "" for name in ("host", "boot", "since", "lease_until")
    )
    pid, attempts = (_count(value.get(name)) or 0 for name in ("pid", "attempts"))
    return Lease(
        worker,
        generation,
        host=host,
        boot=boot,
        pid=pid,
        since=since,
        until=until,
        attempts=attempts,
    )


_READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("id", "title", "description", "after", "submitted_at", "taken_from"), _text),
    **dict.fromkeys(("agent", "agent_command", "agent_timeout", "briefing"), _text),
    **dict.fromkeys(("reviewer_command", "max_time"), _text),
    **dict.fromkeys(("dependencies", "scope", "pass_env", "tags"), _texts),
    **dict.fromkeys(("max_attempts", "max_tokens"), _limit),
    **dict.fromkeys(("sequence", "lifetime_attempts", "lost", "generation"), _count),
    **dict.fromkeys(("urgent", "background", "reflect"), _yes),
    "priority": _priority,
    "kind": _one_of(KINDS),
    "complexity": _one_of(COMPLEXITIES),
    "checks": _checks,
    "max_cost": _number,
    "blocked": _blocked,
    "claim": _claim,
}


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_SHOWN = 60
"""Characters shown of what cannot be read; chosen."""
