"""The queue's lists as files, which other programs read and write: taken in, and written out.

The other program read the list some time before it wrote it, and knows nothing of what changed
between. So what it lacks is gone only if it stood there long enough to have been read; an older copy of
what has changed since is no news; and of one whose text is new, what is new counts.

The index is what is true; the lists follow it within `DELAY`. Who writes a list looks again right before
whether it is still the one that was read, and, as the two change places in one step, sees afterwards
what it has displaced: another program's writing is taken in whenever it comes.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from loki.base import atomic_file, path_containment
from loki.base.documents import parsed_json
from loki.base.error import StoreError
from loki.base.locks import boot_id
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue_index import (
    ALONG,
    FORMER_SECONDS,
    Entry,
    Lists,
    QueueFile,
    Row,
    Unreadable,
    document,
    dump,
    kept_key,
    read,
    text,
)
from loki.jobs.queue.queued_task import LISTS, ListName
from loki.memory.store import ASIDE

# --- What another program's writing means. Pure -------------------------------------------------------

SLOW = 10.0
"""Seconds between reading a list and writing it that other programs may take. Chosen, not measured."""

OURS = ("claim", "generation", "lost", "taken_from", "lifetime_attempts")
"""Fields that no other program has a say in while a task is a worker's."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What stands in a list now that another program has written it.

    Attributes:
        order: the entries of its file: what was known, or None; what it says now, None: as before.
        gone: what it took out.
        kept: what it lacks because it had not read it yet.
        stale: older copies of tasks that have gone on since.
    """

    order: list[tuple[Row | None, Entry | None]] = field(default_factory=list)
    gone: list[Row] = field(default_factory=list)
    kept: list[Row] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)


def merge(
    rows: Sequence[Row],
    entries: Sequence[Entry],
    was_here: Callable[[Entry], float | None],
    is_known: Callable[[str], bool],
    now: float,
) -> Merged:
    """What another program's entries mean.

    Args:
        rows: what stands in the list by what is known.
        entries: what stands in its file.
        was_here: when that very entry of the list was replaced or taken away here; None: never.
        is_known: whether a task stands in any list.
        now: seconds since the epoch.
    """
    pairs, rest = _same_lines(rows, entries)
    by_id: defaultdict[str | None, deque[Row]] = defaultdict(deque)
    for row in rest.values():
        by_id[row.id].append(row)
    merged, since = Merged(), now - SLOW
    for entry, same in pairs:
        task = entry.task if same is None else None
        some = by_id.get(kept_key(task.id)) if task is not None else None
        known = some.popleft() if some else None
        if known is not None:
            del rest[known.key]
        is_same = known is not None and parsed_json(known.line) == parsed_json(entry.line)
        if same is not None or is_same:
            merged.order.append((same or known, None))
        elif (at := was_here(entry) if task and is_known(task.id) else None) is not None:
            merged.stale.append(entry)
            since = min(since, at)
            if known is not None:
                merged.order.append((known, None))
        else:
            merged.order.append((known, entry if known is None else _with(known, entry)))
    for row in rest.values():
        is_unseen = row.shown is None or row.shown >= since
        (merged.kept if is_unseen else merged.gone).append(row)
    return merged


def _same_lines(
    rows: Sequence[Row], entries: Sequence[Entry]
) -> tuple[list[tuple[Entry, Row | None]], dict[int, Row]]:
    """Each entry with what is known to the letter; and what is known and stands there no more."""
    left: defaultdict[str, deque[Row]] = defaultdict(deque)
    for row in rows:
        left[row.line].append(row)
    pairs = [
        (entry, left[entry.line].popleft() if left.get(entry.line) else None) for entry in entries
    ]
    return pairs, {row.key: row for some in left.values() for row in some}


def _with(row: Row, entry: Entry) -> Entry:
    """What another program says of a task; whose it is, is said here."""
    here, there = parsed_json(row.line), parsed_json(entry.line)
    if not isinstance(here, dict) or not isinstance(there, dict) or not row.task.claim:
        return entry
    own = {name: here[name] for name in OURS if name in here}
    return Entry(
        dump({**{name: value for name, value in there.items() if name not in OURS}, **own})
    )


# --- The files of the lists ---------------------------------------------------------------------------

DELAY = 1.0
"""Seconds that a list may be behind; chosen: nobody who looks at it minds, and it costs a few percent."""

SMALL = 65_536
"""Bytes of a list that is written at once. Chosen: that takes a tenth of a millisecond."""

MOST_WRITTEN = 200
"""Writings of a list that are known again when they come back. Chosen."""

CURRENT = "queue/current-task.json"

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Writing:
    """A list that is about to be written.

    Attributes:
        name: of the list; data: what it will be.
    """

    name: ListName
    data: bytes


class QueueFileSync:
    """The files of the lists.

    Args:
        folder: the workspace's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[ListName, str] = {}
        self._current = ""

    def path(self, name: ListName) -> Path:
        """Where a list is."""
        return self._folder / document(name)

    # --- taking in -------------------------------------------------------------------------------------

    def take_in(self, lists: Lists) -> None:
        """Take in what other programs have written since.

        Raises:
            Unreadable: a list is none at this moment.
            StoreError: one cannot be read.
        """
        known = {row[0]: row[1:] for row in lists.run("SELECT name, stat, digest FROM list")}
        changed: list[tuple[ListName, QueueFile, str, bytes]] = []
        is_new_boot = lists.one("SELECT value FROM fact WHERE name = 'boot'") != boot_id()
        for name in LISTS:
            stat = self._seen[name] = stamp(self.path(name))
            before, last = known[name]
            if stat == before and (stat or not last):
                continue
            data = contents(self.path(name))
            digest = _digest(data)
            # Whoever was to make it was killed before, or the machine went down.
            if stat == before or (is_new_boot and last and _is_torn(data)):
                self._is_ours(lists, name, stat, "")
            elif last == digest or self._was_written(lists, name, digest):
                self._is_ours(lists, name, stat, digest)
            else:
                lines = {row.line for row in lists.all_of(name)}
                changed.append((name, self._read(name, data, bool(lines), lines), stat, data))
        if is_new_boot:
            lists.run("INSERT OR REPLACE INTO fact VALUES ('boot', ?)", boot_id())
        for name, found, stat, data in changed:
            self._merge(lists, name, found, stat, data)

    def _read(self, name: ListName, data: bytes, has_tasks: bool, lines: set[str]) -> QueueFile:
        if has_tasks and not data.strip() and self.path(name).exists():
            raise Unreadable(
                f".loki/{document(name)}: is empty, and held tasks before: is it being written? To "
                "empty it, remove the file"
            )
        return read(document(name), data.decode("utf-8", "replace"), lines)

    def _was_written(self, lists: Lists, name: ListName, digest: str) -> bool:
        sql = "SELECT 1 FROM written WHERE list = ? AND digest = ?"
        return lists.one(sql, name, digest) is not None

    def _is_ours(self, lists: Lists, name: ListName, stat: str, digest: str) -> None:
        """What stands there was written here, now or before."""
        lists.run("UPDATE list SET stat = ? WHERE name = ?", stat, name)
        if lists.one("SELECT digest FROM list WHERE name = ?", name) != digest:
            lists.touch(name)

    def _merge(
        self, lists: Lists, name: ListName, found: QueueFile, stat: str, data: bytes
    ) -> None:
        def was_here(entry: Entry) -> float | None:
            rows = lists.run(
                "SELECT line, at FROM former WHERE id = ? AND list = ?",
                kept_key(id_of(entry)),
                name,
            )
            said = parsed_json(entry.line)
            return next((at for line, at in rows.fetchall() if parsed_json(line) == said), None)

        rows = lists.all_of(name)
        merged = merge(
            rows, found.entries, was_here, lambda id_: lists.where(id_) is not None, lists.now
        )
        ids = _apply(lists, name, merged.order)
        for entry in merged.stale:
            lists.run(
                "UPDATE entry SET copied_to = ?, copied_at = ? WHERE id = ? AND counts = 1 "
                "AND list != ?",
                *(name, lists.now, kept_key(id_of(entry)), name),
            )
        unseen = [row for row in merged.kept if row.shown is not None]
        for row in merged.gone if data or not rows else [*merged.gone, *unseen]:
            ids |= {row.id} if row.id is not None else set()
            _take_out(lists, row)
        for id_ in ids:
            lists.finish(id_)
            _end_move(lists, id_)
        is_dirty = lists.one("SELECT dirty FROM list WHERE name = ?", name) is not None
        extra = {**found.extra, **lists.beside(name)} if is_dirty else dict(found.extra)
        for row in unseen if data else ():
            logger.warning(
                ".loki/%s: another program wrote it without %r, which had just been written there: "
                "it is put back",
                document(name),
                row.id or row.line[:60],
            )
        is_whole = not (merged.kept or merged.stale or is_dirty) and bool(data)
        lists.run(
            "UPDATE list SET extra = ?, stat = ?, digest = ?, size = ?, dirty = ? WHERE name = ?",
            *(dump(extra), stat, _digest(data), len(data)),
            *(None if is_whole or not (rows or data) else lists.now, name),
        )

    # --- writing out -----------------------------------------------------------------------------------

    def due(self, lists: Lists, *, at_once: bool = False) -> list[Writing]:
        """What is to be written now; the index says from then on that it was.

        Args:
            lists: in a transaction, which is to be committed before `write`.
            at_once: whether it is due or not.
        """
        dirty = lists.run("SELECT name, dirty, size FROM list WHERE dirty IS NOT NULL").fetchall()
        if not dirty:
            return []
        oldest = min(row[1] for row in dirty)
        is_due = (
            at_once or not 0 <= lists.now - oldest < DELAY or all(row[2] <= SMALL for row in dirty)
        )
        if not is_due:
            return []
        names = {row[0] for row in dirty}
        # From the end: a task on its way stands in two lists rather than in none.
        found = [self._prepared(lists, name) for name in reversed(ALONG) if name in names]
        lists.run("DELETE FROM former WHERE at < ?", lists.now - FORMER_SECONDS)
        return found

    def _prepared(self, lists: Lists, name: ListName) -> Writing:
        data = text(lists.lines(name), lists.beside(name)).encode()
        digest = _digest(data)
        lists.run(
            "UPDATE list SET digest = ?, stat = ?, size = ?, dirty = NULL WHERE name = ?",
            # Killed from here on: what was there and is missing was removed by somebody else.
            *(digest, "being written" if self._seen.get(name) else "", len(data), name),
        )
        number = lists.run(
            "INSERT INTO written (list, digest) VALUES (?, ?)", name, digest
        ).lastrowid
        lists.run(
            "DELETE FROM written WHERE number <= ?", (number or 0) - len(LISTS) * MOST_WRITTEN
        )
        lists.run("UPDATE entry SET shown = ? WHERE list = ? AND shown IS NULL", lists.now, name)
        return Writing(name, data)

    def write(self, writings: Iterable[Writing]) -> bool:
        """Write lists; whether none was another program's by then.

        Raises:
            StoreError: one cannot be written.
        """
        return not [one for one in writings if not self._write(one)]

    def _write(self, writing: Writing) -> bool:
        path, seen = self.path(writing.name), self._seen.get(writing.name, "")
        atomic_file.make_folder(path.parent)
        return atomic_file.replace_if(path, writing.data, lambda stat: _stamp(stat) == seen)

    def show_current(self, lists: Lists) -> None:
        """Say in ``current-task.json``, which others read, what is worked on: what was claimed last.

        One that names no task of the lists is another program's, and stays; one that is no JSON, as a
        machine that went down leaves it, is set aside.

        Raises:
            StoreError: it cannot be read or written.
        """
        path, data = self._folder / CURRENT, _current(lists)
        before = stamp(path)
        old = contents(path)
        if is_garbage(old):
            self._set_aside(old)
        elif old and not _is_known(old, lists):
            return
        if not data:
            if old:
                path_containment.remove(self._folder, CURRENT)
        elif data != old:
            atomic_file.replace_if(path, data, lambda stat: _stamp(stat) == before)

    def mend_current(self, lists: Lists) -> None:
        """Mend ``current-task.json`` where it is garbage; one look, as long as it stays as it was.

        Raises:
            StoreError: it cannot be read or written.
        """
        path = self._folder / CURRENT
        seen = stamp(path)
        if seen != self._current:
            if is_garbage(contents(path)):
                self.show_current(lists)
            self._current = stamp(path)

    def _set_aside(self, garbage: bytes) -> None:
        if not garbage.strip(b"\0 \t\r\n"):  # nothing is lost
            return
        kept = f"{ASIDE}/{CURRENT}-{secrets.token_hex(4)}"
        atomic_file.write_atomic(self._folder / kept, garbage)
        logger.warning(".loki/%s was damaged: what it held is kept as .loki/%s", CURRENT, kept)


