"""Prices as people write them."""

from decimal import Decimal


def parse(text: str) -> Decimal:
    """A price like "1,299.50" as a number."""
    return Decimal(text)


def show(amount: Decimal) -> str:
    """A number as a price."""
    return f"{amount:,.2f}"
