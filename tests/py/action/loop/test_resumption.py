"""Where a task stands before it is worked on, with a person's help and without."""

from __future__ import annotations

from typing import Any

import pytest

from loki.action.loop.loop_driver import resumption_status
from loki.action.loop.resumption import aborted, is_help, must_be_resumable
from loki.base import codec
from loki.base.error import UsageError
from loki.memory.attempt import Attempt
from loki.memory.task_record import Intervention, TaskRecord, intervention_text
from loki.recognition.failure import Failure
from support.task import task_of

AT = "2026-04-04T12:00:00.000Z"
HELP = Intervention(AT, context="look at the sign")


def attempt(number: int, execution: int = 1, **fields: Any) -> Attempt:
    failure = Failure.of(f"it fails in way {number}")
    return Attempt(
        number,
        AT,
        "tried",
        "failed",
        failure.message,
        strategy_used="analyze_then_fix",
        execution=execution,
        failure=failure.to_dict(),
        **fields,
    )


def record(status: str | None, execution: int = 1, **more: Any) -> TaskRecord:
    outcome = {"status": status} if status else None
    return task_of({"id": "t", "execution": execution, "outcome": outcome, **more})


def test_a_new_task() -> None:
    found = resumption_status(TaskRecord(execution=0), [])
    assert (found.execution, found.made, found.goes_on, found.past) == (1, 0, False, ())


@pytest.mark.parametrize("status", ["escalated", "failed", "success", "unverified"])
def test_what_has_ended_begins_anew_unless_a_person_helps(status: str) -> None:
    history = [attempt(1), attempt(2)]
    anew = resumption_status(record(status), history)
    assert (anew.execution, anew.made, anew.last_number, anew.past) == (2, 0, 2, ())
    on = resumption_status(record(status), history, HELP)
    assert (on.execution, on.made, on.made_before, on.last_number) == (1, 0, 2, 2)
    assert (on.past, on.goes_on, on.stepped_in) == ((), True, True)
    (kept,) = on.interventions
    assert (kept.execution, kept.attempt, kept.status) == (1, 2, status)


@pytest.mark.parametrize("status", ["paused", "interrupted", None])
def test_what_has_not_ended_goes_on_as_it_stood(status: str | None) -> None:
    found = resumption_status(record(status), [attempt(1), attempt(2)])
    assert (found.execution, found.made, len(found.past)) == (1, 2, 2)
    assert not found.stepped_in


def test_only_what_came_after_the_last_help_counts() -> None:
    told = [codec.write(Intervention(AT, context="x", execution=1, attempt=2))]
    history = [attempt(n, tokens=10, cost=0.5) for n in (1, 2, 3)]
    found = resumption_status(record("paused", interventions=told), history)
    assert (found.made, found.made_before, len(found.past)) == (1, 2, 1)
    assert (found.tokens, found.cost) == (10, 0.5)


def test_help_of_an_earlier_execution_does_not_count_in_the_next() -> None:
    told = [codec.write(Intervention(AT, context="x", execution=1, attempt=2))]
    found = resumption_status(record("escalated", interventions=told), [attempt(1), attempt(2)])
    assert (found.execution, found.made_before) == (2, 0)


def test_what_is_help() -> None:
    assert is_help(record("escalated"), "")
    assert is_help(record("failed"), "")
    assert not is_help(record("paused"), "")
    assert is_help(record("paused"), "I know")


@pytest.mark.parametrize("status", ["success", "unverified"])
def test_what_is_done_is_not_resumed(status: str) -> None:
    with pytest.raises(UsageError, match=status):
        must_be_resumable(record(status))


def test_an_abort_is_a_failure_with_its_own_name() -> None:
    after = aborted(record("escalated", seen_failing=[["a", "b"]]), AT)
    assert (after.status, after.trigger) == ("failed", "aborted")
    assert after.seen_failing == {("a", "b")}
    assert after.interventions[-1].kind == "abort"


@pytest.mark.parametrize(
    "entry", [3, "x", {}, {"at": AT, "execution": "many"}, {"at": AT, "context": {"a": 1}}, None]
)
def test_a_damaged_intervention_is_left_out(entry: Any) -> None:
    good = codec.write(HELP)
    assert record("paused", interventions=[entry, good]).interventions[-1] == HELP
    assert resumption_status(record("paused", interventions=[entry, good]), []).execution == 1


def test_what_a_person_says_is_bounded_and_masked() -> None:
    assert intervention_text(" \n") == ""
    assert "sk-ant" not in intervention_text("the key is sk-ant-api03-" + "a1B2" * 20)
    with pytest.raises(UsageError, match="at most 8000"):
        intervention_text("x" * 8001)
