"""All attempts of a project as one raw table: quickly where the logs are whole, else carefully.

Arrow's own reader takes many logs at once. A log that it refuses, or that holds what it would read
otherwise than `loki.memory.history` does — a torn line, a number where text belongs, an attempt that
was written twice, a failure that another version recognized — is read record by record instead. Both
ways give the same table; ``tests/py/analysis/test_attempt_log.py`` holds them against each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from loki.analysis.arrow import fitting
from loki.memory.attempt import REQUIRED, Attempt
from loki.memory.history import log_name, read_attempts
from loki.recognition.failure import RECOGNIZER_VERSION
from loki.stores.files import FileStore

GROUP_BYTES = 8 << 20
"""Bytes of logs that Arrow's reader gets at once: enough work for a thread. Chosen, not measured."""

_TEXT, _WHOLE, _NUMBER, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()

MATCH = pa.struct(
    [
        ("pattern", _TEXT),
        ("kind", _TEXT),
        ("confidence", _NUMBER),
        ("band", _TEXT),
        ("strategy", _TEXT),
    ]
)
FAILURE = pa.struct(
    [
        ("message", _TEXT),
        ("tool", _TEXT),
        ("language", _TEXT),
        ("error_type", _TEXT),
        ("error_code", _TEXT),
        ("path", _TEXT),
        ("line", _WHOLE),
        ("column", _WHOLE),
        ("extension", _TEXT),
        ("tests", pa.list_(_TEXT)),
        ("fingerprint", _TEXT),
        ("signature", _TEXT),
        ("exit_code", _WHOLE),
        ("recognizer_version", _WHOLE),
        ("matches", pa.list_(MATCH)),
    ]
)
CHECK = pa.struct([("name", _TEXT), ("passed", _TRUTH), ("duration_ms", _WHOLE)])

RAW = pa.schema(
    [
        ("attempt", _WHOLE),
        ("timestamp", _TEXT),
        ("action", _TEXT),
        ("result", _TEXT),
        ("error", _TEXT),
        ("pattern_matched", _TEXT),
        ("strategy_used", _TEXT),
        ("duration_ms", _WHOLE),
        ("files_modified", pa.list_(_TEXT)),
        ("execution", _WHOLE),
        ("phase", _TEXT),
        ("infrastructure", _TRUTH),
        ("failure", FAILURE),
        ("fingerprint", _TEXT),
        ("signature", _TEXT),
        ("confidence", _NUMBER),
        ("decision", pa.struct([("action", _TEXT)])),
        ("checks", pa.list_(CHECK)),
        ("validation", pa.struct([("passed", _TRUTH), ("skipped", _TRUTH)])),
        ("regression", pa.struct([("regressions", _WHOLE)])),
        ("agent", _TEXT),
        ("agent_confidence", _NUMBER),
        ("model", _TEXT),
        ("tokens", _WHOLE),
        ("cost", _NUMBER),
        ("delay_ms", _WHOLE),
        ("branch", _TEXT),
        ("commit", _TEXT),
    ]
)
"""What is read of an attempt; the rest, above all what tools printed, is passed over."""

_MARKS = [("amends", _WHOLE), ("ends", _WHOLE)]
_SCHEMA = pa.schema([*RAW, *(pa.field(*mark) for mark in _MARKS)])
_NEEDED = frozenset(_SCHEMA.names)
_DEFAULTS: Mapping[str, Any] = {
    "duration_ms": 0,
    "execution": 1,
    "infrastructure": False,
    "delay_ms": 0,
    "phase": "",
    "agent": "",
}


@dataclass(frozen=True)
class RawAttempts:
    """The attempts of several tasks, task by task, in order.

    Attributes:
        table: rows as `RAW` has them.
        tasks: number of each row's task in the list of tasks that was asked for.
    """

    table: pa.Table
    tasks: pa.Array


