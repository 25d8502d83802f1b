"""A list of the queue as a file: ``{"tasks": […]}``, one task a line. Pure.

What cannot be read as a task stays where it stands, to the letter. What a line says is read once it is
asked for: of 20,000 tasks one has changed.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from loki.base.error import StoreError
from loki.jobs.queue import queued_task_format
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory.document_validation import parsed_json


class Unreadable(StoreError):
    """A list that is none; somebody may be writing it at this moment."""


_HEAD = '{"tasks": ['
_REPLACED = "\ufffd"


@dataclass(frozen=True)
class Entry:
    """What stands at one place of a list.

    Attributes:
        line: as it is written, in one line.
    """

    line: str

    @classmethod
    def of(cls, task: QueuedTask) -> Entry:
        """The entry of a task that is about to be written."""
        return cls(dump(queued_task_format.write(task)))

    @cached_property
    def task(self) -> QueuedTask | None:
        """What it says; None where nobody can tell which task it is."""
        try:
            return queued_task_format.read(parsed_json(self.line))
        except ValueError:
            return None

    @property
    def why(self) -> str:
        """Why nobody can tell which task it is, or ""."""
        try:
            queued_task_format.read(parsed_json(self.line))
        except ValueError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class QueueFile:
    """A list of the queue.

    Attributes:
        entries: in order.
        extra: what else stands at the top of the file, by name.
    """

    entries: tuple[Entry, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def tasks(self) -> dict[str, QueuedTask]:
        """The readable ones by id; the first, where an id stands there twice."""
        found: dict[str, QueuedTask] = {}
        for entry in self.entries:
            if entry.task is not None:
                found.setdefault(entry.task.id, entry.task)
        return found

    def text(self) -> str:
        """The whole file.

        Example:
            >>> queue = QueueFile((Entry.of(queued_task_format.read({"id": "a"})),))
            >>> print(queue.text(), end="")
            {"tasks": [
            {"id": "a"}
            ]}
        """
        return text(",\n".join(entry.line for entry in self.entries), self.extra)


def text(lines: str, extra: Mapping[str, Any]) -> str:
    """A whole file, of its lines and what stands beside them."""
    rest = f", {dump(extra)[1:-1]}" if extra else ""
    return f"{_HEAD}\n{lines}\n]{rest}}}\n" if lines else f"{_HEAD}]{rest}}}\n"


def read(name: str, text: str, known: Container[str] = ()) -> QueueFile:
    """A list.

    Args:
        name: of its document, for messages.
        text: of the document; empty: there is none.
        known: lines that were written here, and need not be looked at.

    Raises:
        StoreError: it is none; says where.

    Example:
        >>> [entry.line for entry in read("queue/pending.json", '["a", {"id": "b"}]').entries]
        ['"a"', '{"id": "b"}']
    """
    text = text.lstrip("\ufeff")
    return _by_lines(text, known) or _whole(name, text)


def _by_lines(text: str, known: Container[str]) -> QueueFile | None:
    """A list in the form that loki writes; None: it has another."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) < 3 or lines[0] != _HEAD or not lines[-1].startswith("]"):  # noqa: PLR2004
        return None
    rest, body = lines[-1][1:].removeprefix(", "), lines[1:-1]
    if not all(line.endswith(",") for line in body[:-1]) or _REPLACED in text:
        return None
    bare = [*(line[:-1] for line in body[:-1]), body[-1]]
    try:
        extra = parsed_json("{" + rest)
        for line in bare:
            if line not in known:
                parsed_json(line)
    except (ValueError, RecursionError):
        return None
    return None if "tasks" in extra else QueueFile(tuple(map(Entry, bare)), extra)


def _whole(name: str, text: str) -> QueueFile:
    if not text.strip():
        return QueueFile()
    if _REPLACED in text:
        at = text.index(_REPLACED)
        raise Unreadable(f"{_place(name, text, at)}: is not UTF-8. {_LEFT}")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f".loki/{name}:{error.lineno}:{error.colno}"
        raise Unreadable(f"{where}: is no JSON: {error.msg}. {_LEFT}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f".loki/{name}:1:1: cannot be read: {error}. {_LEFT}") from error
    if isinstance(data, list):
        data = {"tasks": data}
    key = (
        next((one for one in data if one.lower() == "tasks"), "tasks")
        if isinstance(data, dict)
        else ""
    )
    tasks = (data.get(key) or []) if isinstance(data, dict) else None
    if not isinstance(tasks, list):
        raise Unreadable(f'.loki/{name}:1:1: expected {{"tasks": […]}} or a list. {_LEFT}')
    extra = {one: value for one, value in data.items() if one != key}
    return QueueFile(tuple(Entry(dump(one)) for one in tasks), extra)


_LEFT = "It was left as it is: mend it, or move it away"


def _place(name: str, text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f".loki/{name}:{line}:{at - text.rfind(chr(10), 0, at)}"


def dump(data: Any) -> str:
    """A value as it is written, in one line."""
    text = json.dumps(data, ensure_ascii=False)
    # A replacement character in a file then always stands for bytes that are no UTF-8.
    return text.replace(_REPLACED, "\\ufffd").encode("utf-8", "backslashreplace").decode()
