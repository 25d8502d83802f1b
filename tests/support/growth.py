"""How time grows with size: a ratio within one run, as what a second is worth differs by machine and moment."""

from __future__ import annotations

import time
from collections.abc import Callable

PARTS = 8
"""The large input is so many times the small one: linear work takes 8 times as long, quadratic 64 times."""


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """``work(size)`` takes about as many times as long as ``work(size // 8)`` as it is larger.

    Processor time, the least of some: others use the machine, too. Below two milliseconds nothing is told.
    """
    small, large = float("inf"), float("inf")
    for _ in range(4):
        small = min(small, _seconds(work, size // PARTS))
        large = min(large, _seconds(work, size))
        if large <= 3 * PARTS * max(small, 0.002):
            return
    raise AssertionError(
        f"{size}: {large:.3f} s, {size // PARTS}: {small:.3f} s: {large / small:.0f} times, "
        f"expected about {PARTS} times"
    )


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began
