"""A list of the queue as a file: ``{"tasks": […]}``, one task a line. Pure.

A line that was read before is not read again: of 5,000 tasks one has changed. What cannot be read
as a task stays where it stands, to the letter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from loki.base.error import StoreError
from loki.recurrence import queued_form
from loki.recurrence.queued import QueuedTask

_HEAD = '{"tasks": ['
_REPLACED = "\ufffd"


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at one place of a list.

    Attributes:
        line: as it is written, in one line.
        task: what it says; None where nobody can tell which task it is, and then why.
    """

    line: str
    task: QueuedTask | None
    why: str = ""

    @classmethod
    def of(cls, task: QueuedTask) -> Entry:
        """The entry of a task that is about to be written."""
        data = queued_form.write(task)
        return cls(_dump(data), replace(task, raw=data))


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
            >>> print(QueueFile((Entry.of(queued_form.read({"id": "a"})),)).text(), end="")
            {"tasks": [
            {"id": "a"}
            ]}
        """
        lines = ",\n".join(entry.line for entry in self.entries)
        rest = f", {_dump(self.extra)[1:-1]}" if self.extra else ""
        return f"{_HEAD}\n{lines}\n]{rest}}}\n" if lines else f"{_HEAD}]{rest}}}\n"

    def without(self, id_: str) -> QueueFile:
        """The list without the first entry of a task."""
        for index, entry in enumerate(self.entries):
            if entry.task is not None and entry.task.id == id_:
                return QueueFile(self.entries[:index] + self.entries[index + 1 :], self.extra)
        return self

    def put(self, task: QueuedTask) -> QueueFile:
        """The list with a task, in the place of what it says of it, else in the order of submission.

        A task that comes back goes before those that were submitted later; one of another program,
        which has no number, before all.
        """
        entry = Entry.of(task)
        for index, other in enumerate(self.entries):
            if other.task is not None and other.task.id == task.id:
                return self._with(index, index + 1, entry)
        later = (i for i, other in enumerate(self.entries) if _is_later(other, task))
        index = next(later, len(self.entries))
        return self._with(index, index, entry)

    def add(self, tasks: list[QueuedTask]) -> QueueFile:
        """The list with tasks at its end."""
        return QueueFile((*self.entries, *map(Entry.of, tasks)), self.extra)

    def _with(self, begin: int, end: int, entry: Entry) -> QueueFile:
        return QueueFile((*self.entries[:begin], entry, *self.entries[end:]), self.extra)


def _is_later(entry: Entry, task: QueuedTask) -> bool:
    if entry.task is None or entry.task.sequence is None:
        return task.sequence is None and entry.task is not None
    return task.sequence is None or task.sequence < entry.task.sequence


class Reader:
    """Reads lists; remembers what it has read."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, QueueFile]] = {}

    def read(self, name: str, text: str | None) -> QueueFile:
        """A list.

        Args:
            name: of its document, for messages.
            text: of the document; None or empty: there is none.

        Raises:
            StoreError: it is none; says where.
        """
        text = (text or "").lstrip("\ufeff")
        last, file = self._files.get(name, ("", QueueFile()))
        if text != last:
            known = {entry.line: entry for entry in file.entries}
            file = _by_lines(text, known) or _whole(name, text)
            self._files[name] = text, file
        return file if text.strip() else QueueFile()

    def wrote(self, name: str, text: str, file: QueueFile) -> None:
        """Remember what was written."""
        self._files[name] = text, file


def _by_lines(text: str, known: Mapping[str, Entry]) -> QueueFile | None:
    """A list in the form that loki writes; None: it has another."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) < 3 or lines[0] != _HEAD or not lines[-1].startswith("]"):  # noqa: PLR2004
        return None
    rest, body = lines[-1][1:].removeprefix(", "), lines[1:-1]
    if not all(line.endswith(",") for line in body[:-1]) or _REPLACED in text:
        return None
    try:
        extra = parse("{" + rest)
        bare = [*(line[:-1] for line in body[:-1]), body[-1]]
        entries = tuple(known.get(line) or _entry(parse(line), line) for line in bare)
    except (ValueError, RecursionError):
        return None
    return None if "tasks" in extra else QueueFile(entries, extra)


def _whole(name: str, text: str) -> QueueFile:
    if not text.strip():
        return QueueFile()
    if _REPLACED in text:
        at = text.index(_REPLACED)
        raise StoreError(f"{_place(name, text, at)}: is not UTF-8. {_LEFT}")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f".loki/{name}:{error.lineno}:{error.colno}"
        raise StoreError(f"{where}: is no JSON: {error.msg}. {_LEFT}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f".loki/{name}:1:1: cannot be read: {error}. {_LEFT}") from error
    if isinstance(data, list):
        data = {"tasks": data}
    key = (
        next((one for one in data if one.lower() == "tasks"), "tasks")
        if isinstance(data, dict)
        else ""
    )
    tasks = (data.get(key) or []) if isinstance(data, dict) else None
    if not isinstance(tasks, list):
        raise StoreError(f'.loki/{name}:1:1: expected {{"tasks": […]}} or a list. {_LEFT}')
    extra = {one: value for one, value in data.items() if one != key}
    return QueueFile(tuple(_entry(one, _dump(one)) for one in tasks), extra)


_LEFT = "It was left as it is: mend it, or move it away"


def _place(name: str, text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f".loki/{name}:{line}:{at - text.rfind(chr(10), 0, at)}"


def _entry(data: Any, line: str) -> Entry:
    try:
        return Entry(line, queued_form.read(data))
    except ValueError as error:
        return Entry(line, None, str(error))


def complaints(name: str, file: QueueFile) -> Iterator[str]:
    """A sentence for each entry of a list that stands for no task of its own."""
    if len(file.tasks) == len(file.entries):  # as nearly always
        return
    seen: set[str] = set()
    for number, entry in enumerate(file.entries, 1):
        where = f".loki/{name}: entry {number} is left as it stands"
        if entry.task is None:
            yield f"{where}: {entry.why}"
        elif entry.task.id in seen:
            yield f"{where}: {entry.task.id!r} stands there before"
        else:
            seen.add(entry.task.id)


def parse(text: str) -> Any:
    """JSON, by the quicker parser where that can read it.

    Raises:
        ValueError: it is none.
    """
    from pydantic_core import from_json

    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        return json.loads(text)  # also half a surrogate pair


def _dump(data: Any) -> str:
    # A replacement character in a file then always stands for bytes that are no UTF-8.
    return json.dumps(data, ensure_ascii=False).replace(_REPLACED, "\\ufffd")
