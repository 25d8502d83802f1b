from till.bank import connect


def test_the_terminal_is_reached_with_the_shops_key() -> None:
    assert connect().startswith("https://bank.example/terminal?key=")
