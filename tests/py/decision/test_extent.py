"""How much failed in an output: fewer errors count as fewer, whatever stands round them."""

from __future__ import annotations

import pytest

from loki.decision.extent import extent
from support.tool_calls import mypy_fails, pytest_fails


def test_fewer_errors_are_fewer() -> None:
    counts = [extent(mypy_fails(number)) for number in (9, 6, 2, 1)]
    assert counts == [9, 6, 2, 1]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("3 passed in 0.02s", 0),
        ("src/a.ts(3,5): error TS2322: x", 1),
        ("error[E0308]: mismatched types\n --> src/lib.rs:9:5\n", 2),
        ("not ok 1 - adds\nok 2 - subtracts\n", 1),
        ("--- FAIL: TestAdd (0.00s)\n    calc_test.go:9: got -1\n", 2),
        ("  ✕ adds (3 ms)\n  ✓ subtracts\n", 1),
        ("Version 1.2:3 of 10:30", 0),
    ],
)
def test_lines_that_tell(text: str, count: int) -> None:
    assert extent(text) == count


def test_it_is_linear_and_total() -> None:
    for text in ("a." * 10**6, "\n" * 10**6, "a.py:1\n" * 10**5, "\ud800", pytest_fails()):
        assert extent(text) >= 0
