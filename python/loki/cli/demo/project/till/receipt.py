"""What is printed for the customer."""

from decimal import Decimal

from till.money import show

WIDTH = 24


def line(name: str, price: Decimal) -> str:
    """One line of a receipt: the name on the left, the price on the right, 24 characters."""
    return name + show(price)
