"""How a log stays bounded: its oldest records go."""

from __future__ import annotations

from loki.memory.store import Masked


def trimmed(text: str | None, records: int, characters: int) -> str | None:
    """A log without its oldest records, where it is too long; None where there is none.

    Args:
        text: the log, a record a line; its last line is empty, or torn, and stays.
        records: how many it may have.
        characters: how long it may be.

    Example:
        >>> trimmed('{"n": 1}\\n{"n": 2}\\n{"n": 3}\\n', 2, 1000)
        '{"n": 2}\\n{"n": 3}\\n'
    """
    if text is None:
        return None
    lines = text.split("\n")
    first, room = len(lines) - 1, characters
    while first > 0 and len(lines) - first <= records and len(lines[first - 1]) < room:
        first -= 1
        room -= len(lines[first]) + 1
    return Masked("\n".join(lines[first:]))
