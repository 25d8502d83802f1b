"""Calls that went well and are kept: which the monitor is asked about at once, and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki import Workspace
from loki.adapters.hooks import success_buffer
from loki.adapters.hooks.hook_handler import answer
from support.growth import assert_linear


@pytest.fixture
def project(tmp_path: Path) -> str:
    Workspace(tmp_path).store.write("state/x.json", "{}")
    return str(tmp_path)


def kept(
    project: str, arguments: dict[str, Any], outputs: list[str], tool: str = "x"
) -> list[bool]:
    return [
        success_buffer.keep_success(project, "s", (tool, arguments, "", output))
        for output in outputs
    ]


def test_the_same_call_with_the_same_answer_is_kept_twice_and_remembered(project: str) -> None:
    command = {"command": "ls"}
    assert kept(project, command, ["a 1s", "a 2s", "a 3s"]) == [True, True, False]
    assert len(success_buffer.take_successes(project, "s")) == 2
    assert kept(project, command, ["a 9s"]) == [False], "they were taken, and it is known still"
    assert success_buffer.take_successes(project, "s") == []
    assert kept(project, command, ["a 7s", "b"]) == [False, True]


def test_once_is_not_often(project: str) -> None:
    for _ in range(2):
        assert kept(project, {"command": "ls"}, ["a"]) == [True]
        assert len(success_buffer.take_successes(project, "s")) == 1


def test_the_same_change_is_the_same_whatever_it_gave(project: str) -> None:
    change = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    assert kept(project, change, ["ok", "", "line 3"], "Edit") == [True, True, False]


def test_words_are_the_same_whatever_they_are(project: str) -> None:
    talks = [f"echo 'shall I do {n}?'" for n in range(3)]
    assert [kept(project, {"command": one}, [one])[0] for one in talks] == [True, True, False]
    assert kept(project, {"command": "echo x > a; ls"}, ["a"]) == [True]


@pytest.mark.parametrize("text", ["1", "1.", "1:", "0x"])
def test_a_mark_is_made_in_linear_time(text: str) -> None:
    assert_linear(lambda size: success_buffer._mark("Bash", {"command": "x"}, text * size), 80_000)


def test_many_kept_calls_are_taken_in_linear_time(project: str) -> None:
    folder = Path(project, ".loki", success_buffer.FOLDER)
    folder.mkdir(parents=True, exist_ok=True)

    def take(size: int) -> None:
        lines = (f'["Bash", {{"command": "{n}"}}, "", "ok", "{n:016x}"]\n' for n in range(size))
        (folder / "s.jsonl").write_text("".join(lines), "utf-8")
        assert len(success_buffer.take_successes(project, "s")) == size

    assert_linear(take, 15_000)


def test_a_change_made_three_times_is_told_although_its_answers_differ(project: str) -> None:
    told = []
    for number in range(3):
        given = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
        said = {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": given,
                "tool_response": f"done: {number}", "session_id": "s", "cwd": project,
                "prompt_id": "t"}  # fmt: skip
        told.append(answer("claude-code", said, {}))
    assert told[:2] == [None, None]
    assert told[2] is not None


def test_words_are_told_although_they_differ(project: str) -> None:
    told = []
    for number in range(4):
        said = {"hook_event_name": "PostToolUse", "tool_name": "Bash",
                "tool_input": {"command": f"echo 'shall I do {number}?'"},
                "tool_response": {"stdout": f"shall I do {number}?", "stderr": ""},
                "session_id": "s", "cwd": project, "prompt_id": "t"}  # fmt: skip
        told.append(answer("claude-code", said, {}))
    assert told[:3] == [None] * 3
    assert told[3] is not None
