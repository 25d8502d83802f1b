"""How many retries all callers of a service may make together."""

from __future__ import annotations

from loki import _core
from loki.base.time import Clock, SystemClock


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
