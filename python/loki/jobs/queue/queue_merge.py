"""What another program's writing of a list means for what is known. Pure.

The other program read the list some time before it wrote it, and knows nothing of what changed
between. So what it lacks is gone only if it stood there long enough to have been read; an older copy of
what has changed since is no news; and of one whose text is new, what is new counts.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from loki.jobs.queue.queue_index import Row, kept_key
from loki.jobs.queue.queue_list_file import Entry, dump
from loki.memory.document_validation import parsed_json

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
        if same is not None or (known is not None and _says_the_same(known, entry)):
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


def _says_the_same(row: Row, entry: Entry) -> bool:
    return bool(parsed_json(row.line) == parsed_json(entry.line))


def _with(row: Row, entry: Entry) -> Entry:
    """What another program says of a task; whose it is, is said here."""
    here, there = parsed_json(row.line), parsed_json(entry.line)
    if not isinstance(here, dict) or not isinstance(there, dict) or not row.task.claim:
        return entry
    own = {name: here[name] for name in OURS if name in here}
    return Entry(
        dump({**{name: value for name, value in there.items() if name not in OURS}, **own})
    )
