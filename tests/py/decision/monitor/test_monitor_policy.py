"""The monitor's table, asked with anything: total, never a stop without a nudge, nothing on success."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.base.error import AgentStuck
from loki.decision.monitor.monitor_policy import DEFAULT_RULES, step
from loki.decision.monitor.monitor_state import (
    Ended,
    Failed,
    FailuresReset,
    MonitorEvent,
    MonitorRules,
    MonitorState,
    Passed,
    Reaction,
    Started,
)
from loki.decision.monitor.tool_call import Known, ToolCall, known
from loki.decision.monitor.tool_command import Effect
from loki.decision.monitor.tool_result import outcome
from loki.memory.sign import SignRules
from loki.recognition.failure import Failure
from support.examples import examples

FAILURES = [
    Failure.of("KeyError: 'next'", tests=["t.py::test_a"]),
    Failure.of("ValueError: bad date 'x' in a row", tests=["t.py::test_b"]),
    Failure.of("Connection refused by api.example.com", error_code="ECONNREFUSED"),
    Failure.of("error"),
    Failure.of(""),
]
CALLS = [
    known(ToolCall("Bash", {"command": "pytest -q"})),
    known(ToolCall("Bash", {"command": "pytest -x"})),
    known(ToolCall("Edit", {"file_path": "app.py"})),
    known(ToolCall("Read", {"file_path": "app.py"})),
    known(ToolCall("weather", {"city": "Paris"})),
    known(ToolCall("Bash", {"command": "python app.py"})),
    known(ToolCall("Edit", {"file_path": "app.py"}, fits=False)),
]
NO_PYTEST = Failure.of("No module named pytest", error_type="ModuleNotFoundError")
NOT_BEGUN = outcome("/usr/bin/python: No module named pytest")
TYPES = known(ToolCall("Bash", {"command": "mypy ."}))
OUTCOMES = [outcome(text) for text in ("", "0 rows", "wrong: 3", "2 failed, 1 passed", "3 passed")]
told = st.sampled_from(OUTCOMES)
failed = st.builds(
    Failed, st.sampled_from(CALLS), st.sampled_from(FAILURES), st.integers(0, 9), told
)
passed = st.builds(Passed, st.sampled_from(CALLS), told)
ended = st.builds(Ended, st.sampled_from(["All tests pass.", "I changed it.", ""]) | st.text())
others = st.builds(Started, st.sampled_from(CALLS)) | st.builds(FailuresReset)
events = st.lists(failed | passed | ended | others, max_size=40)


def run(events: Sequence[MonitorEvent], rules: MonitorRules = DEFAULT_RULES) -> list[Reaction]:
    state, said = MonitorState(), []
    for event in events:
        state, reaction = step(state, event, rules)
        said.append(reaction)
    return said


@given(events)
@settings(max_examples=examples(150), deadline=None)
def test_the_table_is_total_and_its_state_survives_json(events: list[MonitorEvent]) -> None:
    state = MonitorState()
    nudged: set[str] = set()
    for event in events:
        state, reaction = step(state, event)
        state = MonitorState.from_dict(json.loads(json.dumps(state.to_dict())))
        if isinstance(event, Passed) and not event.outcome.said:
            assert reaction.kind in {"none", "nudge"}, "what printed nothing stops nobody"
        if (
            isinstance(event, Failed)
            and event.call.fits  # what is not taken is no outage, whatever it says
            and event.failure.match
            and event.failure.match.is_infrastructure
        ):
            assert not reaction
        assert (reaction.kind == "refuse") == (reaction.reason == "claim")
        if reaction.kind == "stop":
            assert nudged, "a nudge comes before a stop"
            assert not isinstance(event, Failed) or event.call.fits, "a wrong form stops nobody"
        if reaction.kind == "nudge":
            nudged.add(reaction.reason)


@given(st.lists(st.builds(Passed, st.sampled_from(CALLS)), max_size=30), st.text())
@settings(max_examples=examples(50), deadline=None)
def test_who_never_fails_hears_of_the_very_same_change_alone(
    events: list[MonitorEvent], message: str
) -> None:
    assert {one.reason for one in run(events) if one} <= {"same-change"}


@given(st.lists(st.sampled_from(CALLS[:2]), max_size=30))
@settings(max_examples=examples(50), deadline=None)
def test_looking_in_two_ways_counts_only_what_is_the_very_same_call(calls: list[Known]) -> None:
    said = run([Failed(call, FAILURES[0]) for call in calls])
    for index, reaction in enumerate(said):
        count = calls[: index + 1].count(calls[index])
        assert reaction.kind == ("none" if count < 3 else "nudge" if count < 6 else "stop")


def edits(*texts: str, path: str = "t_app.py") -> list[MonitorEvent]:
    """Changes of one file, each another one."""
    calls = (ToolCall("Edit", {"file_path": path, "new_string": text}) for text in texts)
    return [Passed(known(call)) for call in calls]


def rounds(failing: Failed, changes: Sequence[MonitorEvent]) -> list[str]:
    """What is said to a failure, each time that it comes, with one of the changes between."""
    events: list[MonitorEvent] = [one for change in changes for one in (failing, change)]
    return [one.kind for one in run([*events, failing])[::2]]


HARNESS = known(ToolCall("run_tests"))
NAMED = Failure.of("KeyError: 'next'", tests=["test_app.py::test_a"], path="app.py")


@pytest.mark.parametrize(
    ("call", "path", "first"),
    [
        (HARNESS, "app.py", 2),  # a harness that tells results by itself
        (CALLS[0], "app.py", 3),  # a command that the agent chose
        (CALLS[0], "other.py", 4),  # in files that nobody changed
    ],
)
def test_a_failure_that_comes_back_is_named_by_what_is_known_of_it(
    call: Known, path: str, first: int
) -> None:
    kinds = rounds(Failed(call, NAMED), edits(*map(str, range(12)), path=path))
    assert kinds[: first - 1] == ["none"] * (first - 1)
    later = ["nudge"] * (11 - first) if path == "app.py" else ["none"] * (11 - first)
    assert kinds[first - 1 : 11] == ["nudge", *later]
    assert kinds[11] == ("stop" if path == "app.py" else "none")


@pytest.mark.parametrize(
    ("retries", "threshold", "nudge", "stop"),
    [(3, 2, 3, 6), (0, 2, 3, 6), (9, 2, 3, 10), (3, 3, 4, 6)],
)
def test_the_configuration_says_when(retries: int, threshold: int, nudge: int, stop: int) -> None:
    rules = MonitorRules.of(SignRules(threshold=threshold), retries)
    kinds = [one.kind for one in run([Failed(CALLS[0], FAILURES[0])] * 12, rules)]
    assert (kinds.index("nudge") + 1, kinds.index("stop") + 1) == (nudge, stop)


def test_exempt_commands_and_kinds_are_never_counted() -> None:
    for rules in (SignRules(exempt=("pytest*",)),):
        turn: list[MonitorEvent] = [Failed(CALLS[0], FAILURES[0]), *edits("a")]
        reasons = {one.reason for one in run(turn * 6, MonitorRules(rules)) if one}
        assert reasons <= {"same-change", "same-call"}
        assert "same-call" not in reasons or not rules.exempt
    polls = [Failed(CALLS[5], FAILURES[3])] * 6
    assert not any(run(polls, MonitorRules(SignRules(exempt=("python app.py",)))))
    assert any(run(polls))


@pytest.mark.parametrize(
    ("before", "message", "kind"),
    [
        ([], "All tests pass.", "none"),
        ([Passed(CALLS[2])], "All tests pass.", "refuse"),
        ([Passed(CALLS[2])], "I changed app.py; nothing has been run yet.", "none"),
        ([Passed(CALLS[2]), Passed(CALLS[0])], "All tests pass.", "none"),
        # It was checked, then changed: nobody can tell of the whole, of the tests it is plain.
        ([Passed(CALLS[2]), Passed(CALLS[0]), Passed(CALLS[2])], "Everything works now.", "none"),
        ([Passed(CALLS[2]), Passed(CALLS[0]), Passed(CALLS[2])], "All tests pass.", "refuse"),
        ([Passed(CALLS[2])], "Everything works now.", "refuse"),  # nothing was run at all
        ([Failed(CALLS[0], FAILURES[0])], "All tests pass.", "refuse"),
        ([Failed(CALLS[0], FAILURES[0])], "The new tests pass.", "none"),
        ([Failed(CALLS[0], FAILURES[0])], "All tests pass but test_a, which fails.", "none"),
        ([Failed(CALLS[0], NO_PYTEST, 0, NOT_BEGUN)], "All tests pass.", "none"),
        (
            [Passed(CALLS[2]), Failed(CALLS[0], NO_PYTEST, 0, NOT_BEGUN)],
            "All tests pass.",
            "refuse",
        ),
        # Whatever runs them: what it prints says how tests went.
        (
            [Passed(CALLS[2]), Passed(CALLS[5], outcome("Ran 3 tests in 0.1s\n\nOK"))],
            "All tests pass.",
            "none",
        ),
        (
            [Passed(CALLS[2]), Passed(CALLS[5], outcome("1 failed, 2 passed"))],
            "All tests pass.",
            "refuse",
        ),
        ([Failed(CALLS[0], FAILURES[0]), Passed(CALLS[0])], "All tests pass.", "none"),
        ([Failed(CALLS[3], FAILURES[3])], "All tests pass.", "none"),
        (
            [Passed(known(ToolCall("Write", {"file_path": "README.md"})))],
            "Everything works now.",
            "none",
        ),
        ([Passed(CALLS[2]), Passed(CALLS[5])], "It works now.", "none"),  # the program was run
        ([Passed(CALLS[2]), Passed(CALLS[5])], "All tests pass.", "refuse"),
        ([Passed(CALLS[2]), Passed(TYPES)], "All checks are green.", "none"),
        ([Passed(CALLS[2]), Passed(TYPES)], "All tests pass.", "refuse"),
        ([Passed(CALLS[2])], 'The log says "all tests pass".', "none"),
        ([Passed(CALLS[2])], "", "none"),
        (
            [Passed(CALLS[2]), Started(CALLS[0])],
            "All tests pass.",
            "none",
        ),  # nobody tells how it ended
        ([Passed(CALLS[2]), Started(CALLS[0]), Passed(CALLS[2])], "All tests pass.", "refuse"),
        ([Passed(CALLS[2]), Started(CALLS[5])], "All tests pass.", "refuse"),
        ([Passed(CALLS[2]), FailuresReset()], "All tests pass.", "refuse"),
    ],
)
def test_a_claim_needs_a_check(before: list[MonitorEvent], message: str, kind: str) -> None:
    assert run([*before, Ended(message)])[-1].kind == kind


def test_the_same_claim_is_refused_once_and_another_one_is_new() -> None:
    ends = map(
        Ended, ("All tests pass.", "all  tests pass.", "It works now.", "The suite is green.")
    )
    said = run([Passed(CALLS[2]), *ends])
    assert [one.kind for one in said] == ["none", "refuse", "none", "refuse", "none"]


def test_who_was_helped_begins_to_count_anew() -> None:
    stuck: list[MonitorEvent] = [Failed(CALLS[0], FAILURES[0])] * 4
    failing = [one.kind for one in run([*stuck, FailuresReset(), *stuck])]
    once = ["none", "none", "nudge", "nudge"]
    assert failing == [*once, "none", *once]


def test_a_stop_raises_what_it_knows() -> None:
    said = run([Failed(CALLS[0], FAILURES[0])] * 6)
    stop = said[5]
    with pytest.raises(AgentStuck) as caught:
        stop.raise_if_stop()
    error = caught.value
    assert (error.failure, error.count, error.reason) == (stop.failure, 6, "same-call")
    said[0].raise_if_stop()


def test_effects_say_what_a_try_is() -> None:
    looks = Passed(CALLS[3]), Passed(CALLS[5])
    other = Failed(CALLS[1], FAILURES[0])
    assert not any(run([Failed(CALLS[0], FAILURES[0]), *looks, other]))
    tries = [one for edit in edits("a", "b") for one in (Failed(CALLS[0], NAMED), edit)]
    assert run([*tries, Failed(CALLS[1], NAMED)])[-1].kind == "none", (
        "in a file that it does not name"
    )
    tries = [
        one for edit in edits("a", "b", path="app.py") for one in (Failed(CALLS[0], NAMED), edit)
    ]
    assert run([*tries, Failed(CALLS[1], NAMED)])[-1].kind == "nudge"
    assert CALLS[5].effect is Effect.RUN


def test_what_a_tool_does_not_take_is_told_of_by_its_reason() -> None:
    """Whatever was given, and until the tool takes something; reasons that differ are progress."""

    def wrong(path: str, reason: str = "content: Field required") -> Failed:
        call = ToolCall("write_file", {"path": path}, fits=False)
        return Failed(known(call), Failure.of(f"ValidationError: {reason}"))

    taken = Passed(known(ToolCall("write_file", {"path": "a", "content": ""}, effect=Effect.READ)))
    other = Passed(known(ToolCall("Read", {"file_path": "a"})))
    kinds = [one.kind for one in run([wrong("a"), other, wrong("b"), wrong("c"), wrong("d")])]
    assert kinds == ["none", "none", "nudge", "nudge", "nudge"]
    assert {one.kind for one in run([wrong("a")] * 40)} == {"none", "nudge"}, "never a stop"
    assert not any(run([wrong("a"), taken] * 9))
    assert not any(run([wrong("a"), wrong("a", "path: Field required"), wrong("a", "too long")]))


def test_who_asks_again_for_what_is_not_done_yet_waits() -> None:
    build = known(ToolCall("get_build", {"id": "7"}))
    for said in ("build 7 is still running", "report not ready yet", "not yet available"):
        assert not any(run([Failed(build, Failure.of(said))] * 9)), said
    assert run([Failed(build, Failure.of("there is no build 7"))] * 6)[-1].kind == "stop"
    for name in (
        "wait_for_build",
        "build_status",
        "check_tests",
    ):  # known as tools that run something
        call = known(ToolCall(name, {"id": "7"}))
        for said in ("status: pending", "build 7 is in progress", "it isn't finished yet"):
            assert not any(run([Failed(call, Failure.of(said))] * 9)), (name, said)
    tests = known(ToolCall("run_tests"))
    failed = Failed(tests, Failure.of("RuntimeError: server not ready", tests=["t.py::test_a"]))
    assert run([failed] * 6)[-1].kind == "stop"
    deploys = known(ToolCall("Bash", {"command": "python deploy.py"}))
    said = "RuntimeError: the old one is still running"
    assert run([Failed(deploys, Failure.of(said))] * 6)[-1].kind == "stop"


def test_what_a_tool_does_not_take_is_never_an_outage_nor_a_check() -> None:
    call = known(ToolCall("run_tests", {"timeout": "x"}, fits=False))
    assert (call.breaker, call.is_check, call.effect) == ("", False, Effect.OTHER)
