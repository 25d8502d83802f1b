"""How long to wait before trying again."""

from __future__ import annotations

import math
from typing import Any

from loki import _core
from loki.base.time import Duration, argument_nanoseconds

_DEFAULTS = {"multiplier": 2.0, "cap": "1d", "jitter": 0.1, "mode": "proportional", "seed": 0}


class Backoff:
    """Growing delays with a deterministic jitter that never leave ``[base, cap]``.

    ``base * multiplier ** (failures - offset)``, capped, then spread over a window by a hash of
    (seed, key, failures): a restart computes the same delay, and tasks that fail together spread
    out. At a bound the window is shifted inside, so that they stay spread even at the cap.

    Args:
        base: the first delay: seconds, a ``timedelta`` or text like ``"5s"``; 0 stays 0.
        multiplier: growth per failure, finite, 1 or more; ``decorrelated`` does without.
        cap: the longest delay; a cap below ``base`` counts as ``base``.
        jitter: half-width of the proportional window as a share of the delay, 0 to 1; no other mode
            asks for it.
        mode: the window around a computed delay d. ``"proportional"``: d ± jitter · d. ``"none"``:
            d. ``"full"``: as wide as d, from 0 where base allows it. ``"equal"``: d/2 to d.
            ``"decorrelated"``: base to three times the delay before it. The last three are those of
            Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        seed: spreads whole fleets apart, 0 to 2**64 - 1.

    Raises:
        ValueError: an argument outside its range.

    Example:
        >>> Backoff("5s", jitter=0).delay(3, offset=1)
        20.0
        >>> 18 <= Backoff("5s").delay(3, key="login test", offset=1) <= 22
        True
    """

    __slots__ = ("_core", "_delay")

    def __init__(
        self,
        base: Duration,
        multiplier: float = 2.0,
        cap: Duration = "24h",
        jitter: float = 0.1,
        mode: str = "proportional",
        seed: int = 0,
    ) -> None:
        if not 0 <= seed < 2**64:
            raise ValueError(f"seed is {seed}: expected a whole number from 0 to 2**64 - 1")
        self._core = _core.Backoff(
            argument_nanoseconds("base", base),
            multiplier,
            argument_nanoseconds("cap", cap),
            jitter,
            mode,
            seed,
        )
        self._delay = self._core.delay  # bound once, not at each call

    def delay(self, failures: int, key: str = "", offset: int = 0) -> float:
        """Seconds to wait after ``failures`` failures in a row.

        Args:
            failures: 0 to 2**32 - 1; 0 gives ``base`` exactly.
            key: what is being retried; different keys get different jitter.
            offset: 1 for a retry inside the loop (5 s, 10 s, 20 s for a base of 5 s), 0 for a
                recurring task.

        Raises:
            ValueError: ``failures`` or ``offset`` outside 0 to 2**32 - 1.
        """
        return self._delay(failures, key, offset)

    def wait(
        self,
        failures: int,
        key: str = "",
        offset: int = 0,
        *,
        retry_after: Duration | None = None,
        left: float | None = None,
    ) -> float | None:
        """Seconds to wait where a service may have asked for more and time may run out.

        Args:
            failures: as for ``delay``, like ``key`` and ``offset``.
            retry_after: what the service asked for (see `loki.decision.retry`). It is obeyed
                where it is longer, beyond ``cap``, too: the service knows when it will be back.
            left: seconds until the deadline, negative where it is past; None: there is none.

        Returns:
            The longer of both, or None where the wait would leave nothing of ``left``: give up now.

        Raises:
            ValueError: as from ``delay``; ``retry_after`` is no duration; ``left`` is no number.

        Example:
            >>> backoff = Backoff("5s", jitter=0)
            >>> backoff.wait(1, retry_after="2m")
            120.0
            >>> backoff.wait(5, left=60) is None
            True
        """
        asked = None
        if retry_after is not None:
            asked = argument_nanoseconds("retry_after", retry_after)
        return self._core.wait(failures, key, offset, asked, _left(left))

    def preview(self, count: int, key: str = "", offset: int = 0) -> list[float]:
        """The delays after 1, 2, … ``count`` failures, in seconds.

        Example:
            >>> Backoff("5s", jitter=0).preview(4, offset=1)
            [5.0, 10.0, 20.0, 40.0]
        """
        return self._core.preview(count, key, offset)

    def total(self, count: int, key: str = "", offset: int = 0) -> float:
        """Seconds that the first ``count`` delays take together.

        Example:
            >>> Backoff("5s", jitter=0).total(4, offset=1)
            75.0
        """
        return math.fsum(self._core.preview(count, key, offset))

    def _given(self) -> dict[str, Any]:
        """The arguments that are not the defaults, exactly."""
        base, multiplier, cap, jitter, mode, seed = self._core.arguments()
        given = {
            "base": _core.format_duration(base),
            "multiplier": multiplier,
            "cap": _core.format_duration(cap),
            "jitter": jitter,
            "mode": mode,
            "seed": seed,
        }
        return {name: value for name, value in given.items() if _DEFAULTS.get(name) != value}

    def __repr__(self) -> str:
        base, *others = self._given().items()
        return f"Backoff({', '.join([repr(base[1]), *(f'{n}={v!r}' for n, v in others)])})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._given(),)


def _restored(given: dict[str, Any]) -> Backoff:
    return Backoff(**given)


def _left(seconds: float | None) -> int | None:
    if seconds is None or seconds == math.inf:
        return None
    return argument_nanoseconds("left", max(seconds, 0.0))  # of NaN it is NaN, which is refused
