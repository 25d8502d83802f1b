"""When a service says that it may be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from loki import _core
from loki.base.time import Duration, argument_nanoseconds

LIMIT = "24h"
"""The longest wait that a header can ask for; Backoff's default cap."""

_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")
"""More precise than Retry-After, and looked at first: OpenAI's and Azure's services send them."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def retry_after(headers: Mapping[str, str], now: datetime, limit: Duration = LIMIT) -> float | None:
    """Seconds that an answer's headers ask to wait; None where they do not, or not legibly.

    Read are ``Retry-After`` (seconds, with decimals, too, or a date in any of the three forms of
    RFC 9110, section 5.6.7) and, before it, ``retry-after-ms`` and ``x-ms-retry-after-ms``.

    Args:
        headers: of the answer; letter case of names does not matter.
        now: the time that a date is seen from, with a zone.
        limit: the longest wait; a service that asks for more gets this.

    Returns:
        0 for a negative number or a date that is past.

    Raises:
        ValueError: ``now`` has no zone, or ``limit`` is no duration.

    Example:
        >>> now = datetime(1994, 11, 6, 8, 49, 30, tzinfo=timezone.utc)
        >>> retry_after({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, now)
        7.0
        >>> retry_after({"Retry-After": "2", "retry-after-ms": "1500"}, now)
        1.5
        >>> retry_after({"Retry-After": "soon"}, now) is None
        True
    """
    if now.tzinfo is None:
        raise ValueError(f"{now!r} has no zone: expected a time like datetime.now(timezone.utc)")
    values = {name.lower(): value for name, value in headers.items()}
    asked = [_core.parse_retry_after_ms(values[name]) for name in _MILLISECONDS if name in values]
    if "retry-after" in values:
        now_us = (now - _EPOCH) // timedelta(microseconds=1)
        asked.append(_core.parse_retry_after(values["retry-after"], now_us))
    found = next((count for count in asked if count is not None), None)
    return None if found is None else min(found, argument_nanoseconds("limit", limit)) / 1e9
