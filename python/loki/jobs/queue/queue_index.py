"""What stands in the queue's lists, in SQLite: what is asked of it costs the same whatever its size.

What cannot be read as a task stays where it stands, to the letter. What a line says is read once it is
asked for: of 20,000 tasks one has changed.

One row an entry. A move changes one row, in one transaction, so no kill can double a task or lose one.
Which of several entries with one id counts is told by `ALONG`. Only whoever holds the queue's lock
changes it; ``docs/design/queue.md`` says how it and the lists, which others read, follow each other.

What is committed is on the disk, and whoever is killed in the middle is rolled back by the next. A disk
of this machine gets a write-ahead log, which waits for the disk once a transaction; machines that share a
folder cannot share that, so that elsewhere it is a rollback journal. All access is under the queue's lock.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from loki.base import atomic_file
from loki.base.documents import parsed_json
from loki.base.error import StoreError
from loki.jobs.queue import queued_task
from loki.jobs.queue.queued_task import LISTS, ListName, QueuedTask, entry_digest, fresh

# --- A list as a file: ``{"tasks": […]}``, one task a line. Pure --------------------------------------


class Unreadable(StoreError):
    """A list that is none; somebody may be writing it at this moment."""


def document(name: ListName) -> str:
    """Name of a list's document in a store.

    Example:
        >>> document("dead-letter")
        'queue/dead-letter.json'
    """
    return f"queue/{name}.json"


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
        return cls(dump(queued_task.write_entry(task)))

    @cached_property
    def task(self) -> QueuedTask | None:
        """What it says; None where nobody can tell which task it is."""
        try:
            return queued_task.read_entry(parsed_json(self.line))
        except ValueError:
            return None

    @property
    def why(self) -> str:
        """Why nobody can tell which task it is, or ""."""
        try:
            queued_task.read_entry(parsed_json(self.line))
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
            >>> queue = QueueFile((Entry.of(queued_task.read_entry({"id": "a"})),))
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


# --- The lists, as rows -------------------------------------------------------------------------------

_OTHER = "give it another id, or take it out"

VERSION = 1
"""Of the tables; an index of another version is made anew from the lists."""

ALONG: tuple[ListName, ...] = (
    "pending",
    "in-progress",
    "failed",
    "dead-letter",
    "abandoned",
    "completed",
)
"""The lists by how far along a task is in them."""

FORMER_SECONDS = 600.0
"""How long it is known what stood in a list before. Chosen: longer than a program takes to rewrite one."""

_TABLES = f"""
CREATE TABLE entry (
  key INTEGER PRIMARY KEY, list TEXT NOT NULL, pos REAL NOT NULL, id TEXT, line TEXT NOT NULL,
  counts INT NOT NULL, rank REAL, sequence INT, claimed INT, blocked INT, waits INT,
  shown REAL, copied_to TEXT, copied_at REAL);
CREATE INDEX by_id ON entry (id);
CREATE INDEX by_list ON entry (list, pos, counts);
CREATE INDEX odd ON entry (list, pos) WHERE counts = 0;
CREATE INDEX by_sequence ON entry (list, sequence);
CREATE INDEX last_sequence ON entry (sequence);
CREATE INDEX ready ON entry (rank DESC, pos)
  WHERE list = 'pending' AND counts = 1 AND blocked = 0 AND waits = 0;
CREATE INDEX blocked ON entry (pos) WHERE list = 'pending' AND counts = 1 AND blocked = 1;
CREATE INDEX waiting ON entry (pos)
  WHERE list = 'pending' AND counts = 1 AND blocked = 0 AND waits > 0;
