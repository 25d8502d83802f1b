"""Queued tasks in the forms that programs write them in. Pure.

A field of another form than expected spoils only itself. What a task is written back as is what
stood there, with what has changed: under the name that was found, the rest untouched.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from loki.action.task import COMPLEXITIES, KINDS, task_id
from loki.jobs.queue.queued_task import PRIORITIES, Blocked, Lease, QueuedTask

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

CLAIM_NAMES = {"until": "lease_until"}


def read(data: Any) -> QueuedTask:
    """A task from what stands in a list, whoever wrote it.

    Args:
        data: an object; or a text, which is an id where it can be one, else a title; or a number.

    Raises:
        ValueError: nobody can tell which task it is.

    Example:
        >>> read({"task_id": 7, "name": "Log in", "dependsOn": "6", "x": 1}).dependencies
        ('6',)
        >>> read("fix the login").id
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


def write(task: QueuedTask) -> dict[str, Any]:
    """What stands in a file for a task: what was read, with what has changed since.

    Example:
        >>> from dataclasses import replace
        >>> write(replace(read({"task_id": 7, "prio": 3, "x": 1}), priority="high"))
        {'task_id': 7, 'prio': 'high', 'x': 1}
    """
    raw = dict(task.raw)
    if not raw:
        values = {one.name: getattr(task, one.name) for one in fields(task) if one.name != "raw"}
        return {
            name: _plain(value)
            for name, value in values.items()
            if name in ALWAYS or value != _default(name)
        }
    before, names = read(raw), _names(raw)
    for one in fields(task):
        new = getattr(task, one.name)
        if one.name != "raw" and new != getattr(before, one.name):
            name = names.get(one.name, one.name)
            if new is None:
                raw.pop(name, None)
            else:
                raw[name] = _plain(new)
    return raw


def fresh(task: QueuedTask, **changes: Any) -> QueuedTask:
    """A task with changes, whose ``raw`` is what will be written."""
    changed = replace(task, **changes)
    return replace(changed, raw=write(changed))


def asked(task: QueuedTask) -> dict[str, Any]:
    """What a task asks for, whatever has become of it since.

    Example:
        >>> one, other = read({"id": "a", "title": "A"}), read({"id": "a", "title": "A", "lost": 2})
        >>> asked(one) == asked(other), asked(one) == asked(replace(other, kind="feature"))
        (True, False)
    """
    names = (one.name for one in fields(task) if one.name not in _OF_ITS_LIFE)
    return {name: getattr(task, name) for name in names}


def digest(task: QueuedTask) -> str:
    """Tells what stands in a file for a task from everything else, in whatever order it is written.

    Example:
        >>> digest(read({"id": "a", "x": 1})) == digest(read({"x": 1, "id": "a"}))
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
    named = _names(data).get("id")
    rest = {
        name: value for name, value in inner.items() if name not in ((named and _ID_NAMES) or ())
    }
    return {**rest, **data}


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
    for field, name in _names(data).items():
        if field in _READ and data[name] is not None:
            value = _READ[field](data[name])
            if value is not None:
                values[field] = value
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
    values: dict[str, Any] = {"worker": worker, "generation": generation}
    for name in ("host", "boot", "since", "until"):
        values[name] = _text(value.get(CLAIM_NAMES.get(name, name))) or ""
    for name in ("pid", "attempts"):
        values[name] = _count(value.get(name)) or 0
    return Lease(**values)


_READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        (
            "id",
            "title",
            "description",
            "agent",
            "agent_command",
            "reviewer_command",
            "briefing",
            "agent_timeout",
            "max_time",
            "after",
            "submitted_at",
            "taken_from",
        ),
        _text,
    ),
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


# --- writing ------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Blocked | Lease):
        return {
            CLAIM_NAMES.get(one.name, one.name): getattr(value, one.name) for one in fields(value)
        }
    return value


def _default(name: str) -> Any:
    one = next(one for one in fields(QueuedTask) if one.name == name)
    return None if one.default is MISSING else one.default


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_SHOWN = 60
"""Characters shown of what cannot be read; chosen."""
