from till.loyalty import points


def test_new_customer() -> None:
    assert points(1299, years=0) == 12


def test_loyal_customer() -> None:
    assert points(2000, years=3) == 26


def test_points_are_never_negative() -> None:
    assert points(-500, years=1) == 0
