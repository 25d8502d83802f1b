"""How much failed in an output: lines that tell of a failure. Pure, linear, for comparing two runs.

Whoever mends nine of ten errors sees the first one again each time; it is no repetition as long as
there are fewer.
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


def extent(text: str) -> int:
    """How many lines of an output tell of a failure: those with a place in a file, or that say so.

    Example:
        >>> extent("a.py:3: error: x\\nb.py:4: error: y\\nFound 2 errors\\n")
        2
    """
    lines = (line[:LONGEST_LINE] for line in text[:LONGEST].splitlines())
    return sum(1 for line in lines if _SAYS.match(line) or _PLACE.search(line))
