"""How long to wait before trying again."""

from __future__ import annotations

from loki import _core
from loki.base.time import Duration, nanoseconds


class Backoff:
    """Growing delays with a deterministic jitter that never leave ``[base, cap]``.

    ``delay = base * multiplier ** (failures - offset)``, capped, then spread by up to ``jitter`` of
    itself. The jitter is a hash of (seed, key, failures): a restart computes the same delay, and
    tasks that fail together spread out, even at the cap.

    Args:
        base: the first delay: seconds, a ``timedelta`` or text like ``"5s"``.
        multiplier: growth per failure, finite, 1 or more.
        cap: the longest delay; a cap below ``base`` counts as ``base``.
        jitter: half-width of the jitter window as a share of the delay, 0 to 1.
        mode: ``"proportional"``, the one above.
        seed: spreads whole fleets apart; any integer of 64 bits.

    Raises:
        ValueError: an argument outside its range.

    Example:
        >>> Backoff("5s", jitter=0).delay(3, offset=1)
        20.0
    """

    def __init__(
        self,
        base: Duration,
        multiplier: float = 2.0,
        cap: Duration = "24h",
        jitter: float = 0.1,
        mode: str = "proportional",
        seed: int = 0,
    ) -> None:
        if mode != "proportional":
            raise ValueError(f"unknown jitter mode {mode!r}: expected 'proportional'")
        self._core = _core.Backoff(nanoseconds(base), multiplier, nanoseconds(cap), jitter, seed)

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
        for name, count in (("failures", failures), ("offset", offset)):
            if not 0 <= count < 2**32:
                raise ValueError(f"{name} is {count}: expected 0 to 2**32 - 1")
        return self._core.delay_ns(failures, key, offset) / 1e9

    def preview(self, count: int, key: str = "", offset: int = 0) -> list[float]:
        """The delays after 1, 2, … ``count`` failures, in seconds.

        Example:
            >>> Backoff("5s", jitter=0).preview(4, offset=1)
            [5.0, 10.0, 20.0, 40.0]
        """
        return [self.delay(failures, key, offset) for failures in range(1, count + 1)]
