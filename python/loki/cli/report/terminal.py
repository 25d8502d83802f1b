"""A report as a person reads it on a terminal: no markup, columns that stand below each other."""

from __future__ import annotations

from loki.base.text_format import line
from loki.cli.report.document import Block, Cell, Document, Facts, Link, Table, Text


def render(document: Document) -> str:
    """The whole page; charts are left out, as the tables beside them hold the same figures."""
    parts = [line(document.title), line(document.about)]
    for section in document.sections:
        title = line(section.title)
        parts.append(f"{title}\n{'-' * len(title)}")
        parts += [part for part in map(_block, section.blocks) if part]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return line(block.text)
    if isinstance(block, Facts):
        wide = max((len(line(name)) for name, _, _ in block.facts), default=0)
        return "\n".join(
            f"{line(name).ljust(wide)}  {line(value)}{f' ({line(note)})' if note else ''}"
            for name, value, note in block.facts
        )
    return _table(block) if isinstance(block, Table) else ""


def _table(table: Table) -> str:
    rows = [[line(name) for name in table.head], *([_cell(c) for c in row] for row in table.rows)]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(wide[i]) if i < table.words else text.rjust(wide[i])
            for i, text in enumerate(row)
        ).rstrip()
        for row in rows
    )


def _cell(cell: Cell) -> str:
    return line(cell.text if isinstance(cell, Link) else cell)
