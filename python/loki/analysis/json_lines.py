"""Logs of JSON lines as Arrow's columns; what no column asks for is passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki._core import JsonColumns


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
