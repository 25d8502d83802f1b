"""Numbers, durations and foreign text as people read them on one line."""

from __future__ import annotations

import re
from collections.abc import Iterable

# --- Characters that no reader sees -----------------------------------------------------------------

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


# --- Numbers, durations and texts on one line -------------------------------------------------------

MINUTE_MS = 60_000


def line(text: str, width: int | None = None) -> str:
    """One line of a text that comes from anywhere, and nothing in it that a terminal obeys.

    Args:
        text: the text.
        width: most characters; what is longer ends in "…".

    Example:
        >>> line("a\\n\\x1b[2J b", 6)
        'a [2J…'
    """
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if width is None or len(plain) <= width else plain[: width - 1] + "…"


def amount(count: int, name: str) -> str:
    """A number and what it counts.

    Example:
        >>> amount(1, "task"), amount(1200, "attempt")
        ('1 task', '1,200 attempts')
    """
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def span(milliseconds: float) -> str:
    """A duration as people read it: two units at most.

    Example:
        >>> span(340), span(61_000), span(26 * 3_600_000)
        ('0.3 s', '1m 1s', '1d 2h')
    """
    if milliseconds < MINUTE_MS:
        return f"{milliseconds / 1000:.1f} s"
    rest = round(milliseconds / 1000)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return " ".join(part for part in parts[:2] if part)


# --- What may have been meant by a word that is not known --------------------------------------------

_COMPARED = 60


def closest(word: str, names: Iterable[str]) -> str:
    """The name that a word is a slip of; empty where it is none's.

    Example:
        >>> closest("signls", ["signals", "strategy"])
        'signals'
    """
    from difflib import get_close_matches  # only here: names are hardly ever wrong

    return next(iter(get_close_matches(word[:_COMPARED], list(names), n=1)), "")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A question that ends an error: what may have been meant.

    Args:
        word: what was said.
        names: what is known.
    """
    meant = closest(word, names)
    return f"; did you mean {meant!r}?" if meant else ""
