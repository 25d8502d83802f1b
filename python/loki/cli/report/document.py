"""What a report consists of, whatever it is written in: sections of texts, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads to a file.

    Attributes:
        text: what is read.
        target: where the file is, relative to the report; "/" between folders.
    """

    text: str
    target: str

    @property
    def href(self) -> str:
        """The target as it stands in a page: percent-encoded, so that it is a path and nothing else."""
        return quote(self.target, errors="replace")


Cell: TypeAlias = str | Link


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures that stand for themselves: (name, value, what it means) each."""

    facts: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head.

    Attributes:
        head: names of the columns.
        rows: a cell for each column.
        words: how many columns, from the left, are words; the others are numbers.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: int = 1


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar for each of some things.

    Attributes:
        title: what is shown.
        bars: (name, value, the value in words), in order.
        most: value at which a bar is full; the largest one where nothing is said.
        marks: values to mark on the scale, each with its name.
    """

    title: str
    bars: Sequence[tuple[str, float, str]]
    most: float | None = None
    marks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class Stacks:
    """Parts of a whole over time, as bars that stand on one another.

    Attributes:
        title: what is shown.
        times: a name for each bar.
        series: name and values, one for each bar, of each part.
    """

    title: str
    times: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Curve:
    """One value over time, as a line.

    Attributes:
        title: what is shown.
        times: a name for each point.
        values: one for each.
    """

    title: str
    times: Sequence[str]
    values: Sequence[float]


Block: TypeAlias = Text | Facts | Table | Bars | Stacks | Curve


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report, under its title."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report.

    Attributes:
        title: its name.
        about: what it is about: project, period, filters.
        sections: its parts.
    """

    title: str
    about: str
    sections: Sequence[Section]
