"""How much failed in an output, and how much passed. Pure, linear, for comparing two runs.

Whoever mends nine of ten errors sees the first one again each time; it is no repetition as long as
there are fewer. Outputs are often cut to their last lines, so what a summary says comes first.
"""

from __future__ import annotations

import re

LONGEST = 2_000_000
"""Characters of an output that are counted. Chosen, not measured."""

LONGEST_LINE = 500
"""Characters of a line that are looked at. Chosen, not measured."""

_PLACE = re.compile(r"[\w/\\-]\.[A-Za-z]\w{0,5}(?::\d+|\(\d+)")
_SAYS = re.compile(
    r"\s*(?:FAILED|ERROR|FAIL|--- FAIL|not ok|error(?:\[\w+\])?:|[\u2715\u2717\u00d7])"
)
_FAILED = re.compile(
    r"(?i)\b(\d{1,7}) (?:failed\b|failing\b|failures?\b|(?:previous )?errors?\b|problems?\b)"
    r"|\b(?:failures|errors)[=:] ?(\d{1,7})\b"
)
_PASSED = re.compile(r"(?i)\b(\d{1,7}) (?:passed|passing)\b")


def extent(text: str) -> int:
    """How much an output tells of that failed: the most that a summary counts; without one its lines.

    Of lines those count that have a place in a file, or that say that something failed.

    Example:
        >>> extent("a.py:3: error: x\\nb.py:4: error: y\\n")
        2
        >>> extent("a.py:3: error: x\\nFound 31 errors in 9 files\\n")
        31
    """
    lines = _lines(text)
    return _told(lines) or sum(1 for line in lines if _SAYS.match(line) or _PLACE.search(line))


def failures_told(text: str) -> int:
    """How many failures a summary in an output counts; 0: there is none, or it counts none.

    Example:
        >>> failures_told("1 failed, 2 passed in 0.1s"), failures_told("12 passed; 0 failed")
        (1, 0)
    """
    return _told(_lines(text))


def passes_told(text: str) -> int:
    """How many tests passed, as a summary in an output says; 0: it says nothing of it.

    Example:
        >>> passes_told("1 failed, 20 passed in 0.1s")
        20
    """
    return max((int(n) for line in _lines(text) for n in _PASSED.findall(line)), default=0)


def _lines(text: str) -> list[str]:
    return [line[:LONGEST_LINE] for line in text[:LONGEST].splitlines()]


def _told(lines: list[str]) -> int:
    found = (number for line in lines for pair in _FAILED.findall(line) for number in pair)
    return max((int(number) for number in found if number), default=0)
