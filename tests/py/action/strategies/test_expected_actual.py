"""What was expected against what came, in the words of many tools."""

from __future__ import annotations

import pytest

from loki.action.strategies.expected_actual import Difference, differences


@pytest.mark.parametrize(
    ("text", "expected", "actual"),
    [
        (">       assert add(2, 3) == 5\nE       assert -1 == 5\nE        +  where -1 = add(2, 3)", "5", "-1"),
        ("E       AssertionError: assert 'ab' == 'abc'", "'abc'", "'ab'"),
        ("AssertionError: -1 != 5", "5", "-1"),
        ("expect(received).toBe(expected) // Object.is equality\n\nExpected: 5\nReceived: -1", "5", "-1"),
        ("AssertionError: expected -1 to be 5 // Object.is equality\n\n- Expected\n+ Received\n\n- 5\n+ -1", "5", "-1"),
        ("AssertionError: expected { a: 1 } to deeply equal { a: 2 }", "{ a: 2 }", "{ a: 1 }"),
        ("      AssertionError [ERR_ASSERTION]: wrong\n      + expected - actual\n\n      -'a'\n      +'b'", "'b'", "'a'"),
        ("assertion `left == right` failed\n  left: -1\n right: 5", "5", "-1"),
        ("    calc_test.go:9: Add(2, 3) = -1, want 5", "5", "-1"),
        ("    calc_test.go:9: got -1 want 5", "5", "-1"),
        ("    calc_test.go:9: expected 5, got -1", "5", "-1"),
        ("\tError:\tNot equal: \n\t      \texpected: 5\n\t     \tactual  : -1", "5", "-1"),
        ("java.lang.AssertionError: expected:<5> but was:<-1>", "5", "-1"),
        ("org.opentest4j.AssertionFailedError: expected: <5> but was: <-1>", "5", "-1"),
        ("  expected: 5\n       got: -1\n\n  (compared using ==)", "5", "-1"),
        ("error TS2322: Type 'string' is not assignable to type 'number'.", "number", "string"),
        ("error TS2345: Argument of type 'string' is not assignable to parameter of type 'number'.", "number", "string"),
        ('error: Incompatible types in assignment (expression has type "str", variable has type "int")', "int", "str"),
        ('error: Argument 1 to "f" has incompatible type "str"; expected "int"', "int", "str"),
        ('error: Incompatible return value type (got "str", expected "int")', "int", "str"),
        ("expected `i32`, found `&str`", "i32", "&str"),
        ('cannot use "x" (untyped string constant) as int value in assignment', "int", "untyped string constant"),
        ("error: incompatible types: String cannot be converted to int", "int", "String"),
    ],
)  # fmt: skip
def test_differences(text: str, expected: str, actual: str) -> None:
    (found,) = differences(text)
    assert (found.expected, found.actual) == (expected, actual)


@pytest.mark.parametrize("text", ["", "ZeroDivisionError: division by zero", "it is broken"])
def test_where_nothing_was_compared_nothing_is_said(text: str) -> None:
    assert differences(text) == []


def test_side_by_side() -> None:
    assert str(Difference("5", "-1")) == "expected: 5\nactual:   -1"


def test_long_lines_take_linear_time() -> None:
    """A line is cut before any regex sees it."""
    assert differences("got " * 200_000) == []
