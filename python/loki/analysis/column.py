"""What the tables of `loki.analysis` have in them: name, type, unit and meaning of each column.

They stand in ``columns.yml``: the tables are made by it, `docs/jupyter.md` is checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from loki.base.error import UsageError
from loki.base.markup import table
from loki.base.yaml_text import load_file


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: as it is called in the table.
        type: text, category, time, integer, number, truth, list of text or checks; the file says
            what each is.
        unit: ``ms``, ``USD``, ``tokens``, or "" where there is none.
        meaning: one line.
    """

    name: str
    type: str
    unit: str
    meaning: str


class Columns(Sequence[Column]):
    """The columns of a table; shown, it is a table itself.

    Args:
        table: name of the table.
        columns: its columns, in order.
    """

    def __init__(self, table: str, columns: Sequence[Column]) -> None:
        self.table = table
        self._columns = tuple(columns)

    @overload
    def __getitem__(self, index: int) -> Column: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Column, ...]: ...

    def __getitem__(self, index: int | slice) -> Column | tuple[Column, ...]:
        return self._columns[index]

    def __len__(self) -> int:
        return len(self._columns)

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Name, type, unit and meaning of each, as text."""
        for column in self._columns:
            yield column.name, column.type, column.unit, column.meaning

    def __repr__(self) -> str:
        rows = [_HEAD, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join((*(row[i].ljust(widths[i]) for i in range(3)), row[3])) for row in rows
        )

    def _repr_html_(self) -> str:
        return table(f"Columns of {self.table}", _HEAD, self.rows())


_HEAD = ("column", "type", "unit", "meaning")


def _read() -> Mapping[str, tuple[Column, ...]]:
    """What ``columns.yml`` says."""
    said = load_file(Path(__file__).with_name("columns.yml"))
    return {
        table: tuple(
            Column(name, column["type"], column.get("unit", ""), column["meaning"])
            for name, column in columns.items()
        )
        for table, columns in said.items()
    }


TABLES = _read()
"""The columns of each table."""


def columns(name: str) -> Columns:
    """The columns of a table: name, type, unit and meaning of each.

    Args:
        name: ``attempts``, ``failures``, ``strategies``, ``tasks``, ``transitions``, ``dead_letters``,
            ``signs``, ``calls``, ``tool_calls``, ``test_runs`` or ``test_failures``.

    Raises:
        UsageError: there is no such table.

    Example:
        >>> columns("attempts")[3]
        Column(name='timestamp', type='time', unit='UTC', meaning='when it began')
    """
    found = TABLES.get(name)
    if found is None:
        raise UsageError(f"no table {name!r}: expected one of {', '.join(TABLES)}")
    return Columns(name, found)
