"""All attempts of a project as one raw table: quickly where the logs are whole, else carefully.

Many logs are read at once, column by column (`loki.analysis.fast_attempt_log`). A log that is refused there,
or that holds what would be read otherwise than by `loki.memory.history` — a torn line, a number where
text belongs, an attempt that was written twice, a failure that another version recognized — is read
record by record instead. Both ways give the same table; ``tests/py/analysis/test_attempt_log.py`` holds them
against each other. Neither looks at what no table shows: a record that the history leaves out for that
alone (``commands`` that are no list) is in the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import fitting
from loki.analysis.fast_attempt_log import CHECK, MARKS, RAW, Log, checked, parsed
from loki.memory.attempt import Attempt
from loki.memory.history import log_name, read_attempts
from loki.recognition.failure import RECOGNIZER_VERSION
from loki.stores.file_store import FileStore

GROUP_BYTES = 8 << 20
"""Bytes of logs that are read at once: enough work for a thread. Chosen, not measured."""

_NEEDED = frozenset((*RAW.names, *MARKS))


@dataclass(frozen=True)
class RawAttempts:
    """The attempts of several tasks, task by task, in order.

    Attributes:
        table: rows as `RAW` has them.
        tasks: number of each row's task in the list of tasks that was asked for.
    """

    table: pa.Table
    tasks: pa.Array


def read(store: FileStore, names: Sequence[str]) -> RawAttempts:
    """The attempts of these tasks; a record that cannot be read is told to the logger and left out.

    Raises:
        StoreError: a log cannot be read at all.
    """
    quick: list[tuple[pa.Table, pa.Array]] = []
    careful: set[int] = set()
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for found, left in pool.map(lambda group: _quickly(store, group), _groups(store, names)):
            quick += found
            careful |= left
    parts = []
    if quick:
        table = pa.concat_tables(table for table, _ in quick).combine_chunks()
        table, tasks, doubtful = checked(table, pa.concat_arrays([tasks for _, tasks in quick]))
        careful |= doubtful
        if doubtful:
            sure = pc.invert(pc.is_in(tasks, pa.array(sorted(doubtful), pa.int32())))
            table, tasks = table.filter(sure), tasks.filter(sure)
        parts.append((table, tasks))
    parts += [_carefully(store, number, names[number]) for number in sorted(careful)]
    return _joined(parts)


def _joined(parts: Sequence[tuple[pa.Table, pa.Array]]) -> RawAttempts:
    if not parts:
        return RawAttempts(RAW.empty_table(), pa.array([], pa.int32()))
    tasks = pa.concat_arrays([tasks for _, tasks in parts])
    table = pa.concat_tables([table for table, _ in parts])
    if len(parts) == 1:
        return RawAttempts(table, tasks)
    order = pc.array_sort_indices(tasks)  # which is stable
    return RawAttempts(table.take(order).combine_chunks(), tasks.take(order))


Group = list[tuple[int, str]]
"""Some tasks, each with its number."""


def _groups(store: FileStore, names: Sequence[str]) -> Iterator[Group]:
    group: Group = []
    size = 0
    for number, task in enumerate(names):
        try:
            bytes_ = os.stat(store.folder / log_name(task)).st_size
        except OSError:
            bytes_ = 0  # there is none, or reading it will say what is wrong
        if group and size + bytes_ > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append((number, task))
        size += bytes_
    if group:
        yield group


def _quickly(store: FileStore, group: Group) -> tuple[list[tuple[pa.Table, pa.Array]], set[int]]:
    """What is read at once of some tasks, and the numbers of those that need care."""
    logs = [(number, _content(store, task)) for number, task in group]
    found, careful = _sound([(number, data) for number, data in logs if data])
    return found, careful | {number for number, data in logs if data is None}


def _sound(logs: Sequence[Log]) -> tuple[list[tuple[pa.Table, pa.Array]], set[int]]:
    """The same of logs: one that is damaged is found by halves."""
    whole = parsed(logs)
    if whole is not None:
        return [whole], set()
    if len(logs) <= 1:
        return [], {number for number, _ in logs}
    (first, some), (second, others) = map(_sound, (logs[: len(logs) // 2], logs[len(logs) // 2 :]))
    return first + second, some | others


def _content(store: FileStore, task: str) -> bytes | None:
    """A log's bytes; None where it cannot be read, as `FileStore` will say."""
    try:
        return (store.folder / log_name(task)).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError:
        return None


# --- carefully ---------------------------------------------------------------------------------------


def _carefully(store: FileStore, number: int, task: str) -> tuple[pa.Table, pa.Array]:
    """A task's attempts as `loki.memory.history` reads them, record by record."""
    attempts = read_attempts(_light(store.scan(log_name(task))), log_name(task))
    rows = [_row(attempt) for attempt in attempts]
    table = pa.Table.from_pylist(rows, RAW)
    return table, pa.repeat(pa.scalar(number, pa.int32()), len(rows))


def _light(records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Records with what is needed of them; a mark that is null marks nothing."""
    for record in records:
        slim = {name: value for name, value in record.items() if name in _NEEDED}
        for mark in MARKS:
            if slim.get(mark) is None:
                slim.pop(mark, None)
        if isinstance(record.get("checks"), list):
            slim["checks"] = [_slim_check(check) for check in record["checks"]]
        yield slim


def _slim_check(check: Any) -> Any:
    if not isinstance(check, dict):
        return check
    return {field.name: check[field.name] for field in CHECK if field.name in check}


def _row(attempt: Attempt) -> dict[str, Any]:
    values = {name: getattr(attempt, name) for name in RAW.names}
    values["checks"] = [
        {field.name: getattr(check, field.name) for field in CHECK} for check in attempt.checks
    ]
    failure = attempt.failure
    if failure is not None and failure.get("recognizer_version") != RECOGNIZER_VERSION:
        known = attempt.recognized()
        values["failure"] = failure if known is None else known.to_dict()
    return {name: fitting(value, RAW.field(name).type) for name, value in values.items()}
