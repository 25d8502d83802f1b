"""Advice by kind of failure: every kind has some, and every placeholder is one that is filled."""

from __future__ import annotations

import string

import pytest

from loki.memory import advice
from loki.recognition.pattern import PatternSet

STEP = {"place", "file", "test", "name", "command", "variable", "module"}
SAME = {"file", "test_file", "code", "name"}


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_every_kind_has_advice() -> None:
    known = {pattern.kind for pattern in PatternSet.default().patterns.values()}
    assert known | {advice.UNKNOWN} == set(advice.contents().kinds)


@pytest.mark.parametrize("name", sorted({**advice.contents().kinds, **advice.contents().triggers}))
def test_something_can_be_done_and_decided_whatever_is_known(name: str) -> None:
    told = advice.of(name)
    assert told.to_do({"command": "the failing check"})
    assert all(step.endswith(".") for step in told.steps)
    assert told.decide[0].islower()  # it goes on behind "Decide"
    assert not placeholders(told.decide + "".join(told.causes))
    assert all(cause[0].islower() for cause in told.causes)
    assert not set.union(*map(placeholders, told.steps)) - STEP


@pytest.mark.parametrize("kind", sorted(advice.contents().kinds))
def test_advice_can_be_given(kind: str) -> None:
    told = advice.of(kind)
    assert not placeholders(told.cause + told.instead)
    assert told.cause[0].isupper()
    assert told.instead[0].islower()  # it goes on behind a semicolon


def test_the_most_telling_name_counts() -> None:
    assert (
        advice.of("lint-error-eslint", "lint-error", "stopped")
        == advice.contents().kinds["lint-error"]
    )
    assert advice.of("", "no-such-kind", "stopped") == advice.contents().triggers["stopped"]
    assert advice.of("no-such-kind") == advice.of() == advice.contents().kinds[advice.UNKNOWN]


def test_precise_causes_ask_for_what_they_say() -> None:
    for cause in advice.contents().causes:
        assert cause.kind in advice.contents().kinds
        assert cause.same <= SAME
        assert placeholders(cause.cause) <= cause.same


@pytest.mark.parametrize(
    ("kind", "extension", "shared", "cause"),
    [
        ("type-error", "ts", {}, "Type system constraints"),
        ("type-error", "ts", {"name": "`Prefs`"}, "Type system constraints in the definition of `Prefs`"),
        ("type-error", "rs", {"name": "`Prefs`"}, "A declaration that does not fit its uses"),
        ("import-not-found", "py", {}, "Python path or module resolution"),
        ("test-failure", "py", {"test_file": "`t.py`"}, "Test environment or fixture of `t.py`"),
        ("test-failure", "py", {"file": "`a.py`"}, "What the test expects and what the code is for are not the same"),
        ("no-such-kind", None, {}, "A failure that no pattern knows"),
    ],
)  # fmt: skip
def test_the_first_cause_that_holds(
    kind: str, extension: str | None, shared: dict[str, str], cause: str
) -> None:
    assert advice.cause_of(kind, extension, shared) == cause


def test_a_sentence_that_asks_for_what_is_not_known_is_left_out() -> None:
    assert advice.fill("Look at {place}.", {"place": ""}) is None
    assert advice.fill("Look at {place}.", {}) is None
    assert advice.fill("Look around.", {}) == "Look around."
