"""Which attempts repeat a failure of their execution."""

from __future__ import annotations

from loki.memory.attempt_metrics import repeats


def test_the_same_failure_later_in_an_execution_is_a_repeat() -> None:
    assert list(repeats([("a", "x"), ("a", "x"), ("a", "x")])) == [False, True, True]


def test_an_oscillation_is_one_too() -> None:
    assert list(repeats([("a", "x"), ("a", "y"), ("a", "x"), ("a", "y")])) == [
        *(False, False, True, True)
    ]


def test_another_execution_begins_anew() -> None:
    assert list(repeats([("a", "x"), ("b", "x"), ("a", "x")])) == [False, False, True]


def test_what_did_not_fail_is_none() -> None:
    assert list(repeats([("a", None), ("a", None)])) == [False, False]