def read(store: FileStore, tasks: Sequence[str]) -> RawAttempts:
    """The attempts of these tasks; what cannot be read is told to the logger and left out."""
    found: list[tuple[int, RawAttempts]] = []
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for parts in pool.map(lambda group: _read_group(store, group), _groups(store, tasks)):
            found += parts
    found.sort(key=lambda part: part[0])
    if not found:
        return RawAttempts(RAW.empty_table(), pa.array([], pa.int32()))
    table = pa.concat_tables(part.table for _, part in found).combine_chunks()
    return RawAttempts(table, pa.concat_arrays([part.tasks for _, part in found]))


Group = list[tuple[int, str]]
"""Some tasks, each with its number."""


def _groups(store: FileStore, tasks: Sequence[str]) -> Iterator[Group]:
    group: Group = []
    size = 0
    for number, task in enumerate(tasks):
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


def _read_group(store: FileStore, group: Group) -> list[tuple[int, RawAttempts]]:
    whole: list[tuple[int, str, bytes, int]] = []
    careful: Group = []
    for number, task in group:
        data = _content(store, task)
        lines = _lines(data)
        if lines:
            whole.append((number, task, data, lines))
        elif data:
            careful.append((number, task))
    quick = _quick(whole)
    if quick is None and len(whole) > 1:  # one of them spoils it: each by itself
        return [part for number, task in group for part in _read_group(store, [(number, task)])]
    if quick is None:
        careful += [(number, task) for number, task, *_ in whole]
    else:
        again = set(pc.unique(quick.tasks.filter(quick.suspicious)).to_pylist())
        careful += [(number, task) for number, task, *_ in whole if number in again]
    found = [(number, _careful(store, number, task)) for number, task in careful]
    if quick is not None:
        found += _apart(quick, {number for number, _ in careful})
    return found


def _content(store: FileStore, task: str) -> bytes:
    try:
        return (store.folder / log_name(task)).read_bytes()
    except OSError:
        return b"?" if (store.folder / log_name(task)).exists() else b""


def _lines(data: bytes) -> int:
    """How many lines a log has, each of them one object as far as its beginning tells; 0: not so.

    Arrow's reader ends at a NUL, takes several objects on a line, and checks no encoding.
    """
    if not data.startswith(b"{") or not data.endswith(b"}\n") or b"\0" in data:
        return 0
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return 0
    count, at, last = 0, data.find(b"\n"), len(data) - 1
    while at != last:
        if data[at + 1] != _BRACE:
            return 0
        count += 1
        at = data.find(b"\n", at + 1)
    return count + 1


_BRACE = ord("{")


# --- quickly -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Quick:
    table: pa.Table
    tasks: pa.Array
    suspicious: pa.Array


def _quick(logs: Sequence[tuple[int, str, bytes, int]]) -> _Quick | None:
    """What Arrow's reader makes of several logs; None: it cannot read one of them."""
    if not logs:
        return None
    data = logs[0][2] if len(logs) == 1 else b"".join(log[2] for log in logs)
    options = pj.ReadOptions(use_threads=False, block_size=min(len(data) + 1, 2**31 - 1))
    parse = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
    try:
        table = pj.read_json(pa.BufferReader(data), options, parse)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if table.num_rows != sum(log[3] for log in logs):
        return None
    numbers = pa.concat_arrays([pa.repeat(pa.scalar(n, pa.int32()), k) for n, _, _, k in logs])
    return _checked(table.select(_SCHEMA.names).combine_chunks(), numbers)


def _checked(table: pa.Table, tasks: pa.Array) -> _Quick:
    """The attempts alone, amendments applied, and which of them are to be read once more."""
    is_mark = pc.or_(table["amends"].is_valid(), table["ends"].is_valid())
    is_attempt = pc.invert(is_mark).combine_chunks()
    amends = pc.and_not(table["amends"].is_valid(), table["ends"].is_valid()).combine_chunks()
    amendments, amended = table.filter(amends), tasks.filter(amends)
    attempts, numbers = table.filter(is_attempt).combine_chunks(), tasks.filter(is_attempt)
    suspicious = _suspicious(attempts, numbers)
    if amendments.num_rows:
        lines = pc.indices_nonzero(is_attempt), pc.indices_nonzero(amends)
        attempts, doubtful = _amended(attempts, numbers, amendments, amended, lines)
        suspicious = pc.or_(suspicious, pc.is_in(numbers, doubtful))
    return _Quick(_filled(attempts.select(RAW.names)), numbers, suspicious)


