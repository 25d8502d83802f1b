"""Points for loyal customers."""


def points(cents: int, years: int) -> int:
    """Points for a purchase: one for each full euro, and a tenth more for each year, rounded down."""
    return cents // 100 + years
