"""What a report consists of, whatever it is written in: sections of texts, tables and charts.

Each has a title and a description for those who do not see it; the same figures stand in a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from loki.base.markup import escaped


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


# --- Charts as inline SVG: colors come from the page's style ------------------------------------------

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 12, 28
NAMES, VALUES, ROW = 200, 130, 24
"""Of horizontal bars, in pixels: room for names, room for values, height of one."""

STEPS = (1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10)
"""Leading figures of what a scale may end with."""

LEAST = 1e-9
"""Below this a scale's end is nothing."""

LABELS = 8
"""Most names along the time axis."""


def bars(chart: Bars, number: int) -> str:
    """Horizontal bars, their names on the left and their values on the right."""
    most = chart.most or max((value for _, value, _ in chart.bars), default=0) or 1
    room = WIDTH - NAMES - VALUES
    height = ROW * len(chart.bars) + (18 if chart.marks else 4)
    parts = []
    for index, (name, value, words) in enumerate(chart.bars):
        y = index * ROW + 4
        long = max(1.0, room * min(1.0, max(0.0, value / most)))
        parts.append(
            f"<g><title>{escaped(name)}: {escaped(words)}</title>"
            f'<text class="name" x="{NAMES - 8}" y="{y + 12}">{escaped(_short(name))}</text>'
            f'<rect class="track" x="{NAMES}" y="{y}" width="{room}" height="16"/>'
            f'<rect class="bar" x="{NAMES}" y="{y}" width="{long:.1f}" height="16"/>'
            f'<text class="value" x="{NAMES + room + 8}" y="{y + 12}">{escaped(words)}</text></g>'
        )
    for value, name in chart.marks:
        x = NAMES + room * value / most
        end = ROW * len(chart.bars)
        parts.append(f'<line class="mark" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{end}"/>')
        parts.append(f'<text class="tick middle" x="{x:.1f}" y="{end + 13}">{escaped(name)}</text>')
    told = "; ".join(f"{name}: {words}" for name, _, words in chart.bars)
    return _svg(chart.title, told, height, parts, number)


def stacks(chart: Stacks, number: int) -> str:
    """Vertical bars whose parts stand on one another, and a legend."""
    totals = [sum(values[i] for _, values in chart.series) for i in range(len(chart.times))]
    most = nice(max(totals, default=0))
    parts = list(_axes(chart.times, most))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(chart.times))
    wide = min(48.0, room * 0.8)
    for i, time in enumerate(chart.times):
        bottom = float(HEIGHT - BOTTOM)
        x = LEFT + room * i + (room - wide) / 2
        words = ", ".join(f"{v[i]:g} {name}" for name, v in chart.series if v[i])
        parts.append(f"<g><title>{escaped(time)}: {escaped(words) or 'nothing'}</title>")
        for name, values in chart.series:
            tall = (HEIGHT - TOP - BOTTOM) * values[i] / most
            if tall > 0:
                bottom -= tall
                at = f'x="{x:.1f}" y="{bottom:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
                parts.append(f'<rect class="of-{escaped(name)}" {at}/>')
        parts.append("</g>")
    told = "; ".join(f"{name}: {sum(values):g} in all" for name, values in chart.series)
    shown = [name for name, values in chart.series if any(values)]
    return _svg(chart.title, told, HEIGHT, parts, number) + _legend(shown)


def curve(chart: Curve, number: int) -> str:
    """A line over time."""
    most = nice(max(chart.values, default=0))
    parts = list(_axes(chart.times, most))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(chart.times))
    points = [
        (LEFT + room * (i + 0.5), HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most)
        for i, value in enumerate(chart.values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.append(f'<polyline class="curve" points="{line}"/>')
    for (x, y), time, value in zip(points, chart.times, chart.values, strict=True):
        told = f"<title>{escaped(time)}: {value:,.6g}</title>"
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3">{told}</circle>')
    told = f"from {min(chart.values, default=0):,.6g} to {max(chart.values, default=0):,.6g}"
    return _svg(chart.title, told, HEIGHT, parts, number)


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


def _axes(times: Sequence[str], most: float) -> Iterator[str]:
    for quarter in range(5):
        share = quarter / 4
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        if quarter % 2 == 0 and (share in {0, 1} or (most * share).is_integer()):
            said = compact(most * share)
            yield f'<text class="tick end" x="{LEFT - 6}" y="{y + 4:.1f}">{said}</text>'
    step = max(1, math.ceil(len(times) / LABELS))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(times))
    for i in range(0, len(times), step):
        x = LEFT + room * (i + 0.5)
        yield f'<text class="tick middle" x="{x:.1f}" y="{HEIGHT - 8}">{escaped(times[i])}</text>'


def compact(value: float) -> str:
    """A number in few characters.

    Example:
        >>> compact(0.5), compact(1500), compact(4_000_000)
        ('0.5', '1.5k', '4M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _svg(title: str, told: str, height: int, parts: Sequence[str], number: int) -> str:
    names = f'aria-labelledby="chart-{number}-title chart-{number}-told"'
    return (
        f'<svg role="img" {names} viewBox="0 0 {WIDTH} {height}">'
        f'<title id="chart-{number}-title">{escaped(title)}</title>'
        f'<desc id="chart-{number}-told">{escaped(told)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _legend(names: Sequence[str]) -> str:
    entries = "".join(f'<li class="of-{escaped(n)}">{escaped(n)}</li>' for n in names)
    return f'<ul class="legend">{entries}</ul>' if entries else ""


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
