"""What a report consists of, whatever it is written in: sections of texts, tables and charts.

Each has a title and a description for those who do not see it; the same figures stand in a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias
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


Cell: TypeAlias = str | int | Link
"""Numbers are shown with commas."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures that stand for themselves: (name, value, what it means) each."""

    kind: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str | int, str | int]]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head.

    Attributes:
        head: names of the columns.
        rows: a cell for each column.
        words: how many columns, from the left, are words; the others are numbers.
    """

    kind: ClassVar[str] = "table"
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

    kind: ClassVar[str] = "bars"
    title: str
    bars: Sequence[tuple[str, float, str]]
    most: float | None = None
    marks: Sequence[tuple[float, str]] = ()

    @property
    def end(self) -> float:
        """Where the scale ends."""
        return self.most or max((value for _, value, _ in self.bars), default=0) or 1

    @property
    def told(self) -> str:
        """Its values in words."""
        return "; ".join(f"{name}: {words}" for name, _, words in self.bars)


@dataclass(frozen=True, slots=True)
class Stacks:
    """Parts of a whole over time, as bars that stand on one another.

    Attributes:
        title: what is shown.
        times: a name for each bar.
        series: name and values, one for each bar, of each part.
    """

    kind: ClassVar[str] = "stacks"
    title: str
    times: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]

    @property
    def end(self) -> float:
        """Where the scale ends."""
        values = (values for _, values in self.series)
        return nice(max(map(sum, zip(*values, strict=True)), default=0))

    @property
    def told(self) -> str:
        """Its values in words."""
        return "; ".join(f"{name}: {sum(values):g} in all" for name, values in self.series)


@dataclass(frozen=True, slots=True)
class Curve:
    """One value over time, as a line.

    Attributes:
        title: what is shown.
        times: a name for each point.
        values: one for each.
    """

    kind: ClassVar[str] = "curve"
    title: str
    times: Sequence[str]
    values: Sequence[float]

    @property
    def end(self) -> float:
        """Where the scale ends."""
        return nice(max(self.values, default=0))

    @property
    def told(self) -> str:
        """Its values in words."""
        least, most = min(self.values, default=0), max(self.values, default=0)
        return f"from {least:,.6g} to {most:,.6g}"


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


STEPS = (1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10)
"""Leading figures of what a scale may end with."""

LEAST = 1e-9
"""Below this a scale's end is nothing."""


def nice(most: float) -> float:
    """A round number at or above the largest value, for the end of a scale.

    Example:
        >>> nice(7), nice(23), nice(0), nice(101)
        (8.0, 25.0, 1.0, 120.0)
    """
    if most < LEAST:
        return 1.0
    size = 10.0 ** math.floor(math.log10(most))
    return next((size * step for step in STEPS if size * step >= most), most)
