from decimal import Decimal

from till.basket import Basket


def test_total_without_discount() -> None:
    assert Basket([Decimal("19.99"), Decimal("5.01")]).total() == Decimal("25.00")


def test_half_a_cent_is_rounded_up() -> None:
    assert Basket([Decimal("1.05")], discount_percent=50).total() == Decimal("0.53")