def _apply(lists: Lists, name: ListName, order: list[tuple[Row | None, Entry | None]]) -> set[str]:
    """Let the entries of a list stand as another program has written them; ids to be settled."""
    ids: set[str] = set()
    keys: list[int] = []
    last, is_in_order = float("-inf"), True
    end = lists.end_of(name)
    for number, (row, entry) in enumerate(order):
        if row is None:
            assert entry is not None
            # Between those around it, if they are numbered anew; else at the end.
            keys.append(lists.insert(name, end + number, entry, lists.now))
            is_in_order &= all(one is None for one, _ in order[number:])
        else:
            is_in_order &= row.pos > last
            last = max(last, row.pos)
            keys.append(row.key)
            if entry is not None:
                lists.change(row, name, row.pos, entry)
        task = entry.task if entry is not None else None
        ids |= {task.id} if task is not None else set()
        ids |= {row.id} if row is not None and entry is not None and row.id is not None else set()
    if not is_in_order:
        rest = set(keys)
        lists.number(name, [*keys, *(row.key for row in lists.all_of(name) if row.key not in rest)])
    return ids


def _end_move(lists: Lists, id_: str) -> None:
    """Take the older copy away where a move between two lists was interrupted: the newer one says so."""
    if lists.one("SELECT COUNT(*) FROM entry WHERE id = ?", kept_key(id_)) != 2:  # noqa: PLR2004
        return
    rows = [row for name in ALONG for row in lists.all_with(kept_key(id_), name)]
    for older, newer in (rows, reversed(rows)):
        taken = newer.task.taken_from
        if taken and older.list != newer.list and taken == queued_task.entry_digest(older.task):
            lists.remove(older)
            lists.touch(older.list)
            lists.finish(id_)
            return


