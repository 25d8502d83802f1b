from decimal import Decimal

from till.money import parse, show


def test_parse_plain() -> None:
    assert parse("12.50") == Decimal("12.50")


def test_parse_thousands() -> None:
    assert parse("1,299.50") == Decimal("1299.50")


def test_show() -> None:
    assert show(Decimal("1299.5")) == "1,299.50"
