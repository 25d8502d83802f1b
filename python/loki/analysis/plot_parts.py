"""Parts that several plots have: bars, cells, stretches of time, axes."""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.dates import MINUTELY, AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from loki.analysis.aggregates import Recurring, Stretch, Uses
from loki.base.text_format import amount, escape_control_characters
from loki.base.time_axis import Axis
from loki.memory.attempt_metrics import NO_PATTERN

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase


# --- Figures that look the same on a light and on a dark page -----------------------------------------

WIDTH = 8.0
"""Inches. Chosen, not measured: a notebook's column."""

INK, PALE, PAPER = "#222222", "#767676", "#ffffff"
"""Text, what is less important, and the ground: its own, so that a dark page changes nothing."""

BLUE, ORANGE, GREEN, YELLOW, SKY, PURPLE, GRAY = (
    *("#0072b2", "#d55e00", "#009e73", "#f0e442", "#56b4e9", "#cc79a7", "#999999"),
)
"""Colors that the color-blind tell apart. Source: Okabe and Ito, "Color Universal Design", 2008."""


class Plot(Figure):
    """A matplotlib figure that Jupyter shows without pyplot; ``savefig(path)`` keeps it.

    Args:
        question: what it answers; its title.
        answer: the answer in a line, under the title.
        height: of the part below the title, in inches.
    """

    def __init__(self, question: str, answer: str, height: float) -> None:
        super().__init__(figsize=(WIDTH, height + 0.75), dpi=100, facecolor=PAPER)
        self.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, height / (height + 0.65)))
        self.question, self.answer = question, answer
        top = 1 - 0.1 / (height + 0.75)
        self.text(0.012, top, plain(question), size=13, weight="bold", color=INK, va="top")
        under = top - 0.27 / (height + 0.75)
        self.text(0.012, under, plain(answer), size=10, color=INK, va="top")

    def draw(self, renderer: RendererBase) -> None:
        """Draw it; of letters that the font lacks nobody is warned."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        shown = io.BytesIO()
        self.savefig(shown, format="png", facecolor=PAPER)
        return shown.getvalue()


def plain(text: str, most: int = 200) -> str:
    r"""A text as a label: one line, short, and no mathematics in it.

    Example:
        >>> print(plain("costs $1 to $2\nor more"))
        costs \$1 to \$2 or more
    """
    line = " ".join(escape_control_characters(" ".join(text.split())).split())
    seen = "".join(
        c if unicodedata.category(c) not in {"Co", "Cs", "Cn"} else "\ufffd" for c in line
    )
    return cut(seen, most).replace("$", r"\$")


def cut(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def labels(texts: list[str], most: int = 44) -> list[str]:
    """Names of rows, as many as there are and as short as they must be."""
    return [plain(text, most) for text in texts]


def dress(axes: Axes, **settings: Any) -> None:
    """Set what a plot says, in colors and lines that do not depend on a person's own style.

    Args:
        axes: of the plot.
        settings: as `matplotlib.axes.Axes.set` takes them.
    """
    axes.set(**settings)
    axes.set_facecolor(PAPER)
    axes.grid(visible=False)
    axes.set_axisbelow(True)
    axes.tick_params(
        axis="both", which="both", colors=PALE, labelcolor=INK, labelsize=9, direction="out"
    )
    for name, spine in axes.spines.items():
        spine.set_visible(name in {"left", "bottom"})
        spine.set_color(PALE)
    for part in (axes.xaxis.label, axes.yaxis.label, axes.title):
        part.set_color(INK)
        part.set_fontsize(10)


def name_rows(axes: Axes, names: list[str], most: int = 44) -> None:
    """Names of the rows 0, 1, 2, …, beside them; most: characters of each."""
    axes.set_yticks(range(len(names)), labels(names, most))
    axes.tick_params(axis="y", length=0)


def legend(axes: Axes) -> None:
    """What the colors mean, above the plot."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            names,
            ncols=6,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            frameon=False,
            fontsize=9,
            labelcolor=INK,
            borderaxespad=0.2,
            columnspacing=1.2,
            handlelength=1.2,
        )


def blank(question: str, answer: str) -> Plot:
    """A figure for where there is nothing to show: it says so."""
    figure = Plot(question, answer, 0.6)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, "nothing to show", ha="center", va="center", color=PALE, size=11)
    return figure


# --- Bars, cells, stretches of time, axes -------------------------------------------------------------

MOST_ROWS = 12
"""Rows of a plot, where there would be more; what is left out is said. Chosen, not measured."""

RESULTS = {
    "success": GREEN,
    "failed": ORANGE,
    "infrastructure": GRAY,
    "unverified": SKY,
    "interrupted": YELLOW,
    "drift": PURPLE,
}
"""Colors of attempts' results, in the order in which they are shown."""

STATES = {"CLOSED": GREEN, "OPEN": ORANGE, "HALF_OPEN": YELLOW}


def ordered(names: Sequence[str] | dict[str, int] | dict[str, tuple[float, ...]]) -> list[str]:
    """Results as they are shown: the known ones in their order, then others by name."""
    return [*(n for n in RESULTS if n in names), *sorted(n for n in names if n not in RESULTS)]


def color(result: str) -> str:
    """The color of a result, known or not."""
    return RESULTS.get(result, PALE)


