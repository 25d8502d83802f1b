"""A report as Markdown; charts are left out, as the tables beside them hold the same figures."""

from __future__ import annotations

from collections.abc import Sequence

from loki.base.markup import inline
from loki.cli.report.document import Block, Cell, Document, Facts, Link, Table, Text


def render(document: Document) -> str:
    """The whole page."""
    parts = [f"# {inline(document.title)}", inline(document.about)]
    for section in document.sections:
        parts.append(f"## {inline(section.title)}")
        parts += [part for part in map(_block, section.blocks) if part]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return inline(block.text)
    if isinstance(block, Facts):
        return "\n".join(
            f"- **{inline(name)}**: {inline(value)}{f' ({inline(note)})' if note else ''}"
            for name, value, note in block.facts
        )
    return _table(block) if isinstance(block, Table) else ""


def _table(table: Table) -> str:
    aligned = ["---" if i < table.words else "---:" for i in range(len(table.head))]
    rows = [_row([inline(name) for name in table.head]), _row(aligned)]
    return "\n".join(rows + [_row(list(map(_cell, row))) for row in table.rows])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f"[{inline(cell.text)}]({cell.href})"
    return inline(cell)
