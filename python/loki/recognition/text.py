"""What a person would see on the terminal, and where each character of it came from."""

from __future__ import annotations

from typing import TypeAlias

from loki import _core
from loki.base.text_format import escape_control_characters

Text: TypeAlias = str | bytes | bytearray | memoryview
"""Output of a tool: text, or bytes in any encoding: UTF-16 where they begin with its byte order mark,
else read as UTF-8, and what is none becomes U+FFFD."""


def clean(text: Text) -> str:
    r"""The text as a terminal would show it.

    Escape sequences are dropped, carriage returns and backspaces applied, CRLF becomes LF; invalid
    UTF-8 and lone surrogates become U+FFFD. Line k of the result is line k of the text.

    Args:
        text: str or bytes of any size.

    Raises:
        TypeError: the argument is neither.

    Source:
        ECMA-48 for escape sequences; the Unicode standard, section 3.9, for what is replaced.

    Example:
        >>> clean("10%\r20%\r\x1b[32mdone\x1b[0m\n")
        'done\n'
    """
    return _core.clean(text)


def visible(text: Text) -> str:
    r"""The text as a terminal would show it, and what no reader sees as escapes.

    Control characters, zero-width and bidirectional ones, tags and line separators that only some
    readers know are written out: an instruction cannot hide in them, and what a failure turns on
    is seen.

    Args:
        text: str or bytes of any size.

    Raises:
        TypeError: the argument is neither.

    Source:
        `loki.base.text_format.INVISIBLE`.

    Example:
        >>> print(visible("\x1b[31mexpected 'ab', got 'a\u200bb'"))
        expected 'ab', got 'a\u200bb'
    """
    return escape_control_characters(clean(text))