def _filled(table: pa.Table) -> pa.Table:
    """With the defaults of `Attempt` and its checks for what is missing."""
    columns = dict(zip(table.column_names, map(_whole_array, table.columns), strict=True))
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
    column = {name: _whole_array(table[name]) for name in _SCHEMA.names}
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


def _whole_array(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def _amended(
    attempts: pa.Table,
    numbers: pa.Array,
    amendments: pa.Table,
    amended: pa.Array,
    lines: tuple[pa.Array, pa.Array],
) -> tuple[pa.Table, pa.Array]:
    """Attempts with the strategies that were used instead, and the tasks where that is doubtful.

    Args:
        attempts, numbers: the attempts and their tasks; amendments, amended: likewise.
        lines: where each attempt and each amendment stands.
    """
    touched = pc.is_in(numbers, pc.unique(amended))
    keys = zip(
        numbers.filter(touched).to_pylist(),
        attempts["attempt"].filter(touched).to_pylist(),
        strict=True,
    )
    rows = pc.indices_nonzero(touched).to_pylist()
    place = dict(zip(keys, rows, strict=True))
    strategies: dict[int, str] = {}
    doubtful = set()
    attempt_lines, amendment_lines = lines
    said = zip(
        amended.to_pylist(),
        amendments["amends"].to_pylist(),
        amendments["strategy_used"].to_pylist(),
        amendment_lines.to_pylist(),
        strict=True,
    )
    for task, attempt, strategy, line in said:
        row = place.get((task, attempt))
        if row is None or strategy is None or attempt_lines[row].as_py() > line:
            doubtful.add(task)
        else:
            strategies[row] = strategy
    return _with_strategies(attempts, strategies), pa.array(sorted(doubtful), pa.int32())


def _with_strategies(attempts: pa.Table, strategies: Mapping[int, str]) -> pa.Table:
    rows = sorted(strategies)
    mask = pc.is_in(pa.array(range(attempts.num_rows), pa.int64()), pa.array(rows, pa.int64()))
    new = pa.array([strategies[row] for row in rows], pa.string())
    column = pc.replace_with_mask(_whole_array(attempts["strategy_used"]), mask, new)
    return attempts.set_column(
        attempts.schema.get_field_index("strategy_used"), "strategy_used", column
    )


def _apart(quick: _Quick, without: set[int]) -> Iterator[tuple[int, RawAttempts]]:
    """What was read quickly, cut where tasks come in between that were not."""
    if not without:
        if len(quick.tasks):
            yield quick.tasks[0].as_py(), RawAttempts(quick.table, quick.tasks)
        return
    for number in pc.unique(quick.tasks).to_pylist():
        if number not in without:
            own = pc.equal(quick.tasks, number)
            yield number, RawAttempts(quick.table.filter(own), quick.tasks.filter(own))


# --- carefully ---------------------------------------------------------------------------------------


def _careful(store: FileStore, number: int, task: str) -> RawAttempts:
    """A task's attempts as `loki.memory.history` reads them, record by record."""
    attempts = read_attempts(_light(store.scan(log_name(task))), log_name(task))
    rows = [_row(attempt) for attempt in attempts]
    table = pa.Table.from_pylist(rows, RAW)
    return RawAttempts(table, pa.repeat(pa.scalar(number, pa.int32()), len(rows)))


def _light(records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Records with what is needed of them; a mark that is null marks nothing."""
    for record in records:
        slim = {name: value for name, value in record.items() if name in _NEEDED}
        for mark, _ in _MARKS:
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
