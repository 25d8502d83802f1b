"""Markdown for pages that quote what nobody has checked: texts stay where they were put.

Errors, titles and answers of agents are hostile: none may open a heading, close a fence, smuggle in
a link, or hide in characters that no reader sees. Syntax: https://spec.commonmark.org/0.31.2/
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from loki.base.invisible import written_out

_MEANING = re.compile(r"[\\`*\[\]<>&]")
_BLOCK = re.compile(r"^([#>+=~|-]|\d+(?=[.)]))")


def inline(text: str) -> str:
    """A text as words of a line: one line, no markup, also where it begins the line.

    Example:
        >>> inline("see [this](http://x)\\n# now")
        'see \\\\[this\\\\](http://x) # now'
    """
    line = _BLOCK.sub(r"\\\1", _MEANING.sub(r"\\\g<0>", _one_line(text)))
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
    return f"{ticks}{language}\n{written_out(text)}\n{ticks}"


def bullets(items: Iterable[str]) -> str:
    """A list of lines that are Markdown already; "None." where there is nothing."""
    return "\n".join(f"- {item}" for item in items) or "None."


def _one_line(text: str) -> str:
    # Spaces within a line stay: they may be all that two values differ by.
    lines = (line.strip() for line in text.splitlines())
    return written_out(re.sub(r"\s", " ", " ".join(filter(None, lines))))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
