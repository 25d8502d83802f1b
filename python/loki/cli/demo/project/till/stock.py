"""What is left on the shelf."""

from collections.abc import Iterable


def count(sales: Iterable[tuple[str, int]], start: dict[str, int]) -> dict[str, int]:
    """How many of each are left after some sales."""
    left = start
    for name, number in sales:
        left[name] = left[name] - number
    return left
