"""A report as HTML, Markdown or text, by the templates beside this; whatever stands in it stays text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from loki.base.markup import inline, printable
from loki.base.template import filled
from loki.cli.report.document import Document


def html(document: Document) -> str:
    """One HTML page that needs nothing else: styles and charts are inside, no script is."""
    return _filled("report.html.j2", document, printable)


def markdown(document: Document) -> str:
    """Markdown."""
    return _filled("report.md.j2", document, inline)


def terminal(document: Document) -> str:
    """As a person reads it on a terminal: no markup, columns that stand below each other."""
    from rich.console import Console, JustifyMethod
    from rich.markdown import Markdown, TableDataElement

    class Cell(TableDataElement):
        """One whose words are broken where they are too long, and never cut."""

        def __init__(self, justify: JustifyMethod) -> None:
            super().__init__(justify)
            self.content.overflow = "fold"

    class Page(Markdown):
        elements: ClassVar = {**Markdown.elements, "td_open": Cell}

    console = Console()
    with console.capture() as captured:
        console.print(Page(markdown(document), hyperlinks=False))
    return captured.get()


def _filled(name: str, document: Document, plain: Callable[[str], str]) -> str:
    helpers = {"px": "{:.1f}".format, "compact": compact, "figure": figure}
    return filled(Path(__file__).with_name(name), plain, document=document, **helpers)


def figure(value: str | int) -> str:
    """A text, or a number with commas.

    Example:
        >>> figure(1200), figure("a")
        ('1,200', 'a')
    """
    return f"{value:,}" if isinstance(value, int) else value


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
