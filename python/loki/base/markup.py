"""HTML and Markdown that quote what nobody has checked: for pages, and for what Jupyter shows of an object.

What Jupyter shows takes its colors and letters from the page around it, dark or light: it has no script, no
style sheet, no image and no link. Secrets are masked, texts escaped and clipped.

Errors, titles and answers of agents are hostile: none may open a heading, close a fence, smuggle in
a link, or hide in characters that no reader sees. Everything that loki writes as Markdown is made of
these; tests/py/together/test_fences.py drives each such page. Syntax: https://spec.commonmark.org/0.31.2/
with tables and strikethrough as on https://github.github.com/gfm/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from loki.base.secret import mask_secrets
from loki.base.text_format import escape_control_characters

# --- HTML, as Jupyter shows an object ---------------------------------------------------------------

MOST = 400
"""Characters of a value that a card shows. Chosen, not measured."""

MOST_LINES, MOST_QUOTED = 24, 4_000
"""Lines and characters of a quotation that it shows. Chosen, not measured."""

CARD = Path(__file__).with_name("card.html.j2")


def printable(value: str) -> str:
    """A text without what neither HTML nor XML can hold, and no reader sees.

    Example:
        >>> printable("a\\x00b")
        'a\ufffdb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value)


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
    rows = [fact for fact in facts if fact[1] is not None and fact[1] != ""]
    return _card(title, (), rows, said, quote)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A small table with a title; rows are to be few.

    Args:
        title: what it is.
        head: names of its columns; rows: their values.
    """
    return _card(title, head, rows)


def _card(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    said: str = "",
    quote: str = "",
) -> str:
    from loki.base.template import filled  # which `import loki` need not load

    shown = [[_shown(value) for value in row] for row in rows]
    texts = {"title": _shown(title), "said": _shown(said), "quote": _quoted(quote)}
    return filled(CARD, printable, head=head, rows=shown, **texts)


def _shown(value: object) -> str:
    """A value in one line, masked before it is clipped."""
    said = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    said = " ".join(mask_secrets(said).split())
    return said if len(said) <= MOST else f"{said[: MOST - 1]}…"


def _quoted(quote: str) -> str:
    lines = mask_secrets(quote).strip("\n").splitlines()
    left = len(lines) - MOST_LINES
    if left > 0:
        lines = [f"… {left} lines left out …", *lines[-MOST_LINES:]]
    return "\n".join(lines)[-MOST_QUOTED:]


# --- Markdown: texts stay where they were put -------------------------------------------------------

# An underscore between letters or digits means nothing: names stay readable where nothing renders them.
_MEANING = re.compile(r"[\\`*\[\]<>&~|]|(?<!\w)_+|_+(?!\w)")
_BLOCK = re.compile(r"^([#>+=-]|\d+(?=[.)](?:\s|$)))")
_UNIT = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|\\.|[^`]", re.DOTALL)


def inline(text: str) -> str:
    """A text as words of a line: one line, no markup, also where it begins the line.

    Example:
        >>> inline("see [this](http://x)\\n# now")
        'see \\\\[this\\\\](http://x) # now'
    """
    line = _BLOCK.sub(r"\\\1", _MEANING.sub(_escaped, _one_line(text)))
    return re.sub(r"^\\(\d+)", r"\1\\", line)  # "1." is a number with an escaped dot


def code(text: str) -> str:
    """A text as code in a line, which it cannot end.

    Example:
        >>> code("a `b` c")
        '``a `b` c``'
    """
    line = _one_line(text)
    ticks = "`" * (_longest_run(line) + 1)
    # A space is taken off at both ends where both have one; code that begins with a tick needs it.
    room = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{room}{line}{room}{ticks}"


def cell(markdown: str) -> str:
    """Markdown of ours as a cell of a table, which ends at a bar, also in code.

    Example:
        >>> cell(code("a | b"))
        '`a \\\\| b`'
    """
    return re.sub(r"(?<!\\)\|", r"\\|", markdown)


def cut(markdown: str, most: int, measure: Callable[[str], int] = len) -> str:
    """A line of Markdown of ours, cut to a length; no code in it is left open, no escape halved.

    Args:
        markdown: the line.
        most: its greatest length.
        measure: how long a line is; in characters where nothing is said.

    Example:
        >>> cut("see `a.py` and `b.py`", 18), cut("see `a.py`", 8)
        ('see `a.py` and…', 'see `a…`')
    """
    if measure(markdown) <= most:
        return markdown
    kept = ""
    for unit in _UNIT.finditer(markdown):
        if measure(f"{kept}{unit[0]}…") > most:
            ticks = unit[1] or ""
            inside = unit[0][len(ticks) : -len(ticks)] if ticks else ""
            shorter = (f"{kept}{ticks}{inside[:n]}…{ticks}" for n in range(len(inside), 0, -1))
            return next((one for one in shorter if measure(one) <= most), f"{kept.rstrip()}…")
        kept += unit[0]
    return kept


def quotation(text: str) -> str:
    """A text of several lines as a quotation: a block of its own, in which nothing is markup.

    Example:
        >>> print(quotation("one\\n# two"))
        > one
        > \\# two
    """
    return "\n".join(f"> {inline(line)}".rstrip() for line in text.strip().splitlines())


def paragraphs(text: str) -> str:
    """A text of several lines as paragraphs: no headings, lists or fences.

    Example:
        >>> print(paragraphs("one\\n\\n## two"))
        one
        <BLANKLINE>
        \\## two
    """
    return "\n".join(map(inline, text.strip().splitlines()))


def fence(text: str, language: str = "text") -> str:
    """A text in a fence that it cannot close: one tick longer than its longest run of ticks.

    Example:
        >>> print(fence("a"))
        ```text
        a
        ```
    """
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{escape_control_characters(text)}\n{ticks}"


def bullets(items: Iterable[str]) -> str:
    """A list of lines that are Markdown already; "None." where there is nothing."""
    return "\n".join(f"- {item}" for item in items) or "None."


def numbered(items: Iterable[str]) -> str:
    """A numbered list of lines that are Markdown already."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\{sign}" for sign in found[0])


def _one_line(text: str) -> str:
    # Spaces within a line stay: they may be all that two values differ by.
    lines = (line.strip() for line in text.splitlines())
    return escape_control_characters(re.sub(r"\s", " ", " ".join(filter(None, lines))))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
