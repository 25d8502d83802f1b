"""A report as one HTML page that needs nothing else: styles and charts are inside, no script is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from loki.base.markup import escaped
from loki.cli.report import document
from loki.cli.report.document import (
    Bars,
    Block,
    Cell,
    Curve,
    Document,
    Facts,
    Link,
    Section,
    Stacks,
    Table,
    Text,
)

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --dim: #5b626b; --paper: #fff; --line: #dfe2e6;
  --soft: #f1f3f5; --bar: #3b6fb6; --success: #1b8a5a; --failed: #c8452d; --unverified: #d99a1c;
  --interrupted: #8a6bbd; --infrastructure: #8d959e; --link: #1f5fae; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e9; --dim: #a0a7b0; --paper: #16181b;
  --line: #33373d; --soft: #212429; --bar: #6d9fe0; --success: #3fb984; --failed: #ec7b63;
  --unverified: #e8b84e; --interrupted: #ae95dc; --infrastructure: #7b838c; --link: #8ab8f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); }
p { max-width: 46rem; color: var(--dim); margin: .5rem 0; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; padding: 0;
  margin: 1rem 0 0; font-size: .9rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem;
  margin: 1rem 0; }
dl div { background: var(--soft); border-radius: .5rem; padding: .7rem .9rem; }
dt { color: var(--dim); font-size: .82rem; }
dd { margin: 0; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
dd small { display: block; font-size: .78rem; font-weight: 400; color: var(--dim); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; min-width: min(30rem, 100%); margin: .75rem 0; font-size: .9rem; }
th, td { text-align: left; padding: .35rem 1.2rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: break-word; }
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; }
figcaption { color: var(--dim); font-size: .85rem; margin-bottom: .4rem; }
svg { display: block; width: 100%; height: auto; max-width: 720px; font-size: 12px;
  font-family: inherit; }
svg text { fill: var(--ink); } svg .tick { fill: var(--dim); font-size: 11px; }
svg .name, svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .grid { stroke: var(--line); } svg .track { fill: var(--soft); } svg .bar { fill: var(--bar); }
svg .mark { stroke: var(--dim); stroke-dasharray: 3 3; }
svg .curve { fill: none; stroke: var(--bar); stroke-width: 2; } svg .point { fill: var(--bar); }
svg .of-success { fill: var(--success); } svg .of-failed { fill: var(--failed); }
svg .of-unverified { fill: var(--unverified); } svg .of-interrupted { fill: var(--interrupted); }
svg .of-infrastructure { fill: var(--infrastructure); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0;
  margin: .4rem 0 0; font-size: .85rem; }
.legend li::before { content: ""; display: inline-block; width: .75em; height: .75em;
  border-radius: 2px; margin-right: .4em; background: currentColor; }
.legend .of-success::before { background: var(--success); }
.legend .of-failed::before { background: var(--failed); }
.legend .of-unverified::before { background: var(--unverified); }
.legend .of-interrupted::before { background: var(--interrupted); }
.legend .of-infrastructure::before { background: var(--infrastructure); }
@media print { :root { --ink: #000; --dim: #444; --paper: #fff; --line: #bbb; --soft: #f1f1f1;
  --bar: #3b6fb6; --success: #1b8a5a; --failed: #c8452d; --unverified: #d99a1c;
  --interrupted: #8a6bbd; --infrastructure: #8d959e; --link: #000; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; } nav { display: none; }
  figure, dl div, tr { break-inside: avoid; } h2 { break-after: avoid; }
  svg, .legend, dl div { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def render(document: Document) -> str:
    """The whole page."""
    numbers = count(1)
    contents = "".join(
        f'<li><a href="#part-{i}">{escaped(section.title)}</a></li>'
        for i, section in enumerate(document.sections, 1)
    )
    sections = "\n".join(
        _section(section, i, numbers) for i, section in enumerate(document.sections, 1)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Whatever an agent managed to smuggle in, it loads nothing and runs nothing.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escaped(document.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escaped(document.title)}</h1>\n<p>{escaped(document.about)}</p>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f"{sections}\n</main>\n</body>\n</html>\n"
    )


def _section(section: Section, number: int, charts: Iterator[int]) -> str:
    blocks = "\n".join(_block(block, charts) for block in section.blocks)
    return (
        f'<section aria-labelledby="part-{number}">\n'
        f'<h2 id="part-{number}">{escaped(section.title)}</h2>\n{blocks}\n</section>'
    )


def _block(block: Block, charts: Iterator[int]) -> str:
    if isinstance(block, Text):
        return f"<p>{escaped(block.text)}</p>"
    if isinstance(block, Facts):
        return f"<dl>{''.join(map(_fact, block.facts))}</dl>"
    if isinstance(block, Table):
        return _table(block)
    title, drawn = escaped(block.title), _DRAWN[type(block)](block, next(charts))
    return f'<figure><figcaption aria-hidden="true">{title}</figcaption>{drawn}</figure>'


_DRAWN: dict[type, Callable[..., str]] = {
    Bars: document.bars,
    Stacks: document.stacks,
    Curve: document.curve,
}


def _fact(fact: tuple[str, str, str]) -> str:
    name, value, note = fact
    small = f"<small>{escaped(note)}</small>" if note else ""
    return f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}{small}</dd></div>"


def _table(table: Table) -> str:
    classes = ["" if i < table.words else ' class="number"' for i in range(len(table.head))]
    head = "".join(
        f'<th scope="col"{kind}>{escaped(name)}</th>'
        for kind, name in zip(classes, table.head, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{_cell(c)}</td>" for kind, c in zip(classes, row, strict=True))
        + "</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody>'
        "</table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f'<a href="{escaped(cell.href)}">{escaped(cell.text)}</a>'
    return escaped(cell)
