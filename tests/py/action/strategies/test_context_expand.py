"""context_expand shows what an error names: its places, definitions, and uses of what changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.strategies.context_expand import (
    BUDGET,
    context_expand,
    defined_in,
    definitions,
    names_in,
)
from loki.action.strategies.strategy_context import Project, StrategyNotApplicable
from loki.recognition.failure import Failure
from support.strategy import situation, write


def test_a_regression_shows_how_the_dependent_file_uses_what_changed(tmp_path: Path) -> None:
    write(
        tmp_path,
        price_dot_py="def total(items, tax):\n    return sum(items) * tax\n",
        invoice_dot_py="from price import total\n"
        + "\n" * 60
        + "def bill(items):\n    return total(items)\n",
        test_invoice_dot_py="from invoice import bill\n\n\ndef test_bill():\n    assert bill([1]) == 1\n",
    )
    failure = Failure.of(
        "tests of a dependent file fail",
        path="invoice.py",
        pattern="regression-detected",
        tests=["test_invoice.py::test_bill"],
    )
    helped = context_expand(situation(tmp_path, failure=failure, changed=["price.py"]))
    assert "invoice.py:63 (uses total of price.py)" in helped.context


def test_it_needs_something_of_the_project(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="x = 1\n")
    with pytest.raises(StrategyNotApplicable, match="names no file"):
        context_expand(situation(tmp_path, output="error: it is broken"))


def test_a_large_project_stays_within_the_budget(tmp_path: Path) -> None:
    for number in range(60):
        body = f"class Session{number}:\n" + "    x: int = 1  # a long comment here\n" * 200
        (tmp_path / f"m{number}.py").write_text(body + "\n\nclass Session:\n    pass\n")
    (tmp_path / "huge.py").write_text("class Session:\n    pass\n" + "#" * 600_000)
    output = "m1.py:3: error: Property 'Session' has no attribute 'user'  [attr-defined]\n"
    helped = context_expand(situation(tmp_path, output=output, command="mypy ."))
    assert len(helped.context) <= BUDGET
    assert "huge.py" not in helped.context


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("export default class Cart {}\nexport const LIMIT = 3\ninterface User {}\n", ["Cart", "LIMIT", "User"]),
        ("func (c *Cart) Total() int {\n}\ntype Cart struct {\n}\n", ["Total", "Cart"]),
        ("pub(crate) fn total() -> i32 {\n}\npub struct Cart;\nimpl Cart {}\n", ["total", "Cart"]),
        ("public static int total(List<Item> items) {\n", ["total"]),
        ("static int add(int a, int b) {\n", ["add"]),
        ("async def fetch(url):\n    return total(url)\n", ["fetch"]),
        ("LIMIT: int = 3\nif LIMIT == 3:\n    total(LIMIT)\n", ["LIMIT"]),
        ("class A:\n    def __init__(self):\n        self.token = 1\n", ["__init__", "token"]),
    ],
)  # fmt: skip
def test_definitions_of_many_languages(text: str, names: list[str]) -> None:
    assert defined_in(text) == names


def test_names_come_from_quotes_and_calls() -> None:
    assert names_in("Type 'Map<string, User>' is missing in type 'Cart'") == [
        "Map",
        "string",
        "User",
        "Cart",
    ]
    assert names_in("total() takes 2 positional arguments but 3 were given") == ["total"]


def test_files_of_the_same_language_and_folder_come_first(tmp_path: Path) -> None:
    for path in ("b/x.ts", "a/x.py", "b/x.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("class Cart:\n    pass\n")
    found = definitions(["Cart"], Project(tmp_path), "b/use.py")
    assert found == [("b/x.py", 1), ("a/x.py", 1), ("b/x.ts", 1)]


def test_a_hostile_file_is_read_in_linear_time(tmp_path: Path) -> None:
    """Blanks and brackets by the hundred thousand: a regex that backtracks would take minutes."""
    parts = [
        " " * 100_000,
        "def (" * 20_000,
        "x " * 50_000 + "Session(",
        "\n" * 100_000,
        "Session" * 9_000,
    ]
    (tmp_path / "hostile.py").write_text("\n".join(parts))
    assert definitions(["Session"], Project(tmp_path), None) == []
