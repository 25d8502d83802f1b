"""Whether what could be read before a face was called is still there afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from loki.base import documents, path_containment
from loki.base.error import StoreError
from loki.jobs.queue import queue_index

DERIVED = frozenset({"state/queue.db"})
"""Files that are made anew from others whenever they cannot be used: there is nothing in them to lose."""

OWN_READER = ("run/", "state/sessions/", "state/test-history.json", "recurring/")
"""Where documents are whose form only their reader knows (`loki.base.documents.form_of` knows the rest)."""


def lost(
    folder: Path, before: Mapping[str, bytes], path: str, data: bytes | None, may: frozenset[str]
) -> list[str]:
    """What is gone.

    Args:
        folder: ``.loki``, as it is now.
        before: what each file held before anything was damaged.
        path: the damaged file; data: what it held then, None: a folder stood there.
        may: what goes in any case.

    Returns:
        Names of files, of logs of which a line is gone, ``queued ID`` of tasks.
    """
    was = {**before, path: data} if path else dict(before)
    gone = [name for name in _gone(folder, was, path) if name not in may]
    return [*gone, *(one for one in _unqueued(folder, was) if one not in may)]


def _gone(folder: Path, was: Mapping[str, bytes | None], path: str) -> Iterator[str]:
    for name, data in was.items():
        if data is None or name in DERIVED or name.startswith(("queue/", "signals/")):
            continue
        try:
            now = (folder / name).read_bytes()
        except OSError:
            now = b""
        if now == data:
            continue
        if name.endswith(".jsonl"):
            if not _records(data) <= _records(now) and not _is_aside(folder, name, data):
                yield name
        elif name == path:
            if _is_damaged(name, data) and not _is_aside(folder, name, data):
                yield name
        elif not (folder / name).exists():
            yield name


def _records(data: bytes) -> Counter[bytes]:
    """The lines of a log that are objects."""
    found = Counter[bytes]()
    for line in data.split(b"\n"):
        try:
            if isinstance(json.loads(line), dict):
                found[line.rstrip(b"\r")] += 1
        except (ValueError, RecursionError):
            continue
    return found


def _is_damaged(name: str, data: bytes) -> bool:
    """Whether a document is one that must be set aside before something takes its place."""
    if not name.endswith(".json"):
        return False
    text = data.decode("utf-8", "replace")
    form = documents.form_of(name)
    if form is not None:
        return bool(documents.read_document(form, text)[1])
    return name.startswith(OWN_READER) and not _is_object(text)


def _is_object(text: str) -> bool:
    try:
        return isinstance(documents.parsed_json(text), dict)
    except ValueError:
        return False


def _is_aside(folder: Path, name: str, data: bytes) -> bool:
    """Whether a file holds just this, beside the damaged one or under `loki.memory.store.ASIDE`."""
    stem = name.rpartition("/")[2]
    return any(
        stem in one and (folder / one).is_file() and (folder / one).read_bytes() == data
        for one in path_containment.files(folder)
    )


def _unqueued(folder: Path, was: Mapping[str, bytes | None]) -> list[str]:
    """Tasks of the queue that stand in no list any more."""
    lists = {name: data for name, data in was.items() if name.startswith("queue/")}
    now = {
        name: (folder / name).read_bytes()
        for name in path_containment.files(folder, "queue")
        if name.endswith(".json")
    }
    if now == lists:
        return []
    there = _ids(now)
    return sorted(f"queued {one}" for one in _ids(lists) - there)


def _ids(lists: Mapping[str, bytes | None]) -> set[str]:
    found: set[str] = set()
    for name, data in lists.items():
        try:
            found |= queue_index.read(name, (data or b"").decode("utf-8", "replace")).tasks.keys()
        except StoreError:
            continue
    return found
