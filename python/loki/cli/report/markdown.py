"""A report as Markdown; charts are left out, as the tables beside them hold the same figures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loki.cli.report.document import Block, Cell, Document, Facts, Link, Table, Text

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&!])")


def render(document: Document) -> str:
    """The whole page."""
    parts = [f"# {plain(document.title)}", plain(document.about)]
    for section in document.sections:
        parts.append(f"## {plain(section.title)}")
        parts += [part for part in map(_block, section.blocks) if part]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """A text that comes from anywhere, as Markdown shows it: one line, nothing in it is markup.

    Example:
        >>> plain("a|b\\n<script>")
        'a\\\\|b \\\\<script\\\\>'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _SPECIAL.sub(r"\\\1", line)


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return plain(block.text)
    if isinstance(block, Facts):
        return "\n".join(
            f"- **{plain(name)}**: {plain(value)}{f' ({plain(note)})' if note else ''}"
            for name, value, note in block.facts
        )
    return _table(block) if isinstance(block, Table) else ""


def _table(table: Table) -> str:
    aligned = ["---" if i < table.words else "---:" for i in range(len(table.head))]
    rows = [_row([plain(name) for name in table.head]), _row(aligned)]
    return "\n".join(rows + [_row(list(map(_cell, row))) for row in table.rows])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f"[{plain(cell.text)}]({cell.href})"
    return plain(cell)
