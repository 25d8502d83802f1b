"""Figures that show themselves in Jupyter, and look the same on a light and on a dark page."""

from __future__ import annotations

import io
import unicodedata
import warnings
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from loki.base.control_characters import escape_control_characters

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

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


def legend(axes: Axes, columns: int = 6) -> None:
    """What the colors mean, above the plot."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            names,
            ncols=columns,
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
