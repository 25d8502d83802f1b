"""All attempts of a project as one raw table: quickly where the logs are whole, else carefully.

Many logs are read at once, column by column: faster than a parser in Python by the figures of
``benchmarks/analysis.py``. A log that is refused there, or that holds what would be read otherwise than by
`loki.memory.attempt` — a torn line, a number where text belongs, an attempt that was written twice, a
failure that another version recognized — is read record by record instead. Both ways give the same table;
``tests/py/analysis/test_attempt_log.py`` holds them against each other. Neither looks at what no table
shows: a record that the history leaves out for that alone (``commands`` that are no list) is in the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import TYPES, JsonLines, fitting, whole
from loki.memory.attempt import REQUIRED, Attempt, log_name, read_attempts
from loki.recognition.failure import RECOGNIZER_VERSION
from loki.stores.file_store import FileStore

# --- Column by column, and which rows are to be doubted -----------------------------------------------

_TEXT, _WHOLE, _NUMBER, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()


def _all(type_: pa.DataType, *names: str) -> list[tuple[str, pa.DataType]]:
    """Fields of one type."""
    return [(name, type_) for name in names]


FRAME = pa.struct([*_all(_TEXT, "path", "function"), ("line", _WHOLE), ("in_project", _TRUTH)])
MATCH = pa.struct([*_all(_TEXT, "pattern", "kind", "band", "strategy"), ("confidence", _NUMBER)])
FAILURE = pa.struct(
    [
        *_all(_TEXT, "message", "tool", "language", "error_type", "error_code", "path"),
        *_all(_TEXT, "extension", "normalized", "fingerprint", "signature"),
        *_all(_WHOLE, "line", "column", "exit_code", "recognizer_version"),
        ("tests", pa.list_(_TEXT)),
        ("frames", pa.list_(FRAME)),
        ("matches", pa.list_(MATCH)),
    ]
)
CHECK = TYPES["checks"].value_type
VALIDATION = pa.struct([*_all(_TRUTH, "passed", "skipped"), ("gates", pa.list_(_TEXT))])

RAW = pa.schema(
    [
        *_all(_WHOLE, "attempt", "execution", "recognizer_version"),
        *_all(_WHOLE, "duration_ms", "delay_ms", "tokens"),
        *_all(_NUMBER, "confidence", "agent_confidence", "cost"),
        *_all(_TEXT, "timestamp", "action", "result", "error", "pattern_matched"),
        *_all(_TEXT, "strategy_used", "phase", "fingerprint", "signature"),
        *_all(_TEXT, "agent", "model", "branch", "commit"),
        ("infrastructure", _TRUTH),
        ("files_modified", pa.list_(_TEXT)),
        ("failure", FAILURE),
        ("decision", pa.struct([("action", _TEXT)])),
        ("checks", TYPES["checks"]),
        ("validation", VALIDATION),
        ("regression", pa.struct([("regressions", _WHOLE)])),
    ]
)
"""What is read of an attempt; the rest, above all what tools printed, is passed over."""

MARKS = ("amends", "ends")
"""What marks a record that is no attempt."""

_SCHEMA = pa.schema([*RAW, *(pa.field(mark, _WHOLE) for mark in MARKS)])
_DEFAULTS: Mapping[str, Any] = {
    "duration_ms": 0,
    "execution": 1,
    "infrastructure": False,
    "delay_ms": 0,
    "phase": "",
    "agent": "",
}


_LINES = JsonLines(_SCHEMA)

Log = tuple[int, bytes]
"""The number of a task, and the bytes of its log."""


def parsed(logs: Sequence[Log]) -> tuple[pa.Table, pa.Array] | None:
    """What several logs say, and the task of each row; None: one of them must be read carefully."""
    found = _LINES.read([data for _, data in logs])
    if found is None:
        return None
    table, lines = found
    tasks = pa.array([task for task, _ in logs], pa.int32())
    places = [place for place, count in enumerate(lines) for _ in range(count)]
    return table, tasks.take(pa.array(places, pa.int32()))


def checked(table: pa.Table, tasks: pa.Array) -> tuple[pa.Table, pa.Array, set[int]]:
    """The attempts alone, amendments applied.

    Args:
        table: what `parsed` gave, in one piece; tasks: the task of each row.

    Returns:
        The attempts, the task of each, and the tasks whose logs must be read carefully instead.
    """
    is_mark = pc.or_(table["amends"].is_valid(), table["ends"].is_valid())
    is_attempt = pc.invert(is_mark).combine_chunks()
    amends = pc.and_not(table["amends"].is_valid(), table["ends"].is_valid()).combine_chunks()
    amendments, amended = table.filter(amends), tasks.filter(amends)
    attempts, numbers = table.filter(is_attempt).combine_chunks(), tasks.filter(is_attempt)
    suspicious = _suspicious(attempts, numbers)
    said: set[int] = set()
    if amendments.num_rows:
        lines = pc.indices_nonzero(is_attempt), pc.indices_nonzero(amends)
        attempts, said = _amended(attempts, numbers, amendments, amended, lines)
    doubtful = set(pc.unique(numbers.filter(suspicious)).to_pylist()) | said
    return _filled(attempts.select(RAW.names)), numbers, doubtful


def _filled(table: pa.Table) -> pa.Table:
    """With the defaults of `Attempt` and its checks for what is missing."""
    columns = dict(zip(table.column_names, map(whole, table.columns), strict=True))
    for name, default in _DEFAULTS.items():
        columns[name] = pc.fill_null(columns[name], default)
    files, checks = columns["files_modified"], columns["checks"]
    columns["files_modified"] = pa.ListArray.from_arrays(files.offsets, files.values)
    fields = [
        pc.fill_null(pc.struct_field(checks.values, field.name), default)
        for field, default in zip(CHECK, ("", False, 0), strict=True)
    ]
    said = pa.StructArray.from_arrays(fields, fields=list(CHECK))
    columns["checks"] = pa.ListArray.from_arrays(checks.offsets, said)
    return pa.Table.from_arrays(list(columns.values()), schema=RAW)


def _suspicious(table: pa.Table, tasks: pa.Array) -> pa.Array:
    """Rows that `read_attempts` might read otherwise."""
    size = table.num_rows
    column = {name: whole(table[name]) for name in _SCHEMA.names}
    found = pc.less(pc.fill_null(column["attempt"], 0), 1)
    for name in REQUIRED:
        found = pc.or_(found, column[name].is_null())
    for name in ("files_modified", "checks"):
        parents = pc.list_parent_indices(column[name])
        holes = parents.filter(pc.list_flatten(column[name]).is_null())
        if len(holes):
            found = pc.or_(
                found, pc.is_in(pa.array(range(size), pa.int64()), pc.cast(holes, pa.int64()))
            )
    failure = column["failure"]
    for name in ("confidence", "agent_confidence", "cost"):
        found = pc.or_(found, pc.invert(pc.fill_null(pc.is_finite(column[name]), True)))
    matches = pc.list_flatten(pc.struct_field(failure, "matches"))
    if not pc.all(pc.fill_null(pc.is_finite(pc.struct_field(matches, "confidence")), True)).as_py():
        found = pa.repeat(True, size)
    version = pc.struct_field(failure, "recognizer_version")
    is_other = pc.not_equal(pc.fill_null(version, -1), RECOGNIZER_VERSION)
    found = pc.or_(found, pc.and_(failure.is_valid(), is_other))
    if size > 1:  # in order, and none twice
        number = column["attempt"]
        rises = pc.greater(number.slice(1), number.slice(0, size - 1))
        changes = pc.not_equal(tasks.slice(1), tasks.slice(0, size - 1))
        falls = pc.invert(pc.fill_null(pc.or_(rises, changes), False))
        found = pc.or_(found, pa.concat_arrays([pa.array([False]), falls]))
    return found


def _amended(
    attempts: pa.Table,
    numbers: pa.Array,
    amendments: pa.Table,
    amended: pa.Array,
    lines: tuple[pa.Array, pa.Array],
) -> tuple[pa.Table, set[int]]:
    """Attempts with the strategies that were used instead, and the tasks where that is doubtful.

    Args:
        attempts, numbers: the attempts and their tasks; amendments, amended: likewise.
        lines: where each attempt and each amendment stands.
    """
    touched = pc.is_in(numbers, pc.unique(amended))
    columns = numbers.filter(touched), attempts["attempt"].filter(touched)
    rows = pc.indices_nonzero(touched).to_pylist()
    place = dict(zip(_rows(*columns), rows, strict=True))
    strategies: dict[int, str] = {}
    doubtful = set()
    attempt_lines, amendment_lines = lines
    said = amended, amendments["amends"], amendments["strategy_used"], amendment_lines
    for task, attempt, strategy, line in _rows(*said):
        row = place.get((task, attempt))
        if row is None or strategy is None or attempt_lines[row].as_py() > line:
            doubtful.add(task)
        else:
            strategies[row] = strategy
    return _with_strategies(attempts, strategies), doubtful


def _rows(*columns: pa.Array | pa.ChunkedArray) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in columns), strict=True)


def _with_strategies(attempts: pa.Table, strategies: Mapping[int, str]) -> pa.Table:
    rows = sorted(strategies)
    mask = pc.is_in(pa.array(range(attempts.num_rows), pa.int64()), pa.array(rows, pa.int64()))
    new = pa.array([strategies[row] for row in rows], pa.string())
    column = pc.replace_with_mask(whole(attempts["strategy_used"]), mask, new)
    return attempts.set_column(
        attempts.schema.get_field_index("strategy_used"), "strategy_used", column
    )


# --- Quickly where the logs are whole -----------------------------------------------------------------

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


# --- Else carefully -----------------------------------------------------------------------------------


def _carefully(store: FileStore, number: int, task: str) -> tuple[pa.Table, pa.Array]:
    """A task's attempts as `loki.memory.attempt` reads them, record by record."""
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
