"""Characters that no reader sees, or that a terminal obeys, written out."""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters but tab and line feed, zero-width and bidirectional ones, tags, fillers, and line
separators that only some readers know. Source: the Unicode standard, general categories Cc, Cf and
Zl/Zp; variation selectors supplement; lone surrogates (from names of files), which no file can hold."""


def escape_control_characters(text: str) -> str:
    r"""A text whose invisible characters stand there as escapes; all others stay.

    Example:
        >>> print(escape_control_characters("a\u202eb \x1b[2J"))
        a\u202eb \x1b[2J
    """
    return INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
