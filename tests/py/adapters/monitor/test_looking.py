"""Looks, polls and answers that are no failures: nobody hears of them; and those that are stuck do."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.adapters.monitor.monitor import Monitor
from loki.decision.monitor.tool_call import ToolCall, known
from support.growth import assert_linear


def kinds(monitor: Monitor, calls: list[tuple[ToolCall, str]]) -> set[str]:
    return {monitor.after(call, output).kind for call, output in calls}


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command})


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (ToolCall("TaskOutput", {"task_id": "b1", "block": True}), "<status>running</status>"),
        (ToolCall("BashOutput", {"bash_id": "1"}), "building"),
        (ToolCall("get_build", {"id": 7}), '{"id": 7, "status": "in_progress"}'),
        (ToolCall("describe_deployment", {"id": 7}), '{"phase": "Progressing"}'),
        (ToolCall("mcp__github__get_workflow_run", {"id": 7}), '{"state":"RUNNING"}'),
        (bash("gh run view 7"), "in_progress"),
        (bash("squeue -u me"), "JOBID PARTITION\n17 gpu R 0:10"),
        (bash("curl -s https://ci.example.com/builds/7"), '{"status": "queued"}'),
        (ToolCall("browser_scroll", {"by": 1}), "Scrolled."),
        (ToolCall("get_next_item", {}), "item"),
        (ToolCall("press_key", {"key": "Tab"}), "ok"),
    ],
)
def test_asking_how_far_it_is_is_left_alone(tmp_path: Path, call: ToolCall, output: str) -> None:
    assert kinds(Monitor(tmp_path), [(call, output)] * 20) == {"none"}


def test_what_goes_well_is_never_stopped(tmp_path: Path) -> None:
    calls = [(bash("ls checkpoints"), "step_100.pt")] * 40
    assert kinds(Monitor(tmp_path), calls) == {"none", "nudge"}


def test_who_reads_on_may_look_again(tmp_path: Path) -> None:
    calls = []
    for number in range(40):
        calls.append((ToolCall("Read", {"file_path": f"m{number}.py"}), f"text {number}"))
        calls.append((bash("git status"), "nothing to commit"))
    assert kinds(Monitor(tmp_path), calls) == {"none"}


def test_who_reads_the_same_again_and_again_is_told(tmp_path: Path) -> None:
    two = [(ToolCall("Read", {"file_path": f"m{n}.py"}), f"text {n}") for n in range(2)]
    assert "nudge" in kinds(Monitor(tmp_path), two * 6)


@pytest.mark.parametrize(
    "calls",
    [
        [
            (bash(f"grep -rn action docs{n}"), "docs/a.md: exactly one action per turn")
            for n in range(6)
        ],
        [
            (
                ToolCall("read_file", {"path": f"log{n}"}),
                "Error: it began\n" + "line\n" * 9 + str(n),
            )
            for n in range(8)
        ],
        [
            (ToolCall("get_order", {"id": f"W{n}"}), f'{{"order_id": "W{n}", "status": "failed"}}')
            for n in range(8)
        ],
        [
            (
                ToolCall("list_jobs", {"page": n}),
                f'[{{"id": {n}, "error": "disk is full"}}, {{"id": {n + 1}, "error": null}}]',
            )
            for n in range(8)
        ],
    ],
)
def test_what_was_read_is_no_failure(tmp_path: Path, calls: list[tuple[ToolCall, str]]) -> None:
    assert kinds(Monitor(tmp_path), calls) == {"none"}


def test_a_shells_own_words_are_a_failure_of_a_look_too(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    said = [monitor.after(bash(f"rg foo{n}"), "bash: rg: command not found") for n in range(6)]
    assert "nudge" in [one.kind for one in said]
    assert {one.kind for one in said} <= {"none", "nudge"}


def test_a_check_that_never_begins_is_heard_whatever_it_is_given(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    missing = "/usr/bin/python: No module named pytest"
    said = [
        monitor.after(bash(f"python -m pytest -k a{n}"), missing, exit_code=1) for n in range(6)
    ]
    assert "nudge" in [one.kind for one in said]


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        (
            "mypy src",
            "src/a.py:3: error: bad\nFound 3 errors in 1 file (checked 9 source files)",
            1,
        ),
        ("npx eslint .", "✖ 3 problems (3 errors, 0 warnings)", 1),
        ("python import_data.py", "100 rows, 3 errors, see log", 0),
        ("python bench.py", "5 failed to converge, 95 passed", 0),
        ("python manage.py check_links", "2 failures", 0),
        ("make lint", "3 errors", 2),
    ],
)
def test_other_checks_say_nothing_of_tests(
    tmp_path: Path, command: str, output: str, exit_code: int
) -> None:
    monitor = Monitor(tmp_path)
    monitor.after(ToolCall("Edit", {"file_path": "a.py", "new_string": "x"}), "ok", ok=True)
    monitor.after(bash("pytest -q"), "24 passed in 1.2s", exit_code=0)
    monitor.after(bash(command), output, exit_code=exit_code)
    assert monitor.ending("All tests pass.").kind == "none"


@pytest.mark.parametrize("path", ["docs/conf.py", ".github/workflows/ci.yml", "probe2.py"])
def test_edits_that_no_test_reads_leave_a_claim_true(tmp_path: Path, path: str) -> None:
    monitor = Monitor(tmp_path)
    monitor.after(ToolCall("Edit", {"file_path": "a.py", "new_string": "x"}), "ok", ok=True)
    monitor.after(bash("./run"), "ok 1 a\nok 2 b\n1..2")  # TAP, and no exit code
    monitor.after(ToolCall("Edit", {"file_path": path, "new_string": "x"}), "ok", ok=True)
    assert monitor.ending("All tests pass.").kind == "none"


PROBES = [
    {"command": "insert", "path": "a.py", "insert_line": 5, "new_str": "print({})"},
    {
        "file_path": "a.py",
        "edits": [{"old_string": "x = 1", "new_string": "x = 1\nprint({})"}],
    },
    {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n x = 1\n+print({})\n*** End Patch"},
    {
        "file_path": "a.py",
        "old_string": "x = 1",
        "new_string": 'x = 1\nprint(\n    "x",\n    {},\n)',
    },
]


@pytest.mark.parametrize(
    ("tool", "probe"),
    [
        ("str_replace_editor", PROBES[0]),
        ("MultiEdit", PROBES[1]),
        ("apply_patch", PROBES[2]),
        ("Edit", PROBES[3]),
    ],
)
def test_prints_are_no_try_in_whatever_form_they_are_added(
    tool: str, probe: dict[str, object]
) -> None:
    assert not known(ToolCall(tool, probe)).tries
    text = str(probe).replace("print(", "return (")
    assert known(ToolCall(tool, eval(text))).tries


@pytest.mark.parametrize(
    "name", ["reproduction_results_for_the_ticket.json", "reproduce_issue_1234_output.txt"]
)
def test_names_of_any_length_are_read_at_once(name: str) -> None:
    assert_linear(  # it took minutes
        lambda size: known(ToolCall("Write", {"file_path": name * size, "content": "x"})), 32
    )


@pytest.mark.parametrize("text", ["\n", " \n", "(", " ", "1"])
def test_outputs_of_nothing_are_read_at_once(tmp_path: Path, text: str) -> None:
    monitor = Monitor(tmp_path)

    def work(size: int) -> None:
        for tool in ("Bash", "Read", "x"):
            monitor.after(ToolCall(tool, {"command": "pytest"}), text * size)

    assert_linear(work, 8000)  # it took ten seconds
