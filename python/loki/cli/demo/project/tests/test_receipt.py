from decimal import Decimal

from till.receipt import WIDTH, line


def test_line_is_as_wide_as_the_paper() -> None:
    assert len(line("Tea", Decimal("4.20"))) == WIDTH


def test_line_ends_with_the_price() -> None:
    assert line("Tea", Decimal("4.20")).endswith(" 4.20")
