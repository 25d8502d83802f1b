"""What a person would see on the terminal, and where each character of it came from."""

from __future__ import annotations

from bisect import bisect_right
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import TypeAlias

from loki import _core
from loki.base.control_characters import escape_control_characters

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
        `loki.base.control_characters.INVISIBLE`.

    Example:
        >>> print(visible("\x1b[31mexpected 'ab', got 'a\u200bb'"))
        expected 'ab', got 'a\u200bb'
    """
    return escape_control_characters(clean(text))


class Cleaned:
    r"""A cleaned text with the way back to the original.

    Args:
        text: str or bytes of any size.

    Attributes:
        text: the cleaned text.
        runs: (position in it, position in the original, length there), by position; positions in
            the original are code points of a str and bytes of bytes.

    Example:
        >>> cleaned = Cleaned("\x1b[31mred\x1b[0m")
        >>> cleaned.text, cleaned.original(0)
        ('red', 5)
    """

    def __init__(self, text: Text) -> None:
        self.text, self.runs = _core.clean_with_runs(text)
        self._starts = [run[0] for run in self.runs]
        self._encoding = None
        if not isinstance(text, str):
            is_utf16 = bytes(text[:2]) in (BOM_UTF16_LE, BOM_UTF16_BE)
            self._encoding = "utf-16-le" if is_utf16 else "utf-8"

    def original(self, position: int) -> int:
        """Where the character at a position of the cleaned text stands in the original.

        Args:
            position: 0 to the length of the cleaned text.

        Raises:
            IndexError: a position outside.
        """
        if not 0 <= position <= len(self.text):
            raise IndexError(f"position {position}: expected 0 to {len(self.text)}")
        if not self.runs:
            return 0
        start, original, length = self.runs[bisect_right(self._starts, position) - 1]
        shown = position - start
        if self._encoding:
            shown = len(self.text[start:position].encode(self._encoding))
        return original + min(shown, length)
