"""Suggestions from similar dead letters: facts only, few words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.memory.dead_letter import DeadLetter, Mention
from loki.memory.suggestion import (
    MOST_TOKENS,
    Solved,
    render,
    suggest,
    tokens,
    what_is_shared,
)

STRATEGIES = {"dependency_check": "see whether the module is declared"}


def record(task: str, *lines: int, message: str = "", **fields: Any) -> DeadLetter:
    known: dict[str, Any] = {
        "pattern": "type-error",
        "kind": "type-error",
        "extension": "ts",
        "code": "TS2456",
        "message": message or f"Type alias 'Preferences' circularly references itself in {task}",
        "strategies": ("context_expand", "analyze_then_fix"),
        "mentions": tuple(Mention("src/types/preferences.d.ts", line, "load") for line in lines),
        "title": f"Add {task}",
        "at": f"2026-04-0{len(task)}T10:00:00.000Z",
    }
    return DeadLetter(task, **{**known, **fields})


def test_what_all_share_is_the_suggestion() -> None:
    found = suggest(record("prefs", 12, 19), [record("set", 14), record("user", 300)], STRATEGIES)
    assert found.cause == "Type system constraints in the definition of `load`"
    assert found.where == ("`src/types/preferences.d.ts`, lines 12-19, in `load` (named in 3 of 3)")
    assert found.approach == (
        "`dependency_check`, which none of them tried: see whether the module is declared"
    )
    assert found.thread == (
        "All 3 failed with `type-error` in `.ts` files with the code `TS2456`. "
        "All name `src/types/preferences.d.ts`. All speak of `load`, `Preferences`. "
        "`analyze_then_fix`, `context_expand` helped in none of them."
    )


def test_what_only_some_share_is_not_said() -> None:
    one = record("a", 1)
    other = record(
        "b", message="no", extension="ts", code=None, strategies=("auto_fix",), mentions=()
    )
    shared = what_is_shared([one, other])
    assert (shared.files, shared.names, shared.code, shared.strategies) == ((), (), None, ())
    assert shared.tried == {"context_expand", "analyze_then_fix", "auto_fix"}
    thread = suggest(one, [other], {}).thread
    assert thread == "Both failed with `type-error` in `.ts` files."


def test_a_shared_test_file_is_a_likely_cause() -> None:
    there = (Mention("tests/test_api.py", 4),)
    one = record("a", kind="test-failure", extension="py", mentions=there, message="x", code=None)
    found = suggest(one, [one], {})
    assert found.cause == "Test environment or fixture of `tests/test_api.py`"


def test_the_patterns_own_strategies_come_first() -> None:
    one = record("a", strategies=("context_expand",))
    assert suggest(one, [one], {}, ("context_expand", "auto_fix")).approach.startswith("`auto_fix`")
    assert suggest(one, [one], {}, ("context_expand",)).approach.startswith("`analyze_then_fix`")
    assert suggest(one, [one], {}, ("escalate",)).approach.startswith("`analyze_then_fix`")


def test_where_every_strategy_was_tried_something_simpler_is_suggested() -> None:
    everything = ("context_expand", "analyze_then_fix", "dependency_check")
    one = record("a", strategies=everything)
    other = record("b", strategies=("dependency_check",))
    assert suggest(one, [other], {}).approach.startswith(
        "every strategy was tried; write the type out by hand"
    )


def test_what_solved_a_similar_task_is_suggested_before_anything_else() -> None:
    one = record("a")
    found = suggest(one, [one], STRATEGIES, (), [Solved("b", "used an alias [x](http://y)")])
    assert found.approach == "what solved `b`: used an alias \\[x\\](http://y)"


def test_without_a_place_what_was_changed_is_worth_a_look() -> None:
    one, other = record("a", files={"z.py": "", "y.py": ""}), record("b", files={"z.py": ""})
    assert suggest(one, [other], {}).where == "`z.py` (changed in 2 of 2)"


def test_without_a_place_nothing_is_said_of_one() -> None:
    text = render(suggest(record("a"), [record("b")], {}), [record("b")])
    assert "Specific area" not in text
    assert re.findall(r"^\d\. \*\*(.*?):\*\*", text, re.MULTILINE) == [
        "Most likely root cause",
        "Alternative approach",
    ]


def test_similar_tasks_are_listed_newest_first_and_not_without_end() -> None:
    many = [record("t" * n, 1) for n in range(1, 10)] + [record(f"u{n}", 1) for n in range(6)]
    text = render(suggest(record("a", 1), many, {}), many)
    listed = re.findall(r"^- `(\w+)`: ", text, re.MULTILINE)
    assert listed[:2] == ["ttttttttt", "tttttttt"]
    assert len(listed) == 10
    assert "- and 5 older ones" in text


words = st.text(st.sampled_from("ab_CD.`/!?\\-\n *<# é漢"), max_size=200)


@settings(deadline=None)
@given(
    path=words,
    name=words,
    message=words,
    code=st.none() | words,
    action=words,
    solved=st.booleans(),
)
def test_suggestions_keep_their_budget_whatever_the_facts_are(
    path: str, name: str, message: str, code: str | None, action: str, solved: bool
) -> None:
    one = record("a", message=message, code=code, mentions=(Mention(path, 10**9, name),))
    found = suggest(one, [one], {"dependency_check": action}, (), [Solved(name, action)] * solved)
    section = render(found, [one])
    suggestions = section.split("\n\n### Similar failures")[0]
    assert tokens(suggestions) <= MOST_TOKENS
    headings = [line for line in section.splitlines() if line.startswith("#")]
    assert headings == ["## Smart suggestions", "### Similar failures", "### Common thread"]


@pytest.mark.parametrize(("text", "count"), [("", 0), ("abcd", 1), ("abcde", 2), ("!!!!", 4)])
def test_tokens_are_counted_by_length_or_signs(text: str, count: int) -> None:
    assert tokens(text) == count
