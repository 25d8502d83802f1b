from till.stock import count


def test_count() -> None:
    assert count([("tea", 2), ("tea", 1)], {"tea": 5}) == {"tea": 2}


def test_count_leaves_its_argument_alone() -> None:
    start = {"tea": 5}
    count([("tea", 2)], start)
    assert start == {"tea": 5}
