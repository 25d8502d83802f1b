"""A report as HTML, Markdown or text, by the templates beside this; whatever stands in it stays text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from loki.base.markup import inline, printable
from loki.cli.report.document import Document


def html(document: Document) -> str:
    """One HTML page that needs nothing else: styles and charts are inside, no script is."""
    return _filled("report.html.j2", document, printable)


def markdown(document: Document) -> str:
    """Markdown."""
    return _filled("report.md.j2", document, inline)


def terminal(document: Document) -> str:
    """As a person reads it on a terminal: no markup, columns that stand below each other."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.capture() as captured:
        console.print(Markdown(markdown(document), hyperlinks=False))
    return captured.get()


def _filled(name: str, document: Document, plain: Callable[[str], str]) -> str:
    """A template that prints each datum as ``plain`` has it; where it is HTML, escaped."""

    def finalized(value: Any) -> Any:
        return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(("html.j2", "svg.j2"), default=False),
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    templates.globals.update(px="{:.1f}".format, compact=compact)
    return templates.get_template(name).render(document=document)


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
