"""Logs of attempts column by column, and which rows of them are to be doubted.

Faster than a parser in Python by the figures of ``benchmarks/analysis.py``. What is read otherwise than
by `loki.memory.history.read_attempts` is found here; `loki.analysis.attempt_log` reads it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import whole
from loki.analysis.json_lines import JsonLines
from loki.memory.attempt import REQUIRED
from loki.recognition.failure import RECOGNIZER_VERSION

_TEXT, _WHOLE, _NUMBER, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()

FRAME = pa.struct(
    [("path", _TEXT), ("line", _WHOLE), ("function", _TEXT), ("in_project", _TRUTH)],
)
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
        ("frames", pa.list_(FRAME)),
        ("normalized", _TEXT),
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
        ("recognizer_version", _WHOLE),
        ("confidence", _NUMBER),
        ("decision", pa.struct([("action", _TEXT)])),
        ("checks", pa.list_(CHECK)),
        (
            "validation",
            pa.struct([("passed", _TRUTH), ("skipped", _TRUTH), ("gates", pa.list_(_TEXT))]),
        ),
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
    return _with_strategies(attempts, strategies), doubtful


def _with_strategies(attempts: pa.Table, strategies: Mapping[int, str]) -> pa.Table:
    rows = sorted(strategies)
    mask = pc.is_in(pa.array(range(attempts.num_rows), pa.int64()), pa.array(rows, pa.int64()))
    new = pa.array([strategies[row] for row in rows], pa.string())
    column = pc.replace_with_mask(whole(attempts["strategy_used"]), mask, new)
    return attempts.set_column(
        attempts.schema.get_field_index("strategy_used"), "strategy_used", column
    )
