"""Text with what varies taken out, and what makes two failures the same."""

from __future__ import annotations

from loki import _core
from loki.recognition.failure import Failure, as_failure
from loki.recognition.text import Text

LEVELS = ("volatile", "template")


def normalize(text: Text, level: str = "volatile") -> str:
    """The cleaned text with typed placeholders for what differs between two runs.

    Times, durations, identifiers and addresses in hex, IP addresses, URLs, e-mail addresses, temp
    and home folders, positions, sizes, percentages, versions, numbers and secrets become
    placeholders like ``<int>``. Words, identifiers and error codes stay. Idempotent and linear.

    Args:
        text: str or bytes of any size.
        level: ``"volatile"``; or ``"template"``, which also replaces quoted strings and numbers
            glued to identifiers, for grouping across tasks.

    Raises:
        ValueError: an unknown level.

    Example:
        >>> normalize("worker 7 timed out after 30.2s at 0x7ffe12ab")
        'worker <int> timed out after <duration> at <hex>'
    """
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}: expected one of {', '.join(LEVELS)}")
    return _core.normalize(text, level == "template")


def fingerprint(failure: Text | Failure) -> str:
    """32 hex digits that are equal for equal failures.

    XXH3-128 over error type, code, normalized message, failing tests and the names of frames in the
    project. The hash of given fields never changes within a major release.

    Args:
        failure: the output of a tool, or a `loki.Failure`.

    Example:
        >>> fingerprint("KeyError: 'a'") == fingerprint("KeyError: 'b'")
        False
    """
    return as_failure(failure).fingerprint
