"""Arrow's tables by the columns that `loki.analysis.column` names, from rows or from arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki._core import JsonColumns
from loki.analysis.column import TABLES
from loki.base.time import moment

MILLISECONDS = pa.timestamp("ms", "UTC")

TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "time": MILLISECONDS,
    "integer": pa.int64(),
    "number": pa.float64(),
    "truth": pa.bool_(),
    "list of text": pa.list_(pa.string()),
    "checks": pa.list_(
        pa.struct([("name", pa.string()), ("passed", pa.bool_()), ("duration_ms", pa.int64())])
    ),
}
"""Arrow's type by the type of a column."""

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOST = 2**63


def schema(table: str) -> pa.Schema:
    """The schema of a table; units and meanings are in its fields' metadata."""
    return pa.schema(
        pa.field(
            column.name,
            TYPES[column.type],
            metadata={"unit": column.unit, "meaning": column.meaning},
        )
        for column in TABLES[table]
    )


def of_arrays(table: str, arrays: Mapping[str, Any]) -> pa.Table:
    """A table from its columns, texts where it has categories and times.

    Args:
        table: its name.
        arrays: by name of the column; one that is missing is null throughout.
    """
    wanted = schema(table)
    size = len(next(iter(arrays.values()))) if arrays else 0
    made = [_column(arrays.get(field.name), field.type, size) for field in wanted]
    return pa.Table.from_arrays(made, schema=wanted)


def of_rows(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table from rows as JSON has them; a value that does not fit its column is null there."""
    kept = list(rows)
    plain = {field.name: _plain(field.type) for field in schema(table)}
    return of_arrays(
        table,
        {
            name: pa.array([fitting(row.get(name), type_) for row in kept], type_)
            for name, type_ in plain.items()
        },
    )


def fitting(value: Any, type_: pa.DataType) -> Any:
    """A value of JSON as a column of this type holds it; None: it does not fit.

    Example:
        >>> fitting("12", pa.int64()), fitting(12.0, pa.int64()), fitting(1, pa.float64())
        (None, 12, 1.0)
    """
    if pa.types.is_struct(type_) and isinstance(value, Mapping):
        return {field.name: fitting(value.get(field.name), field.type) for field in type_}
    if pa.types.is_list(type_) and isinstance(value, (list, tuple)):
        return [fitting(entry, type_.value_type) for entry in value]
    if pa.types.is_string(type_) and isinstance(value, str):
        # Half a character (a file name that is not UTF-8) cannot be in a table.
        return value.encode("utf-8", "replace").decode()
    if pa.types.is_boolean(type_):
        return value if isinstance(value, bool) else None
    return _number(value, type_)


def times(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Moments in ISO 8601 as Arrow's timestamps; what names none is null."""
    try:
        return pc.cast(texts, MILLISECONDS)
    except pa.ArrowInvalid:  # one of them is unusual: each by itself
        read = map(_milliseconds, texts.to_pylist())
        return pc.cast(pa.array(read, pa.int64()), MILLISECONDS)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def listed(column: pa.Array) -> list[Any]:
    """As ``to_pylist``, but of nested types a field at a time, which takes a fifth of the time.

    Example:
        >>> listed(pa.array([[{"line": 3}, None], None, []]))
        [[{'line': 3}, None], None, []]
    """
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        values = zip(*(listed(pc.struct_field(column, name)) for name in names), strict=True)
        there = column.is_valid().to_pylist()
        return [
            dict(zip(names, entry, strict=True)) if valid else None
            for valid, entry in zip(there, values, strict=True)
        ]
    if pa.types.is_list(column.type):
        entries = iter(listed(column.flatten()))
        sizes = pc.list_value_length(column).to_pylist()
        return [None if size is None else list(islice(entries, size)) for size in sizes]
    plain: list[Any] = column.to_pylist()
    return plain


def _milliseconds(text: str | None) -> int | None:
    found = moment(text) if text else None
    return None if found is None else (found - EPOCH) // timedelta(milliseconds=1)


def _number(value: Any, type_: pa.DataType) -> float | int | None:
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if not is_number or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if pa.types.is_floating(type_):
        try:
            return float(value)
        except OverflowError:
            return None
    whole = int(value)
    return whole if -_MOST <= whole < _MOST else None


def _plain(type_: pa.DataType) -> pa.DataType:
    """The type before categories and times are made of it."""
    is_text = pa.types.is_dictionary(type_) or pa.types.is_timestamp(type_)
    return pa.string() if is_text else type_


def _column(values: Any, type_: pa.DataType, size: int) -> Any:
    if values is None:
        return pa.nulls(size, type_)
    if pa.types.is_timestamp(type_) and pa.types.is_string(values.type):
        return times(values)
    if pa.types.is_dictionary(type_) and not pa.types.is_dictionary(values.type):
        encoded = pc.dictionary_encode(values)
        chunked = isinstance(encoded, pa.ChunkedArray)
        return encoded.unify_dictionaries() if chunked else encoded
    return values


# --- Logs of JSON lines as Arrow's columns ------------------------------------------------------------


class JsonLines:
    """Reads logs whose lines are objects, as a table of this schema.

    Example:
        >>> frames = pa.field("frames", pa.list_(pa.struct([("line", pa.int64())])))
        >>> log = b'{"path": "a.py", "frames": [{"line": 3, "text": "x"}], "output": "long"}\\n{}\\n'
        >>> table, lines = JsonLines(pa.schema([frames])).read([log])
        >>> table.to_pylist(), lines
        ([{'frames': [{'line': 3}]}, {'frames': None}], [2])
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns = JsonColumns({field.name: _asked(field.type) for field in schema})

    def read(self, logs: Sequence[bytes]) -> tuple[pa.Table, list[int]] | None:
        """The lines of logs, one after the other, and how many each has; None: they want more care.

        That is: a line is not one object that everybody reads alike, or a value is not what its
        column holds.
        """
        found = self._columns.read(list(logs))
        if found is None:
            return None
        lines, columns = found
        try:
            arrays = [
                _array(field.type, *column)
                for field, column in zip(self._schema, columns, strict=True)
            ]
        except pa.ArrowInvalid:  # a number that no column holds
            return None
        return pa.Table.from_arrays(arrays, schema=self._schema), lines


def _asked(type_: pa.DataType) -> object:
    if pa.types.is_list(type_):
        return [_asked(type_.value_type)]
    if pa.types.is_struct(type_):
        return {field.name: _asked(field.type) for field in type_}
    if pa.types.is_string(type_):
        return "text"
    return "truth" if pa.types.is_boolean(type_) else "number"


def _array(
    type_: pa.DataType, size: int, valid: bytes, offsets: bytes, data: bytes, members: list[Any]
) -> pa.Array:
    there = pa.py_buffer(valid)
    if pa.types.is_struct(type_):
        fields = [_array(field.type, *of) for field, of in zip(type_, members, strict=True)]
        return pa.Array.from_buffers(type_, size, [there], children=fields)
    begins = pa.py_buffer(offsets)
    if pa.types.is_list(type_):
        entries = _array(type_.value_type, *members[0])
        return pa.Array.from_buffers(type_, size, [there, begins], children=[entries])
    texts = pa.Array.from_buffers(pa.string(), size, [there, begins, pa.py_buffer(data)])
    return texts if pa.types.is_string(type_) else pc.cast(texts, type_)
