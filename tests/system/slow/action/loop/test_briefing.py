"""Briefings: order of the parts, the budget, and data that stays data whatever it says: what takes its time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loki.action.loop.briefing import Facts, compose
from loki.base.tokens import tokens
from loki.memory.attempt import Attempt, AttemptSummary
from loki.memory.learning.learned_rules import Rule
from loki.memory.reflection import Reflection
from loki.memory.sign import Approach, Sighting
from support.briefing_page import HEADINGS, headings
from support.loop import MakeFailure


@pytest.fixture
def facts(make_failure: MakeFailure) -> Facts:
    failure = make_failure(excerpt="E   assert 1 == 2", tests=("tests/test_a.py::test_b",))
    return Facts(
        title="Fix the login",
        checks=["pytest -q"],
        number=3,
        left=1,
        signs=[Sighting(failure, 2, (Approach("a type guard"),), ("t",))],
        rules=[Rule("rule-1", "Never edit gen/.\nIt is generated.")],
        said=["The session has no user before the redirect."],
        failure=failure,
        also_failing=["ruff check"],
        strategy="context_expand",
        steps=["Read the definition", "Change the call"],
        reason="type-error at confidence 0.90",
        done="read src/session.ts",
        context="src/session.ts:3\n>    3 interface Session {}",
        tried=AttemptSummary.of([Attempt(1, "", "added a type guard", "failed", error="TS2339")]),
        reflections=[Reflection("the type is wider", "narrow it", "a guard", "TS2339", 1, "facts")],
    )


# --- length ---------------------------------------------------------------------------------------


def test_a_budget_drops_from_the_end_but_never_signs_task_or_a_persons_words(facts: Facts) -> None:
    long = replace(facts, context="x\n" * 5000)
    kept = []
    for budget in range(1, tokens(compose(long, 10**6)) + 1):
        text = compose(long, budget)
        found = headings(text)
        assert tokens(text) <= budget or len(found) == 3
        if found not in kept:
            kept.append(found)
    assert kept == [HEADINGS[:n] for n in range(3, 10)]