CREATE INDEX claimed ON entry (list) WHERE claimed = 1;
CREATE INDEX unshown ON entry (list) WHERE shown IS NULL;
CREATE TABLE dependency (key INT NOT NULL, needs TEXT NOT NULL);
CREATE INDEX dependency_key ON dependency (key);
CREATE INDEX dependency_needs ON dependency (needs);
CREATE TABLE former (list TEXT NOT NULL, id TEXT NOT NULL, line TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX former_id ON former (id);
CREATE INDEX former_at ON former (at);
CREATE TABLE list (
  name TEXT PRIMARY KEY, extra TEXT NOT NULL DEFAULT '{{}}', digest TEXT DEFAULT '', stat TEXT DEFAULT '',
  size INT NOT NULL DEFAULT 0, dirty REAL);
CREATE TABLE written (number INTEGER PRIMARY KEY, list TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX written_digest ON written (list, digest);
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT);
PRAGMA user_version = {VERSION};
"""

_WAITS = """
UPDATE entry SET waits = (
  SELECT COUNT(*) FROM dependency WHERE dependency.key = entry.key AND NOT EXISTS (
    SELECT 1 FROM entry AS other
    WHERE other.id = dependency.needs AND other.counts = 1 AND other.list = 'completed'))
WHERE key IN (SELECT key FROM dependency WHERE needs = ?)
"""

_ROWS = "SELECT key, list, pos, id, line, shown FROM entry "


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as the index has it.

    Attributes:
        key: names it; pos: its place in its list.
        id: of its task, or None; line: as it is written.
        shown: when its list was first written out with it, seconds since the epoch; None: not yet.
    """

    key: int
    list: ListName
    pos: float
    id: str | None
    line: str
    shown: float | None

    @property
    def task(self) -> QueuedTask:
        """What it says."""
        return task_of(self.line)


@lru_cache(20_000)
def task_of(line: str) -> QueuedTask:
    """The task that a line says. While nothing may be claimed, the same ones are looked at each second."""
    task = Entry(line).task
    assert task is not None
    return task


def kept_key(id_: str) -> str:
    """An id as it is kept: half a character (a lone surrogate) is no text to SQLite."""
    return id_.encode("utf-8", "backslashreplace").decode()


class Lists:
    """All lists as they are at one moment, through one connection; changed by whoever holds the lock.

    Changes belong to the transaction that the connection is in.

    Args:
        connection: to the rows.
        now: seconds since the epoch, for changes.

    Attributes:
        connection, now: likewise.
        has_changed: whether a verb has changed them.
    """

    def __init__(self, connection: sqlite3.Connection, now: float = 0.0) -> None:
        self.connection, self.now = connection, now
        self.has_changed = False

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Run a statement."""
        return self.connection.execute(sql, values)

    def one(self, sql: str, *values: Any) -> Any:
        """The first column of the first row; None: there is none."""
        row = self.run(sql, *values).fetchone()
        return None if row is None else row[0]

    # --- tasks -----------------------------------------------------------------------------------------

    def find(self, id_: str) -> QueuedTask | None:
        """A task, wherever it stands."""
        row = self._counting(id_)
        return None if row is None else row.task

    def where(self, id_: str) -> ListName | None:
        """The list that a task stands in; None: it is unknown."""
        found: ListName | None = self.one(
            "SELECT list FROM entry WHERE id = ? AND counts = 1", kept_key(id_)
        )
        return found

    def of(self, name: ListName, most: int = -1) -> list[QueuedTask]:
        """The tasks of a list that count there, in its order; at most so many, -1: all."""
        return self._tasks("WHERE list = ? AND counts = 1 ORDER BY pos LIMIT ?", name, most)

    def ranked(self, most: int = -1) -> list[QueuedTask]:
        """The tasks of pending, the highest priority first; at most so many, -1: all."""
        where = "WHERE list = 'pending' AND counts = 1 ORDER BY rank DESC, pos LIMIT ?"
        return self._tasks(where, most)

    def ready(self) -> Iterator[QueuedTask]:
        """The tasks of pending that nothing keeps from being claimed, in order."""
        where = (
            "INDEXED BY ready WHERE list = 'pending' AND counts = 1 AND blocked = 0 AND waits = 0 "
            "ORDER BY rank DESC, pos LIMIT ? OFFSET ?"
        )
        begin, most = 0, 1  # the first alone, as nearly always that is taken
        while tasks := self._tasks(where, most, begin):
            yield from tasks
            begin, most = begin + most, 2000

    def blocked(self) -> list[QueuedTask]:
        """The tasks of pending that nobody may claim, in its order."""
        return self._tasks(
            "INDEXED BY blocked WHERE list = 'pending' AND counts = 1 AND blocked = 1 ORDER BY pos"
        )

    def waiting(self) -> list[QueuedTask]:
        """The tasks of pending that wait for others, and that nothing else keeps from being claimed."""
        return self._tasks(
            "INDEXED BY waiting WHERE list = 'pending' AND counts = 1 AND blocked = 0 AND waits > 0 "
            "ORDER BY pos"
        )

    def ids(self) -> list[str]:
        """The ids of all tasks."""
        return [row[0] for row in self.run("SELECT id FROM entry WHERE counts = 1")]

    def needs(self, id_: str) -> tuple[str, ...]:
        """The ids that a task depends on."""
        sql = "SELECT needs FROM dependency JOIN entry USING (key) WHERE id = ? AND counts = 1"
        return tuple(row[0] for row in self.run(sql, kept_key(id_)))

    def count(self, name: ListName) -> int:
        """How many tasks stand in a list."""
        found: int = self.one("SELECT COUNT(*) FROM entry WHERE list = ? AND counts = 1", name)
        return found

    def __len__(self) -> int:
        return sum(map(self.count, LISTS))

    @property
    def claimed(self) -> int:
        """How many tasks are claimed."""
        sql = "SELECT COUNT(*) FROM entry WHERE list = 'in-progress' AND claimed = 1 AND counts = 1"
        found: int = self.one(sql)
        return found

    @property
    def last_sequence(self) -> int:
        """The highest number of submission."""
        return self.one("SELECT MAX(sequence) FROM entry") or 0

    def complaints(self) -> Iterator[str]:
        """A sentence for each entry that was left alone, as it does not count."""
        rows = self._rows("INDEXED BY odd WHERE counts = 0 ORDER BY list, pos")
        for row in (row for name in LISTS for row in rows if row.list == name):
            number = self.one(
                "SELECT COUNT(*) FROM entry WHERE list = ? AND pos <= ?", row.list, row.pos
            )
            where = f".loki/{document(row.list)}: entry {number} is left as it stands"
            if row.id is None:
                yield f"{where}: {Entry(row.line).why}"
            elif (here := self.where(row.id)) == row.list:
                yield f"{where}: {row.id!r} stands there before; {_OTHER}"
            else:
                yield f".loki/{document(row.list)}: {row.id!r} stands in {here}, too, which counts; {_OTHER}"

    def _tasks(self, where: str, *values: Any) -> list[QueuedTask]:
        return [row.task for row in self._rows(where, *values)]

    # --- entries ---------------------------------------------------------------------------------------

    def all_of(self, name: ListName) -> list[Row]:
        """Everything that stands in a list, in its order, also what is no task."""
        return self._rows("WHERE list = ? ORDER BY pos", name)

    def all_with(self, id_: str, name: ListName) -> list[Row]:
        """The entries of an id in a list."""
        return self._rows("WHERE id = ? AND list = ? ORDER BY pos", id_, name)

    def lines(self, name: ListName) -> str:
        """All lines of a list, with commas between, as its file has them."""
        sql = (
            "SELECT group_concat(line, ?) FROM (SELECT line FROM entry WHERE list = ? ORDER BY pos)"
        )
        return self.one(sql, ",\n", name) or ""

    def _counting(self, id_: str) -> Row | None:
        """The entry that counts for a task."""
        return next(iter(self._rows("WHERE id = ? AND counts = 1", kept_key(id_))), None)

    def _rows(self, where: str, *values: Any) -> list[Row]:
        return [Row(*row) for row in self.run(_ROWS + where, *values)]

    # --- what stands beside the tasks of a list --------------------------------------------------------

    def beside(self, name: ListName) -> dict[str, Any]:
        """What stands beside the tasks of a list."""
        found: dict[str, Any] = json.loads(
            self.one("SELECT extra FROM list WHERE name = ?", name) or "{}"
        )
        return found

    def set_extra(self, name: ListName, extra: Mapping[str, Any]) -> None:
        """What stands beside the tasks of a list from now on."""
        self.run("UPDATE list SET extra = ? WHERE name = ?", dump(dict(extra)), name)
        self._touch(name)

    # --- changes of tasks ------------------------------------------------------------------------------

    def add(self, tasks: list[QueuedTask]) -> None:
        """Add new tasks to the end of pending."""
        end = self.end_of("pending")
        for number, task in enumerate(tasks):
            self.insert("pending", end + number, Entry.of(task))
        for task in tasks:
            self.finish(task.id)
        self._touch("pending")

    def replace(self, task: QueuedTask) -> None:
        """A task says something else now, where it stands."""
        row = self._counting(task.id)
        assert row is not None
        self._put(row, task, row.list)

    def move(self, task: QueuedTask, to: ListName) -> QueuedTask:
        """A task, as it is from now on, goes to another list; one that is unknown comes in."""
        row = self._counting(task.id)
        if isinstance(task.raw.get("status"), str):  # who keeps a status there finds the right one
            task = fresh(task, raw={**task.raw, "status": to})
        moved = fresh(task, taken_from=entry_digest(row.task) if row else "")
        if row is None:
            self.insert(to, self._place_for(to, moved.sequence), Entry.of(moved))
            self.finish(task.id)
            self._touch(to)
        else:
            self._put(row, moved, to)
            if row.list == "dead-letter" != to:
                self.set_extra("dead-letter", _counted(self.beside("dead-letter"), to))
        return moved

    def _put(self, row: Row, task: QueuedTask, to: ListName) -> None:
        place = row.pos if to == row.list else self._place_for(to, task.sequence)
        self.change(row, to, place, Entry.of(task))
        self.finish(task.id)
        for name in {row.list, to}:
            self._touch(name)

    def _touch(self, name: ListName) -> None:
        self.has_changed = True
        self.touch(name)

    def touch(self, name: ListName) -> None:
        """A list is not as it was written any more."""
        self.run("UPDATE list SET dirty = ? WHERE name = ? AND dirty IS NULL", self.now, name)

    # --- changes of entries ----------------------------------------------------------------------------

    def insert(self, name: ListName, pos: float, entry: Entry, shown: float | None = None) -> int:
        """A new entry; its key. `finish` its id afterwards."""
        key = self.run(
            "INSERT INTO entry (list, pos, line, shown, counts, id, rank, sequence, claimed, blocked, "
            "waits) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)",
            *(name, pos, entry.line, shown),
            *self._said(entry.task),
        ).lastrowid
        assert key is not None
        self._depend(key, entry.task)
        return key

    def change(self, row: Row, name: ListName, pos: float, entry: Entry) -> None:
        """An entry says something else, or stands elsewhere. `finish` its id afterwards."""
        if row.id is not None:
            self.run("INSERT INTO former VALUES (?, ?, ?, ?)", row.list, row.id, row.line, self.now)
        self.run(
            "UPDATE entry SET list = ?, pos = ?, line = ?, shown = ?, copied_to = NULL, id = ?, "
            "rank = ?, sequence = ?, claimed = ?, blocked = ?, waits = ? WHERE key = ?",
            *(name, pos, entry.line, row.shown if name == row.list else None),
            *self._said(entry.task),
            row.key,
        )
        if self.one("SELECT 1 FROM dependency WHERE key = ?", row.key):
            self.run("DELETE FROM dependency WHERE key = ?", row.key)
        self._depend(row.key, entry.task)

    def _said(self, task: QueuedTask | None) -> tuple[Any, ...]:
        """Id, rank, sequence, claimed, blocked and waits."""
        if task is None:
            return (None,) * 6
        number = None if task.sequence is None else min(task.sequence, 2**62)
        is_claimed, is_blocked = task.claim is not None, task.blocked is not None
        waits = self._waits(task.dependencies)
        return kept_key(task.id), float(task.rank), number, is_claimed, is_blocked, waits

    def _depend(self, key: int, task: QueuedTask | None) -> None:
        if task is not None and task.dependencies:
            self.connection.executemany(
                "INSERT INTO dependency VALUES (?, ?)",
                [(key, kept_key(id_)) for id_ in task.dependencies],
            )

    def _waits(self, needs: Iterable[str]) -> int:
        return sum(self.where(id_) != "completed" for id_ in needs)

    def remove(self, row: Row) -> None:
        """An entry is gone. `finish` its id afterwards."""
        self.run("DELETE FROM entry WHERE key = ?", row.key)
        self.run("DELETE FROM dependency WHERE key = ?", row.key)

    def finish(self, id_: str) -> None:
        """Which entry of an id counts, and who waits for it."""
        id_ = kept_key(id_)
        found = self.run(
            "SELECT key, list, counts FROM entry WHERE id = ? ORDER BY pos, key", id_
        ).fetchall()
        best = max(
            found, key=lambda row: ALONG.index(row[1]), default=None
        )  # of one list the first
        for key, _, counts in found:
            is_best = best is not None and key == best[0]
            if counts != is_best:
                self.run("UPDATE entry SET counts = ? WHERE key = ?", is_best, key)
        if self.one("SELECT 1 FROM dependency WHERE needs = ?", id_):
            self.run(_WAITS, id_)

    def _place_for(self, name: ListName, sequence: int | None) -> float:
        """Where a task goes that comes into a list: before those that were submitted later.

        One of another program, which has no number, goes before all.
        """
        if sequence is None:
            first = self.one("SELECT MIN(pos) FROM entry WHERE list = ?", name)
            return 0.0 if first is None else float(first) - 1
        later = self.run(
            "SELECT pos FROM entry WHERE list = ? AND sequence > ? ORDER BY sequence LIMIT 1",
            name,
            sequence,
        ).fetchone()
        if later is None:
            return self.end_of(name)
        pos = float(later[0])
        last = self.one("SELECT MAX(pos) FROM entry WHERE list = ? AND pos < ?", name, pos)
        last = pos - 2 if last is None else float(last)
        if last < (middle := (last + pos) / 2) < pos:
            return middle
        self.number(name, [row.key for row in self.all_of(name)])  # there was no room between them
        return self._place_for(name, sequence)

    def end_of(self, name: ListName) -> float:
        """Behind everything in a list."""
        last = self.one("SELECT MAX(pos) FROM entry WHERE list = ?", name)
        return 1.0 if last is None else float(last) + 1

    def number(self, name: ListName, keys: Iterable[int]) -> None:
        """Give the entries of a list places that are far apart."""
        self.connection.executemany(
            "UPDATE entry SET pos = ? WHERE key = ? AND list = ?",
            [(float(n), key, name) for n, key in enumerate(keys, 1)],
        )


def _counted(extra: Mapping[str, Any], to: ListName) -> dict[str, Any]:
    """What stands beside the dead letters, after one of them went elsewhere: the one place that counts."""
    known = metadata(extra)
    if name := _COUNTS.get(to):
        count = known[name]
        known[name] = (count if isinstance(count, int) else 0) + 1
    return {**extra, "metadata": known}


_COUNTS: Mapping[ListName, str] = {
    "abandoned": "total_abandoned",
    "pending": "total_recovered",
    "completed": "total_recovered",
}


def metadata(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What ``dead-letter.json`` says of all dead letters, complete."""
    found = extra.get("metadata")
    said = found if isinstance(found, dict) else {}
    return {"last_reviewed": None, "total_abandoned": 0, "total_recovered": 0, **said}


def _make(connection: sqlite3.Connection) -> None:
    """The tables, empty."""
    connection.executescript("BEGIN IMMEDIATE;" + _TABLES)
    connection.executemany("INSERT INTO list (name) VALUES (?)", [(name,) for name in LISTS])


# --- The file of the rows -----------------------------------------------------------------------------

NAME = "state/queue.db"

PATIENCE = 30.0
"""Seconds to wait for a program that reads the file without the queue's lock. Chosen."""

logger = logging.getLogger("loki")


class Database:
    """The index's file, through one connection a process.

    Args:
        folder: the workspace's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._connection: sqlite3.Connection | None = None
        self._pid, self._inode = 0, 0

    def begin(self, now: Callable[[], float]) -> Lists:
        """The lists, in a transaction of their own, which `commit` ends; see `undone_where_it_fails`.

        Args:
            now: the clock, in seconds since the epoch: what the lists are held against once they are
                ours, as others may have kept them for long.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise self._error(error) from error
            connection = self._anew(error)
        return Lists(connection, now())

    def _open(self) -> sqlite3.Connection:
        with suppress(FileNotFoundError):
            is_same = os.stat(self.path).st_ino == self._inode and self._pid == os.getpid()
            if self._connection is not None and is_same:
                return self._connection
        if self._connection is not None:
            _forget(self._connection, is_own=self._pid == os.getpid())
        atomic_file.make_folder(self.path.parent)
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA journal_mode = {_journal(self.path)}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -16000")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found != VERSION:
                if found or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                    raise sqlite3.DatabaseError(f"of version {found}, not {VERSION}")
                _make(connection)
                connection.execute("COMMIT")
                os.chmod(self.path, 0o600)
            self._inode = os.stat(self.path).st_ino
        except BaseException:
            connection.close()
            self._connection = None
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _anew(self, error: sqlite3.DatabaseError) -> sqlite3.Connection:
        """An index that cannot be read is set aside: the lists say what it said, up to a moment ago."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.corrupt-{number}")).exists():
            number += 1
        try:
            os.replace(self.path, aside)
            for rest in ("-journal", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self.path}{rest}")
            logger.warning(
                "%s: %s; set aside as %s, read anew from the lists", self.path, error, aside.name
            )
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
        except (OSError, sqlite3.Error) as problem:
            raise self._error(problem) from problem
        return connection

    def commit(self, lists: Lists) -> None:
        """What was changed is on the disk when this returns.

        Raises:
            StoreError: it is not, and nothing has changed.
        """
        try:
            lists.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back(lists)
            raise self._error(error) from error

    @contextmanager
    def undone_where_it_fails(self, lists: Lists) -> Iterator[None]:
        """Where anything raises inside, nothing has changed.

        Raises:
            StoreError: the index cannot be read or written.
        """
        try:
            yield
        except BaseException as error:
            self._roll_back(lists)
            if isinstance(error, sqlite3.Error):
                raise self._error(error) from error
            raise

    def _roll_back(self, lists: Lists) -> None:
        with suppress(sqlite3.Error):
            lists.connection.execute("ROLLBACK")

    def _error(self, error: Exception) -> StoreError:
        return StoreError(f"could not write {self.path}: {error}")


def copied(lists: Lists) -> Lists:
    """A copy of the lists that nobody changes any more."""
    copy = _memory()
    lists.connection.backup(copy)
    return Lists(copy)


def in_memory(now: float = 0.0) -> Lists:
    """Empty lists without a file, in a transaction."""
    connection = _memory()
    _make(connection)
    return Lists(connection, now)


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _journal(path: Path) -> str:
    """A disk has a number of its own; what comes over a network, or is none, has none."""
    return "WAL" if os.major(os.stat(path.parent).st_dev) else "PERSIST"


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself cannot be read, be the disk as it may."""
    return not isinstance(error, sqlite3.OperationalError)


def _forget(connection: sqlite3.Connection, *, is_own: bool) -> None:
    """A connection of the parent is not closed: that would end locks that are the parent's."""
    if is_own:
        connection.close()
    else:
        _parents.append(connection)


_parents: list[sqlite3.Connection] = []