def _take_out(lists: Lists, row: Row) -> None:
    """An entry that another program took out; it may have put the task back elsewhere before."""
    copied, at = lists.run(
        "SELECT copied_to, copied_at FROM entry WHERE key = ?", row.key
    ).fetchone() or (None, 0.0)
    others = (
        lists.one("SELECT COUNT(*) FROM entry WHERE id = ?", row.id) if row.id is not None else 0
    )
    if copied is not None and others == 1 and lists.now - at < SLOW:
        lists.change(row, copied, lists.end_of(copied), Entry(row.line))
        lists.touch(copied)
    else:
        lists.remove(row)


def id_of(entry: Entry) -> str:
    """The id of an entry's task."""
    assert entry.task is not None
    return entry.task.id


def _current(lists: Lists) -> bytes:
    """What ``current-task.json`` is to say: what was claimed last; empty: nothing."""
    held = [(task.claim.since, task.id, task) for task in lists.of("in-progress") if task.claim]
    if not held:
        return b""
    raw = dict(max(held, key=lambda one: one[:2])[2].raw)
    text = json.dumps(raw, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _is_known(data: bytes, lists: Lists) -> bool:
    try:
        task = queued_task.read_entry(parsed_json(data.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return False
    return lists.where(task.id) is not None


def is_garbage(data: bytes) -> bool:
    """Whether there is something, and it is no JSON."""
    try:
        parsed_json(data.decode("utf-8") or "null")
    except (ValueError, RecursionError):
        return True
    return False


def _is_torn(data: bytes) -> bool:
    if not data.strip():
        return True
    try:
        read("", data.decode("utf-8", "replace"))
    except StoreError:
        return True
    return False


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest() if data else ""


def contents(path: Path) -> bytes:
    """The content of a file; empty: there is none.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def stamp(path: Path) -> str:
    """What tells whether a file is another than before; "": there is none.

    Raises:
        StoreError: it cannot be looked at.
    """
    try:
        return _stamp(os.stat(path))
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def _stamp(found: os.stat_result | None) -> str:
    return "" if found is None else f"{found.st_ino}:{found.st_mtime_ns}:{found.st_size}"
