"""What runs of real agents showed of what comes again: docs/monitor.md; each rule, and its nearest neighbour."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loki.decision.monitor.monitor_policy import step
from loki.decision.monitor.monitor_state import Failed, MonitorEvent, MonitorState, Passed, Reaction
from loki.decision.monitor.tool_call import ToolCall, known
from loki.decision.monitor.tool_result import outcome
from loki.recognition.failure import Failure

CHECK = known(ToolCall("Bash", {"command": "pytest -q"}))
NAMED = Failure.of("KeyError: 'next'", tests=["test_app.py::test_a"], path="app.py")


def run(events: Sequence[MonitorEvent]) -> list[Reaction]:
    state, said = MonitorState(), []
    for event in events:
        state, reaction = step(state, event)
        said.append(reaction)
    return said


def edits(*texts: str, path: str = "t_app.py") -> list[MonitorEvent]:
    """Changes of one file, each another one."""
    calls = (ToolCall("Edit", {"file_path": path, "new_string": text}) for text in texts)
    return [Passed(known(call)) for call in calls]


def script(said: str, code: int = 0) -> Passed | Failed:
    """A script that shows what is wrong, and what it prints."""
    call = known(ToolCall("Bash", {"command": "python reproduce.py"}))
    return (
        Passed(call, outcome(said))
        if not code
        else Failed(call, Failure.of(said), 0, outcome(said))
    )


def between(seen: MonitorEvent, changes: Sequence[MonitorEvent]) -> list[str]:
    events = [one for change in changes for one in (seen, change)]
    return [one.reason for one in run([*events, seen])[::2]]


def test_a_script_that_prints_the_same_wrong_result_whatever_is_changed() -> None:
    app = edits("a", "b", "c", "d", path="app.py")
    assert between(script("expected 3, got 4"), app) == ["", "", *["same-output"] * 3]
    assert between(script("result: 4"), app) == ["", "", "", *["same-output"] * 2], (
        "it may be right"
    )
    assert not any(between(script("2 passed"), app)), "it is right"
    own = edits("a", "b", "c", "d", path="reproduce.py")
    assert between(script("expected 3, got 4"), own)[:4] == [""] * 4, "only the script was changed"
    other = [script(f"expected 3, got {number}") for number in range(9)]
    assert not any(run([one for pair in zip(other, [*app, *app], strict=False) for one in pair]))


@pytest.mark.parametrize(
    "change",
    [
        ToolCall(
            "Edit", {"file_path": "app.py", "old_string": "x = 1", "new_string": "x = 1\nprint(x)"}
        ),
        ToolCall(
            "Edit", {"file_path": "app.py", "old_string": "f()", "new_string": "breakpoint()\nf()"}
        ),
        ToolCall("Bash", {"command": "git checkout app.py"}),
        ToolCall("Bash", {"command": "git stash"}),
        ToolCall("str_replace_editor", {"command": "undo_edit", "path": "app.py"}),
        ToolCall("str_replace_editor", {"command": "view", "path": "app.py"}),
        ToolCall("Edit", {"file_path": "test_app.py", "old_string": "1", "new_string": "2"}),
        ToolCall("Write", {"file_path": "reproduce_bug.py", "content": "import app"}),
        ToolCall("Write", {"file_path": "notes.md", "content": "x"}),
        ToolCall("Bash", {"command": "git add -A && git commit -qm wip"}),
        ToolCall("Bash", {"command": "mkdir -p build"}),
    ],
    ids=lambda call: call.line or f"{call.name} {call.arguments}"[:60],
)
def test_what_cannot_mend_a_failure_is_no_try(change: ToolCall) -> None:
    """Another look each time, through ever other options: nothing is repeated."""
    looks = [known(ToolCall("Bash", {"command": f"pytest -q --maxfail={n}"})) for n in range(4)]
    events: list[MonitorEvent] = []
    for number, look in enumerate(looks):
        events += [Failed(look, NAMED), Passed(known(change)), *edits()[:number]]
    said = [one for one in run(events) if one]
    assert {one.reason for one in said} <= {"same-change"}


def test_the_same_change_a_third_time() -> None:
    edit = edits("x = 2", path="app.py")[0]
    back = Passed(known(ToolCall("Bash", {"command": "git checkout app.py"})))
    assert [one.reason for one in run([edit, back] * 3)] == ["", "", "", "", "same-change", ""]


def test_one_error_of_a_tool_whatever_it_is_given() -> None:
    def query(number: int, said: str = 'relation "users" does not exist') -> Failed:
        return Failed(known(ToolCall("query", {"sql": f"select {number}"})), Failure.of(said))

    assert [one.reason for one in run(list(map(query, range(4))))] == ["", "", "", "same-error"]
    other = [query(0), query(1), query(2, "syntax error at or near x"), query(3)]
    assert not any(run(other))
    shell = [known(ToolCall("Bash", {"command": f"python query.py {n}"})) for n in range(3)]
    failing: list[MonitorEvent] = [
        Failed(call, Failure.of("no such table: users")) for call in shell
    ]
    assert run(failing)[-1].reason == "same-error"
    worked = Passed(known(ToolCall("Bash", {"command": "python query.py"})), outcome("3 tables"))
    assert not any(run([failing[0], failing[1], worked, failing[2]]))


def test_a_time_out_a_third_time() -> None:
    call = known(ToolCall("Bash", {"command": "npm test"}))
    late = Failed(call, Failure.of(""), 0, outcome("Command timed out after 2m 0.0s"))
    said = run([late, *edits("a"), late, *edits("b"), late])
    assert [one.reason for one in said] == ["", "", "", "", "time-out"]


def test_a_file_that_its_changes_leave_unloadable() -> None:
    check = CHECK
    kinds = ("IndentationError", "SyntaxError", "NameError", "SyntaxError", "IndentationError")
    events: list[MonitorEvent] = []
    for number, kind in enumerate(kinds):
        broken = Failure.of(
            f"mistake {number} of its own", error_type=kind, path="app.py", line=number + 1
        )
        events += [*edits(str(number), path="app.py"), Failed(check, broken)]
    assert [one.reason for one in run(events)[1::2]] == ["", "", "", "", "broken"]
    assert not any(run([*events[:8], Passed(check, outcome("3 passed")), *events[8:]]))


def test_what_was_there_before_the_agent_is_none_of_its_making() -> None:
    stash, pop = (
        Passed(known(ToolCall("Bash", {"command": f"git stash {w}"}))) for w in ("", "pop")
    )
    red = Failed(CHECK, NAMED)
    events: list[MonitorEvent] = [*edits("a", path="app.py"), red, stash, red, pop]
    for edit in edits(*map(str, range(8)), path="app.py"):
        events += [edit, red]
    assert not any(run(events))


def test_other_numbers_are_another_result() -> None:
    events: list[MonitorEvent] = []
    for number, edit in enumerate(edits(*map(str, range(8)), path="app.py")):
        failure = Failure.of(f"assert {number} == 27", tests=["test_app.py::test_a"], path="app.py")
        events += [edit, Failed(CHECK, failure)]
    assert not any(run(events))


def test_who_talks_to_nobody_is_told() -> None:
    asks = [
        ToolCall("bash", {"command": f'echo "Please choose the next step: {n}"'}) for n in "abcd"
    ]
    said = run([Passed(known(call), outcome("x")) for call in asks])
    assert [one.kind for one in said] == ["none", "none", "none", "nudge"]


def test_a_cycle_of_the_same_changes_and_the_same_result_is_stopped() -> None:
    """As a real run did for forty calls: two edits that change nothing, a check, and again."""
    turn = [*edits("a", "b", path="app.py"), Failed(CHECK, NAMED, 0, outcome("KeyError"))]
    said = run(turn * 7)
    assert [one.kind for one in said[2::3]][-2:] == ["stop", "stop"]
