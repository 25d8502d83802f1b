"""Every condition, criterion and trigger of a review, and their order; total whatever is known."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import loki
from loki.jobs.dead_letters.dead_letter_review import (
    Answers,
    Commit,
    Decision,
    Dependency,
    Facts,
    Scope,
    decide,
    is_due,
    same_error,
    strategy_for,
)
from loki.memory.dead_letter import DeadLetter, PastAttempt
from loki.people.escalation import Case

NOW = datetime(2026, 1, 26, 8, 0, tzinfo=timezone.utc)
LAST = "2026-01-25T14:30:00Z"
TRIED = tuple(
    PastAttempt(number, LAST, f"rewrote the {what} parser by hand", "test_failure", "boom")
    for number, what in enumerate(("first", "second"), 1)
)
LETTER = DeadLetter(
    "a",
    "Add a column",
    failure_count=2,
    first_failure=LAST,
    last_failure=LAST,
    error_summary="boom",
    attempts=TRIED,
)
CASE = Case("a", "Add a column")
FACTS = Facts(CASE)
SAME = loki.Failure.of(
    "KeyError: 'port' is missing in the settings of the node", error_type="KeyError"
)


def decided(facts: Facts, letter: DeadLetter = LETTER) -> tuple[str, str]:
    found = decide(letter, facts)
    return found.action, found.rule


def said(**answers: Any) -> Facts:
    return replace(FACTS, answers=Answers(**answers, by="ann"))


def needs(state: Any, **more: Any) -> Facts:
    return replace(FACTS, dependencies=(Dependency("numpy", state, **more),))


# --- when -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "due"),
    [
        (None, True),
        ("", True),
        (7, True),
        ("yesterday", True),
        ("2026-01-25T08:00:00Z", False),
        ("2026-01-25T07:59:59Z", True),
        ("2026-01-26T08:00:00Z", False),
        ("2036-01-26T08:00:00Z", True),
    ],
)
def test_a_review_is_due_after_a_day(last: Any, due: bool) -> None:
    assert is_due({"last_reviewed": last}, NOW) is due


# --- how it may be recovered ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error_type", "waits", "is_hopeless", "needs_person", "strategy"),
    [
        ("test_failure", False, False, False, "retry_with_simpler_approach"),
        ("test_failure", True, True, True, "dependency_blocked"),
        ("dependency", False, False, False, "dependency_blocked"),
        ("validation", False, True, True, "permanent_abandon"),
        ("validation", False, False, True, "requires_human_review"),
        ("timeout", False, False, False, "retry_with_simpler_approach"),
    ],
)
def test_each_strategy_has_its_rule(
    error_type: str, waits: bool, is_hopeless: bool, needs_person: bool, strategy: str
) -> None:
    letter = replace(LETTER, attempts=(replace(TRIED[0], error_type=error_type),))
    ways = ("added a default", "asked the server for it", "read it from the environment")
    facts = Facts(
        replace(CASE, kind="security" if needs_person else ""),
        (Dependency("numpy", "waiting"),) if waits else (),
        failures=tuple((way, SAME) for way in ways) if is_hopeless else (),
    )
    assert strategy_for(letter, facts) == strategy


# --- retry conditions -----------------------------------------------------------------------------


def test_it_stays_where_nothing_has_changed() -> None:
    assert decided(FACTS) == ("stay", "")


@pytest.mark.parametrize(
    "facts",
    [
        needs("available", was_missing=True),
        needs("available", since="2026-01-25T15:00:00Z"),
    ],
)
def test_a_dependency_that_is_available_now(facts: Facts) -> None:
    assert decided(facts) == ("retry", "dependency_available")


def test_what_was_there_already_when_it_was_brought_back_does_not_bring_it_back_again() -> None:
    missing, known = needs("available", was_missing=True), needs("available").dependencies[0].name
    again = replace(LETTER, recovered=f"now available: {known}")
    assert decided(missing, again) == ("stay", "")
    assert decided(missing, replace(LETTER, recovered="a person wants it"))[0] == "retry"
    assert decided(needs("available", since="2026-01-25T15:00:00Z"), again)[0] == "retry"


def test_what_was_there_before_it_failed_does_not_help() -> None:
    early = needs("available", since="2026-01-25T14:00:00Z")
    assert decided(early) == ("stay", "")
    assert decided(needs("available")) == ("stay", "")
    blocked = replace(LETTER, recovery_strategy="dependency_blocked")
    assert decided(early, blocked) == ("retry", "dependency_available")


def test_all_that_it_needs_must_be_there() -> None:
    there = Dependency("a", "available", was_missing=True)
    facts = replace(FACTS, dependencies=(there, Dependency("b", "waiting")))
    assert decided(facts) == ("stay", "")


def test_a_new_approach() -> None:
    found = decide(LETTER, said(new_approach="Generate the parser from its grammar"))
    assert (found.action, found.rule) == ("retry", "new_approach")
    assert found.approach == "Generate the parser from its grammar"


@pytest.mark.parametrize("approach", ["", "   ", "Rewrote the SECOND parser by hand"])
def test_what_was_tried_is_not_new(approach: str) -> None:
    assert decided(said(new_approach=approach)) == ("stay", "")


def test_a_simpler_scope() -> None:
    facts = said(simpler_scope=Scope("Add it to the export alone"))
    found = decide(LETTER, facts)
    assert (found.action, found.rule) == ("simplify", "simpler_scope")
    assert found.scope == Scope("Add it to the export alone")
    under_way = replace(facts, simpler_state="pending")
    assert decided(under_way, replace(LETTER, simpler_task="a-simpler-2")) == ("stay", "")


def test_a_blocking_bug_that_is_fixed() -> None:
    commit = Commit("5fd6e0c", "Fix the settings", "2026-01-25T15:00:00Z", "it touches a.py")
    found = decide(LETTER, replace(FACTS, commits=(commit,)))
    assert (found.action, found.rule, found.commit) == ("retry", "bug_fixed", "5fd6e0c")
    earlier = replace(commit, at="2026-01-25T14:00:00Z")
    assert decided(replace(FACTS, commits=(earlier,))) == ("stay", "")
    assert decide(LETTER, said(fixed_by="1a2b3c4")).commit == "1a2b3c4"


# --- criteria to abandon it -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requeues", "attempts", "abandoned"), [(0, 12, False), (1, 9, False), (1, 10, True)]
)
def test_ten_attempts_after_it_was_queued_again(
    requeues: int, attempts: int, abandoned: bool
) -> None:
    letter = replace(LETTER, failure_count=attempts, requeues=requeues)
    expected = ("abandon", "too_many_attempts") if abandoned else ("stay", "")
    assert decided(FACTS, letter) == expected


def test_the_same_error_over_three_different_approaches() -> None:
    ways = ("added a default", "asked the server for it", "read it from the environment")
    met = tuple((way, SAME) for way in ways)
    assert decided(replace(FACTS, failures=met)) == ("abandon", "same_error")
    assert same_error(met) == list(ways)
    assert same_error(met[:2]) == []
    assert same_error([(ways[0], SAME), *met[:2]]) == [], "one approach twice is one"
    other = loki.Failure.of("TypeError: settings is not iterable", error_type="TypeError")
    assert same_error([*met[:2], (ways[2], other)]) == []
    vague = loki.Failure.of("failed")
    assert same_error([(way, vague) for way in ways]) == []


def test_a_dependency_that_will_never_come() -> None:
    assert decided(needs("never")) == ("abandon", "dependency_never")
    assert decided(said(dependency_never="the service was shut down")) == (
        "abandon",
        "dependency_never",
    )


def test_a_scope_that_is_gone() -> None:
    assert decided(said(scope_gone="the report was dropped")) == ("abandon", "scope_gone")
    done = replace(FACTS, simpler_state="completed")
    assert decided(done, replace(LETTER, simpler_task="a-simpler-2")) == ("abandon", "scope_gone")


def test_a_person_says_so() -> None:
    found = decide(LETTER, said(abandon="not worth it"))
    assert (found.action, found.rule, found.reason) == ("abandon", "person", "not worth it")


# --- triggers, and the order ----------------------------------------------------------------------


def test_a_trigger_asks_a_person() -> None:
    found = decide(LETTER, replace(FACTS, case=replace(CASE, kind="security")))
    assert (found.action, found.rule) == ("escalate", "security_critical")
    assert found.trigger is not None
    assert found.evidence == ("its kind: security",)
    assert decided(said(confidence=0.2)) == ("escalate", "low_confidence")
    assert decided(said(confidence=0.3)) == ("stay", "")
    assert decided(said(readings=("per day", "per user"))) == ("escalate", "ambiguous_spec")


def test_a_retry_condition_comes_before_a_criterion_and_that_before_a_trigger() -> None:
    everything = Facts(
        replace(CASE, kind="security"),
        (Dependency("numpy", "available", was_missing=True),),
        answers=Answers(scope_gone="dropped"),
    )
    assert decided(everything) == ("retry", "dependency_available")
    without = replace(everything, dependencies=())
    assert decided(without) == ("abandon", "scope_gone")
    assert decided(replace(without, answers=Answers())) == ("escalate", "security_critical")


def test_a_persons_word_comes_before_what_the_program_found() -> None:
    facts = replace(needs("available", was_missing=True), answers=Answers(abandon="enough"))
    assert decided(facts) == ("abandon", "person")


def test_answers_of_people_stand_above_those_of_reviewers() -> None:
    person = Answers(new_approach="mine", confidence=0.0, by="ann")
    both = person.over(Answers(new_approach="theirs", scope_gone="gone", confidence=0.9, by="bot"))
    assert both == Answers(new_approach="mine", scope_gone="gone", confidence=0.0, by="ann")


def test_whatever_is_known_there_is_one_decision_and_always_the_same() -> None:
    chance = random.Random(7)
    texts = ("", "x", "\ud800", "rewrote the first parser by hand", "a" * 5000)
    for _ in range(400):
        letter = replace(
            LETTER,
            failure_count=chance.randrange(15),
            requeues=chance.randrange(3),
            last_failure=chance.choice(["", LAST, "never"]),
            simpler_task=chance.choice(["", "b"]),
            recovery_strategy=chance.choice(["", "dependency_blocked", "odd"]),
        )
        states: Any = chance.choices(["available", "waiting", "missing", "never"], k=2)
        facts = Facts(
            replace(CASE, kind=chance.choice(["", "security"])),
            tuple(
                Dependency(chance.choice(texts), state) for state in states[: chance.randrange(3)]
            ),
            tuple(Commit("c", "s", chance.choice(["", "2027-01-01T00:00:00Z"])) for _ in range(1)),
            tuple((chance.choice(texts), SAME) for _ in range(chance.randrange(4))),
            chance.choice(["", "pending", "completed", "dead-letter"]),
            Answers(
                new_approach=chance.choice(texts),
                abandon=chance.choice(["", "", "enough"]),
                confidence=chance.choice([None, 0.0, 1.0]),
            ),
        )
        found = decide(letter, facts)
        assert isinstance(found, Decision)
        assert found.action in {"retry", "abandon", "escalate", "simplify", "stay"}
        assert found.reason
        assert decide(letter, facts) == found


def test_the_time_of_a_review_has_a_zone() -> None:
    later = NOW + timedelta(seconds=1)
    assert is_due({"last_reviewed": "2026-01-25T09:00:00+01:00"}, later)


def test_of_a_long_life_the_newest_failures_are_held_against_each_other() -> None:
    alike = [(f"rewrote {what} by hand", SAME) for what in ("the parser", "a cache", "its test")]
    others = [(f"try {n}", loki.Failure.of(f"step {n} of the release ended")) for n in range(300)]
    assert len(same_error([*others, *alike])) == 3
    assert same_error([*alike, *others]) == []
