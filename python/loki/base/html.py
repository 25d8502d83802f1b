"""HTML that quotes what nobody has checked: for pages, and for what Jupyter shows of an object.

What is shown of an object takes its colors and letters from the page around it, dark or light: it has
no script, no style sheet, no image and no link. Secrets are masked, texts escaped and clipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loki.base.secret import mask_secrets

MOST = 400
"""Characters of a value that a card shows. Chosen, not measured."""

MOST_LINES, MOST_QUOTED = 24, 4_000
"""Lines and characters of a quotation that it shows. Chosen, not measured."""

_CARD = "border-left:3px solid currentColor;padding:.2em 0 .2em .8em;margin:.3em 0;max-width:64em"
_DIM = "opacity:.65"
_PLAIN = "background:none;border:none;color:inherit"
_CELL = f"{_PLAIN};text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0"
_TABLE = f"{_PLAIN};border-collapse:collapse;margin:.2em 0 0"
_QUOTE = (
    f"{_PLAIN};white-space:pre-wrap;overflow-wrap:anywhere;max-height:24em;overflow:auto;"
    "font-size:.92em;margin:.4em 0 0"
)


def escaped(value: str) -> str:
    """A text as it may stand in HTML and XML: escaped, without what neither can hold.

    Example:
        >>> escaped('<a href="x">\\x00')
        '&lt;a href=&quot;x&quot;&gt;\\ufffd'
    """
    from html import escape  # whose table of entities `import loki` need not load

    return escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value))


def html_card(
    title: str, facts: Iterable[tuple[str, object]] = (), *, said: str = "", quote: str = ""
) -> str:
    """What Jupyter shows of an object.

    Args:
        title: what it is, in a few words.
        facts: names and values; those that are None or "" are left out.
        said: one sentence below the title.
        quote: lines that are shown as they are, the last of them where they are many.

    Example:
        >>> "<script>" in html_card("<script>", [("message", "<script>")], quote="<script>")
        False
    """
    rows = "".join(
        f'<tr style="{_PLAIN}"><td style="{_CELL};{_DIM}">{escaped(name)}</td>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{_shown(value)}</td></tr>'
        for name, value in facts
        if value is not None and value != ""
    )
    parts = [f"<div>{_shown(said)}</div>"] if said else []
    if rows:
        parts.append(f'<table style="{_TABLE}">{rows}</table>')
    if quote:
        parts.append(f'<pre style="{_QUOTE}">{_quoted(quote)}</pre>')
    return _framed(title, "".join(parts))


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A small table with a title; rows are to be few.

    Args:
        title: what it is.
        head: names of its columns; rows: their values.
    """
    names = "".join(f'<th scope="col" style="{_CELL};{_DIM}">{escaped(name)}</th>' for name in head)
    body = "".join(
        f'<tr style="{_PLAIN}">'
        + "".join(f'<td style="{_CELL}">{_shown(value)}</td>' for value in row)
        + "</tr>"
        for row in rows
    )
    thead = f'<thead><tr style="{_PLAIN}">{names}</tr></thead>'
    return _framed(title, f'<table style="{_TABLE}">{thead}<tbody>{body}</tbody></table>')


def _framed(title: str, inside: str) -> str:
    return f'<div style="{_CARD}"><div><strong>{_shown(title)}</strong></div>{inside}</div>'


def _shown(value: object) -> str:
    """A value in one line, masked before it is clipped."""
    said = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    said = " ".join(mask_secrets(said).split())
    return escaped(said if len(said) <= MOST else f"{said[: MOST - 1]}…")


def _quoted(quote: str) -> str:
    lines = mask_secrets(quote).strip("\n").splitlines()
    left = len(lines) - MOST_LINES
    if left > 0:
        lines = [f"… {left} lines left out …", *lines[-MOST_LINES:]]
    return escaped("\n".join(lines)[-MOST_QUOTED:])
