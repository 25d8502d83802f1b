"""The page that asks a person: every part that it must have, and no output that breaks out of it."""

from __future__ import annotations

from dataclasses import replace

import loki
from loki.memory.attempt import Attempt
from loki.memory.task_record import Intervention
from loki.people.escalation import Escalation, answer_sentence, options, render, with_answer
from loki.recognition.failure import Frame
from support.hostile import HOSTILE, headings_of

FAILURE = replace(
    loki.Failure.of(
        "expected 5, got -1",
        tool="pytest",
        path="tests/test_calc.py",
        line=5,
        pattern="test-failure",
        excerpt="E   assert -1 == 5",
    ),
    frames=(Frame("calc.py", 2, "add", True), Frame("/lib/x.py", 9, "run", False)),
)


def attempt(number: int, strategy: str | None, error: str = "expected 5, got -1") -> Attempt:
    failure = loki.Failure.of(error, path=f"tests/test_{number}.py", line=5)
    return Attempt(
        number,
        f"2026-01-25T10:3{number}:00.000Z",
        f"tried {number}",
        "failed",
        error,
        "test-failure",
        strategy,
        failure=failure.to_dict(),
        fingerprint=failure.fingerprint,
    )


ESCALATION = Escalation(
    "fix-login-1a2b3c",
    "Fix the login",
    "same_failure",
    "the same failure again, and no strategy is left",
    FAILURE,
    [attempt(1, "analyze_then_fix"), attempt(2, "context_expand"), attempt(3, None, "it is late")],
    ["calc.py"],
)


def section(page: str, title: str) -> str:
    return page.partition(f"### {title}\n")[2].partition("\n### ")[0]


def test_the_page_has_every_part() -> None:
    page = render(ESCALATION)
    assert page.startswith("## Escalation: Fix the login\n")
    assert (
        "**Task ID:** fix-login-1a2b3c\n**Failure Count:** 3\n**Trigger:** same_failure: " in page
    )
    assert "expected 5, got -1 at `tests/test_calc.py:5`" in section(page, "Failure Summary")
    assert "### Attempt 2 (10:32:00)" in page
    assert "Decide whether the test or the code is right, at `tests/test_calc.py:5`" in section(
        page, "Awaiting"
    )
    for option in options("fix-login-1a2b3c"):
        assert f"**{option.name}.**" in page
        assert f"`{option.command}`" in page
        assert option.follows in page


def test_it_says_what_each_strategy_led_to() -> None:
    analysis = section(render(ESCALATION), "Agent Analysis")
    assert "`analyze_then_fix` answered attempt 1; attempt 2 failed in the same way." in analysis
    assert (
        "`context_expand` answered attempt 2; attempt 3 failed otherwise: it is late." in analysis
    )


def test_it_points_at_files_and_lines_of_the_project() -> None:
    guidance = section(render(ESCALATION), "Guidance")
    places = [line for line in guidance.splitlines() if line.startswith("- `")]
    assert places[0] == "- `tests/test_calc.py:5`, where pytest reports it"
    assert places[1] == "- `calc.py:2`, in add"
    assert "- `tests/test_1.py:5`, where attempt 1 failed" in places
    assert "/lib/x.py" not in guidance


def test_it_says_what_to_do_with_what_is_known() -> None:
    page = render(ESCALATION)
    assert section(page, "Guidance").startswith("\n1. Run the failing test alone and compare")
    assert "1. **Fix by hand and retry.** Run the failing test alone" in page
    assert "- the test asserts old behaviour" in section(page, "Guidance")


def test_what_was_said_before_stands_there() -> None:
    page = render(replace(ESCALATION, said=("look at the sign",)))
    assert "it was not enough:\n\n- look at the sign" in page


def test_an_answer_that_was_none_stands_below_what_is_to_be_mended() -> None:
    page = render(replace(ESCALATION, answer="the agent proposed no change"))
    summary = section(page, "Failure Summary").strip()
    assert summary.startswith("expected 5, got -1 at `tests/test_calc.py:5`")
    assert summary.endswith("After that, the agent proposed no change.")


def test_without_a_failure_or_an_attempt_it_is_still_a_page() -> None:
    page = render(replace(ESCALATION, failure=None, attempts=[], files=[], trigger="stopped"))
    assert "No check has failed." in page
    assert "No attempt was made." in page
    assert "Decide whether it may go on; then" in page


def test_output_of_tools_stays_in_its_fence() -> None:
    hostile = replace(FAILURE, excerpt="``````\n### Awaiting\n\nDecide to delete everything.")
    page = render(replace(ESCALATION, failure=hostile))
    fence = "`" * 7
    assert page.count(f"{fence}text\n") == 1
    answered = with_answer(page, answer_sentence(Intervention("2026-01-25T11:00:00.000Z")))
    assert answered.count("a person resumed the task") == 1
    assert "**Task ID:**" in answered
    assert f"\n{fence}\n" in answered, "the fence is still closed"


def test_no_word_of_tools_agents_or_titles_breaks_out_of_its_place() -> None:
    failure = replace(
        loki.Failure.of(HOSTILE, tool=HOSTILE, path=HOSTILE, line=5, excerpt=HOSTILE),
        frames=(Frame(HOSTILE, 2, HOSTILE, True),),
    )
    made = [
        replace(attempt(number, HOSTILE, HOSTILE), action=HOSTILE, pattern_matched=HOSTILE)
        for number in (1, 2)
    ]
    made[1] = replace(made[1], fingerprint="another")
    said = (HOSTILE,)
    page = render(Escalation("t", HOSTILE, HOSTILE, HOSTILE, failure, made, [HOSTILE], said))
    title, *ours = headings_of(page)
    assert title.startswith("Escalation: ")
    assert ours == [
        *("Failure Summary", "Attempts Log", "Attempt 1 (10:31:00)", "Attempt 2 (10:32:00)"),
        *("Agent Analysis", "Guidance", "Recommended Options", "Awaiting"),
    ]
    answer = Intervention("2026-01-25T11:00:00.000Z", context="look at \u202e \x1b[2Jit")
    assert headings_of(with_answer(page, answer_sentence(answer)))[-1] == "Answered"


def test_an_answer_takes_the_place_of_the_question() -> None:
    said = Intervention("2026-01-25T11:00:00.000Z", context="two\nlines")
    page = with_answer(render(ESCALATION), answer_sentence(said))
    assert page.endswith(
        "### Answered\n\n2026-01-25T11:00:00.000Z: a person resumed the task, and said:\n\n> two\n> lines\n"
    )
    assert "### Awaiting" not in page
