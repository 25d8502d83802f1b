"""Results before and after, test by test."""

from __future__ import annotations

import pytest

from loki.action.checks.results.suite_results import (
    Comparison,
    Results,
    compare_results,
    comparison_report,
)
from loki.recognition.pattern import PatternSet

FILES = {"t.a": "t.py", "t.b": "t.py", "u.c": "u.py"}


def results(**outcomes: str) -> dict[str, Results]:
    told = {name.replace("_", "."): outcome for name, outcome in outcomes.items()}
    return {"run": Results(told, FILES)}


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        ("passed", "passed", None),
        ("passed", "failed", "failed"),
        ("passed", "skipped", "skipped"),
        ("passed", None, "gone"),
        ("failed", "failed", None),
        ("failed", "passed", None),
        ("failed", None, None),
        ("skipped", "failed", None),
    ],
)
def test_what_is_a_regression(before: str, after: str | None, broken: str | None) -> None:
    now = {"run": Results({"t.a": after} if after else {})}
    found = compare_results({"run": Results({"t.a": before})}, now)
    assert [b.now for b in found.regressions] == ([broken] if broken else [])


def test_a_swap_changes_no_count() -> None:
    before, after = results(t_a="passed", t_b="failed"), results(t_a="failed", t_b="passed")
    found = compare_results(before, after)
    assert found.tests == {"t.a"}
    count = found.counts["t.py"]
    assert (count.passed_before, count.passed_after) == (1, 1)


def test_only_what_can_be_broken_counts() -> None:
    before, after = results(t_a="passed", u_c="passed"), results(t_a="failed", u_c="failed")
    assert compare_results(before, after, lambda file: file == "u.py").tests == {"u.c"}


def test_a_run_that_only_one_side_has_says_nothing() -> None:
    found = compare_results(results(t_a="passed"), {"other": Results({"t.a": "failed"})})
    assert (found.regressions, found.compared) == ((), 0)


def test_the_failure_names_the_dependent_and_the_tests() -> None:
    found = compare_results(results(t_a="passed", t_b="passed"), results(t_a="failed"))
    found = Comparison(
        found.regressions,
        found.counts,
        2,
        (),
        {"t.py": ("t.py", "till.py", "cart.py")},
        ("cart.py",),
    )
    failure = found.failure(PatternSet.default())
    assert failure is not None
    assert failure.match is not None
    assert (failure.match.pattern, failure.match.confidence) == ("regression-detected", 1.0)
    assert (failure.path, failure.tests) == ("till.py", ("t.a", "t.b"))
    text = comparison_report(found)
    assert "| `t.py` | 2/2 pass | 0/1 pass | 2 |" in text
    assert "- `t.a` - was passing, now failing" in text
    assert "- `t.b` - was passing, now gone" in text
    assert "`t.py` imports `till.py` imports `cart.py`, which was changed." in text
    assert Comparison(compared=2).failure(PatternSet.default()) is None
