"""How often all callers of a service may ask again, and when it says that it may be asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from loki import _core
from loki.base.time import Clock, Duration, SystemClock, argument_nanoseconds


class RetryBudget:
    """A token bucket that caps retries as a share of calls.

    Retries multiply load when a service can least take it. Give all callers of a service one
    budget: each call deposits ``share``, each retry withdraws 1, so that even where everything
    fails, load grows by that share and not by a multiple. A new budget is full. Safe to use from
    many threads.

    Over any t seconds with n calls at most ``capacity + share * n + per_second * t`` retries are
    allowed.

    Args:
        share: retries that a call pays for; 0.2 is the default of Finagle's ``RetryBudget``.
        per_second: retries a second that are allowed whatever the calls, so that callers who come
            seldom can retry, too; chosen, not measured.
        capacity: retries that may be saved up, 1 or more; 100 is what Finagle's defaults reserve.
        clock: where time comes from; only ``monotonic`` is asked.

    Raises:
        ValueError: a number outside its range (none may be over 1,000,000).

    Example:
        >>> budget = RetryBudget(share=0.5, per_second=0, capacity=1)
        >>> budget.try_withdraw(), budget.try_withdraw()
        (True, False)
        >>> budget.deposit(); budget.deposit()
        >>> budget.try_withdraw()
        True
    """

    def __init__(
        self,
        share: float = 0.2,
        per_second: float = 1.0,
        capacity: float = 100.0,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._core = _core.RetryBudget(share, per_second, capacity, self._now())

    def deposit(self) -> None:
        """A call is made: not a retry of one."""
        self._core.deposit()

    def try_withdraw(self) -> bool:
        """Whether a retry may be made now; if so, it is paid for."""
        return self._core.try_withdraw(self._now())

    @property
    def balance(self) -> float:
        """Retries that could be made now, a fraction included."""
        return self._core.balance(self._now())

    def __repr__(self) -> str:
        return f"<RetryBudget: {self.balance:g} retries>"

    def _now(self) -> int:
        return round(self._clock.monotonic() * 1e9)


# --- When a service says that it may be asked again ---------------------------------------------------

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
