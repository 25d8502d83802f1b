"""What a customer is about to buy."""

from dataclasses import dataclass, field
from decimal import Decimal

CENT = Decimal("0.01")


@dataclass
class Basket:
    """Prices of the goods in a basket, and the discount that the customer has."""

    prices: list[Decimal] = field(default_factory=list)
    discount_percent: int = 0

    def add(self, price: Decimal) -> None:
        """Put something into the basket."""
        self.prices.append(price)

    def total(self) -> Decimal:
        """What is to be paid, in whole cents; half a cent is rounded up, as the law has it."""
        full = sum(self.prices, Decimal(0))
        return (full * (100 - self.discount_percent) / 100).quantize(CENT)
