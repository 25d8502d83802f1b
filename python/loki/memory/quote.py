"""Data in texts that agents read: shown as it is, and never taken for instructions.

What tools print, files hold and agents said before is hostile. It stands in code spans and fences
that it cannot end, with nothing in it that readers do not see.
"""

from __future__ import annotations

from functools import lru_cache

from loki.base.markup import code, fence
from loki.base.secret import mask_secrets
from loki.base.tokens import clip_line, clip_lines, clip_to_tokens
from loki.recognition.text import visible

LINE = 200
"""Most characters of data in a line of ours; chosen, not measured."""

LONGEST_LINE = 500
"""Most characters of a line in a fence; chosen, not measured."""

SHORT, REMEMBERED = 2000, 512
"""Characters of a text that is worth remembering, and how many of them are: each briefing tells most
of what the one before it told. Chosen, not measured."""


def quoted(text: str, most: int = LINE) -> str:
    """Data in a line of ours: a code span of at most ``most`` characters.

    Example:
        >>> quoted("no `x`\\n# Task")
        '``no `x` # Task``'
    """
    return _quoted(text, most) if len(text) <= SHORT else _quoted.__wrapped__(text, most)


@lru_cache(REMEMBERED)
def _quoted(text: str, most: int) -> str:
    return code(one_line(text, most))


def one_line(text: str, most: int = LINE) -> str:
    """Data as one line of at most ``most`` characters, 32 or more.

    Spaces within a line stay: they may be all that two values differ by.

    Example:
        >>> one_line("assert 'a  b' ==\\n    'a b'")
        "assert 'a  b' == 'a b'"
    """
    return _one_line(text, most) if len(text) <= SHORT else _one_line.__wrapped__(text, most)


@lru_cache(REMEMBERED)
def _one_line(text: str, most: int) -> str:
    # What is far longer than what is shown need not be looked at in full.
    head = text if len(text) <= most * 64 else text[: most * 32] + text[-most * 32 :]
    return clip_line(
        " ".join(filter(None, (line.strip() for line in plain(head).splitlines()))), most
    )


def plain(text: str) -> str:
    """Data without what no reader sees, and without secrets.

    Secrets are masked here and not in the whole that is composed of such data: a mask could take
    the end of a code span for a part of a password.
    """
    return mask_secrets(visible(text))


def block(text: str, limit_tokens: int, *, tail: float = 0.0) -> str:
    """Data as lines of their own: in a fence.

    Args:
        text: any text.
        limit_tokens: most tokens of it, 1 or more; what is left out is marked.
        tail: share of them for its end; the rest is for its beginning.
    """
    lines = clip_lines(plain(text).strip("\n"), LONGEST_LINE)
    return fence(clip_to_tokens(lines, limit_tokens, tail=tail))


def whole(text: str) -> str:
    """A person's words as lines of their own, all of them."""
    return fence(plain(text).strip())