def most_used(names: list[str], uses: dict[tuple[str, str], Uses], place: int) -> list[str]:
    """The names whose strategies were used most, the pattern that stands for none last."""
    totals = dict.fromkeys(names, 0)
    for key, cell in uses.items():
        totals[key[place]] += cell.uses
    order = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_ROWS]
    return sorted(order, key=lambda name: name == NO_PATTERN)


def cell(axes: Axes, x: int, y: int, cell: Uses | None) -> None:
    """A square with its share as the color and its counts as the text."""
    if cell is None:
        return
    rate = cell.rate
    color, ink = ("#eeeeee", PALE) if rate is None else shade(rate)
    axes.add_patch(Rectangle((x - 0.47, y - 0.44), 0.94, 0.88, facecolor=color, linewidth=0))
    said = "not known" if rate is None else f"{cell.cured:,} / {cell.cured + cell.not_cured:,}"
    axes.text(x, y, said, ha="center", va="center", size=9, color=ink)


def shade(rate: float) -> tuple[str, str]:
    """Ground and text for a share: from orange over white to blue, which the color-blind tell apart."""
    colors = LinearSegmentedColormap.from_list("share", [ORANGE, "#f7f7f7", BLUE])
    return to_hex(colors(rate)), INK if 0.12 < rate < 0.85 else "#ffffff"  # noqa: PLR2004


def bars(axes: Axes, counts: dict[str, int], color: str | list[str]) -> None:
    """Horizontal bars by name, with their numbers behind them."""
    total = sum(counts.values()) or 1
    axes.barh(range(len(counts)), list(counts.values()), color=color, height=0.7)
    for y, count in enumerate(counts.values()):
        axes.text(count, y, f" {count:,} ({count / total:.0%})", va="center", size=9, color=INK)
    name_rows(axes, list(counts), 24)
    axes.set_ylim(max(len(counts), 3) - 0.4, -0.6)
    axes.set_xlim(0, max(counts.values(), default=1) * 1.45)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))


def unit(milliseconds: float) -> tuple[str, float]:
    """The unit in which so much time is shown, and its milliseconds."""
    for name, size in (("days", 864e5), ("hours", 36e5), ("minutes", 6e4)):
        if milliseconds >= 2 * size:
            return name, size
    return "seconds", 1e3


def money(value: float, unit: str) -> str:
    """A sum of dollars or tokens in words."""
    if unit == "tokens":
        return amount(round(value), "token")
    return f"{value:,.2f} USD" if value >= 1 else f"{value:.4g} USD"


def name(failure: Recurring) -> str:
    """A failure in a line: what it says, and where."""
    where = failure.where.rpartition("::")[2].rpartition("/")[2]
    return plain(failure.message, 34) + (f" ({plain(where, 20)})" if where else "")


def times(axes: Axes, period: Axis) -> None:
    """Names along a time axis whose divisions are 0, 1, 2, …: at most seven."""
    step = max(1, -(-len(period.starts) // 7))
    at = range(0, len(period.starts), step)
    axes.set_xticks(list(at), [period.names[n] for n in at])


def stretches(axes: Axes, y: float, own: Sequence[Stretch], begin: datetime, end: datetime) -> None:
    """A row of stretches of time, colored by state; even the shortest can be seen."""
    least = (number(end) - number(begin)) / 500
    for state in dict.fromkeys(one.state for one in own):
        spans = [
            (number(one.begin), max(number(one.end) - number(one.begin), least))
            for one in own
            if one.state == state
        ]
        color = STATES.get(state, GRAY)
        order = 1 if state == "CLOSED" else 2  # what is short and matters lies above
        axes.broken_barh(spans, (y - 0.35, 0.7), facecolors=color, linewidth=0, zorder=order)


def sightings(axes: Axes, failures: Sequence[Recurring]) -> None:
    """A row of dots for each failure: the larger, the more often then."""
    every = [dot for one in failures for dot in one.seen]
    if not every:
        return
    begin, end = min(every)[0], max(every)[0]
    margin = max((end - begin) * 0.04, timedelta(seconds=20))
    top = max(count for _, count in every)
    for y, one in enumerate(failures):
        sizes = [24 + 170 * count / top for _, count in one.seen]
        at = [number(moment) for moment, _ in one.seen]
        tint = GRAY if one.infrastructure else BLUE
        axes.axhline(y, color="#e6e6e6", linewidth=1, zorder=0)
        axes.scatter(at, [y] * len(at), s=sizes, color=tint, alpha=0.75, linewidths=0)
    moments(axes, begin - margin, end + margin, 5)


def moments(axes: Axes, begin: datetime, end: datetime, most: int = 8) -> None:
    """A time axis of moments, with at most so many names."""
    locator = AutoDateLocator(tz=timezone.utc, minticks=2, maxticks=most)  # type: ignore[no-untyped-call]
    locator.intervald[MINUTELY] = [1, 2, 5, 10, 15, 30]  # without 2, five minutes had one name
    form = ConciseDateFormatter(locator, tz=timezone.utc)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(form)
    first, last = number(begin), number(end)
    axes.set_xlim(first, max(last, first + 10 / 86400))  # ten seconds at least
    axes.xaxis.get_offset_text().set_color(INK)


def number(at: datetime) -> float:
    """A moment as matplotlib has them: days."""
    return float(date2num(at))  # type: ignore[no-untyped-call]
