"""What Jupyter shows of loki's objects: escaped, masked, small, and in any page's colors."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki import analysis
from loki.base.markup import html_card, table
from loki.decision.breakers_file import TransitionLog
from loki.decision.loop_policy import Action, Decision
from loki.testing import ManualClock
from support.html import HOSTILE, SECRET, Tags, shown


def hostile_failure() -> loki.Failure:
    return loki.Failure.of(
        f"{HOSTILE} {SECRET}",
        tool=HOSTILE,
        error_type="KeyError",
        path=HOSTILE,
        line=3,
        tests=[HOSTILE] * 9,
        excerpt="\n".join([HOSTILE, SECRET] * 500),
    )


def test_a_failure() -> None:
    found = shown(hostile_failure())
    assert "Failure: runtime-error" in found.text
    assert "alert('x')" in found.text
    assert "and 4 more" in found.text
    assert "lines left out" in found.text


def test_a_match() -> None:
    failure = loki.recognize("FAILED t.py::test_a - KeyError: 'next'")
    assert failure.match is not None
    assert "Match: test-failure" in shown(failure.match).text


def test_a_decision() -> None:
    found = shown(Decision(Action.ESCALATE, None, 2, f"{HOSTILE} {SECRET}", review=True))
    assert "Decision: escalate" in found.text


def test_a_breaker_alone_and_shared(tmp_path: Path) -> None:
    clock = ManualClock()
    alone = loki.Breaker(threshold=1, clock=clock, name=HOSTILE)
    shared = loki.Breakers(tmp_path / "b.json", threshold=1, clock=clock)["api/claude"]
    for breaker in (alone, shared):
        assert "CLOSED" in shown(breaker).text
        breaker.guard().failure(f"{HOSTILE} {SECRET}")
        assert "next callin 300.0 s" in shown(breaker).text
        assert "OPEN" in shown(breaker.snapshot()).text
        assert breaker.snapshot().state == "OPEN"  # to look at it moves nothing


def test_tables_and_columns(tmp_path: Path) -> None:
    project = tmp_path / "<script>"
    log = TransitionLog(project / ".loki/state/circuit-breakers.json")
    log.keep("api", "CLOSED", "OPEN", ManualClock().now(), "down")
    assert "transitions1" in shown(analysis.history(project)).text
    assert "timestamp" in shown(analysis.columns("attempts")).text


def test_what_is_not_known_is_left_out() -> None:
    assert Tags(html_card("a", [("x", None), ("y", ""), ("z", 0)])).text.split() == ["a", "z0"]
    assert Tags(table("a", ["n"], [[1234567]])).text.split() == ["a", "n", "1,234,567"]


@pytest.mark.parametrize("length", [10**4, 10**6])
def test_a_huge_value_is_clipped_after_it_was_masked(length: int) -> None:
    found = html_card("x", [("said", "a" * length)], said="b" * length, quote="c" * length)
    assert len(found) < 8_000
    assert "abcd1234" not in html_card("x" * 380 + " " + SECRET)
