"""Durations as people write them: ``90s``, ``5m``, ``1h30m``, ``250ms``."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TypeAlias

from loki import _core

Duration: TypeAlias = str | float | timedelta
"""Text with units, seconds, or a ``timedelta``."""

_NANO = 1_000_000_000
_MAX_NS = 2**63 - 1


def nanoseconds(duration: Duration) -> int:
    """Whole nanoseconds in a duration, at most 2**63 - 1.

    Args:
        duration: text with units (``"1h30m"``), seconds as a number, or a ``timedelta``.

    Raises:
        ValueError: text that is no duration, or a number that is negative or not finite.

    Example:
        >>> nanoseconds("1h30m") // 1_000_000_000
        5400
    """
    if isinstance(duration, str):
        return _core.parse_duration(duration)
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{duration!r} is no duration: expected a finite number of 0 or more")
    return min(round(seconds * _NANO), _MAX_NS)


def seconds(duration: Duration) -> float:
    """The same in seconds.

    Example:
        >>> seconds("250ms")
        0.25
    """
    return nanoseconds(duration) / _NANO
