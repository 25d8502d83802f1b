"""Recorded runs: what is read of files that others wrote, and what the monitor would have said to them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from loki.adapters.monitor.recorded_run import Ends, Made, Read, as_steps, recorded_runs, remarks
from loki.base.error import UsageError
from support.wrong_types import changed

RED = "FAILED test_app.py::test_a - KeyError: 'x'\n1 failed, 2 passed in 0.1s"


def claude(*parts: Any, **more: Any) -> list[dict[str, Any]]:
    """A session as Claude Code keeps it: (tool, input, result, is_error), or words of one of both."""
    lines: list[dict[str, Any]] = [
        {"type": "queue-operation", "operation": "enqueue"},
        {
            "type": "user",
            "cwd": "/work-of-nobody",
            "message": {"role": "user", "content": "Fix it"},
            **more,
        },
    ]
    for number, part in enumerate(parts):
        if isinstance(part, str):
            who = "user" if part.startswith("> ") else "assistant"
            content: Any = part if who == "user" else [{"type": "text", "text": part}]
            lines.append({"type": who, "message": {"role": who, "content": content}, **more})
            continue
        tool, given, result, is_error = part
        use = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
        told = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
        if is_error:
            told["is_error"] = True
        lines.append({"type": "assistant", "message": {"content": [use]}, **more})
        lines.append({"type": "user", "message": {"content": [told]}, **more})
    return lines


def written(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines), "utf-8")
    return path


CHECK = ("Bash", {"command": "pytest -q"}, f"Exit code 1\n{RED}", True)


def edit(text: str) -> tuple[str, dict[str, str], str, bool]:
    path = "/work-of-nobody/app.py"
    return ("Edit", {"file_path": path, "old_string": "x", "new_string": text}, "updated", False)


def test_a_session_of_claude_code(tmp_path: Path) -> None:
    lines = claude(CHECK, edit("a"), CHECK, edit("b"), CHECK, "All tests pass.", "> go on", "Bye.")
    (run,) = recorded_runs([written(tmp_path / "s.jsonl", lines)])
    assert (run.id, run.agent, run.folder, run.calls) == ("s", "claude-code", "/work-of-nobody", 5)
    first = run.events[0]
    assert isinstance(first, Made)
    assert (first.ok, first.exit_code, first.result) == (False, 1, RED)
    assert [one.message for one in run.events if isinstance(one, Ends)] == [
        "All tests pass.",
        "Bye.",
    ]
    said = list(remarks(run, tmp_path))
    assert [(one.place, one.kind, one.reason) for one in said] == [
        (11, "nudge", "repeat"),
        (13, "refuse", "claim"),
    ]
    assert lines[said[0].place - 1]["message"]["content"][0]["id"] == "t4", "lines count from 1"


def test_what_a_person_refused_and_what_goes_on_in_the_background_is_no_call(
    tmp_path: Path,
) -> None:
    lines = claude(
        ("Bash", {"command": "rm x"}, "The user doesn't want to proceed with this tool use.", True),
        ("Bash", {"command": "pytest", "run_in_background": True}, "Running with ID: b1", False),
        ("Read", {"file_path": "a.py"}, [{"type": "text", "text": "1\tx"}], False),
    )
    (run,) = recorded_runs([written(tmp_path / "s.jsonl", lines)])
    assert [one.call.name for one in run.events if isinstance(one, Made)] == ["Read"]


def test_an_agent_that_worked_for_another_is_a_run_of_its_own(tmp_path: Path) -> None:
    lines = [*claude(CHECK, "Done."), *claude(edit("a"), isSidechain=True, agentId="a1")]
    runs = list(recorded_runs([written(tmp_path / "s.jsonl", lines)]))
    assert [(run.id, run.calls) for run in runs] == [("s", 1), ("s.a1", 1)]


def test_runs_one_a_line_packed_or_not(tmp_path: Path) -> None:
    steps = [{"tool": "bash", "args": {"command": "ls"}, "result": "a.py", "exit_code": 0}]
    run = {"id": "r1", "resolved": True, "steps": steps, "final": "Done.", "more": 1}
    windows = [{"from": 0, "to": 7, "label": "stuck"}]
    (tmp_path / "a.jsonl.gz").write_bytes(
        gzip.compress(json.dumps({**run, "windows": windows}).encode())
    )
    written(tmp_path / "b.jsonl", [run, {**run, "id": "r2", "steps": [{"args": "print(1)"}]}])
    runs = list(recorded_runs([tmp_path]))
    assert [(one.id, one.calls, len(one.windows)) for one in runs] == [
        ("r1", 1, 1),
        ("r1", 1, 0),
        ("r2", 1, 0),
    ]
    again = written(tmp_path / "c.jsonl", [as_steps(one) for one in runs])
    assert [one.events for one in recorded_runs([again])] == [one.events for one in runs]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b'{"steps": 3}', b'{"steps": [{"exit_code": "x"}]}', b"\xff\xfe", b"[" * 99_999],
)
def test_a_line_that_cannot_be_read_is_left_out_and_told(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(line + b'\n{"steps": [], "id": "good"}\n')
    read = Read()
    assert [run.id for run in recorded_runs([file], read)] == ["good"]
    assert len(read.left_out) == 1
    assert read.left_out[0].startswith(f"{file}:1:")


def test_a_packed_file_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = gzip.compress(b'{"steps": [], "id": "good"}\n' * 9)
    (tmp_path / "x.jsonl.gz").write_bytes(data[:-9])
    read = Read()
    list(recorded_runs([tmp_path], read))
    assert read.left_out


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found nothing"):
        list(recorded_runs([tmp_path / "none"]))
    with pytest.raises(UsageError, match="no .jsonl file"):
        list(recorded_runs([tmp_path]))


def test_a_stop_ends_the_turn_and_counts_what_it_still_did(tmp_path: Path) -> None:
    lines = claude(*[CHECK] * 9, "I give up.", "> go on", *[CHECK] * 2, "Done.")
    (run,) = recorded_runs([written(tmp_path / "s.jsonl", lines)])
    said = list(remarks(run, tmp_path))
    assert [one.kind for one in said] == ["nudge", "nudge", "nudge", "stop"]
    assert said[-1].left == 3


SIDE = {"isMeta": False, "isSidechain": True, "agentId": "a", "isCompactSummary": False}
BLOCKS = [{"type": "text", "text": "Exit code 1\nno"}]


@pytest.mark.parametrize("at", range(2, 5))
def test_a_line_of_a_session_that_is_something_else_is_left_out(tmp_path: Path, at: int) -> None:
    lines = claude(("Bash", {"command": "ls"}, BLOCKS, True), "Bye.", "> go on", **SIDE)[1:]
    file = tmp_path / "s.jsonl"
    for line in changed({"cwd": "/work-of-nobody", **lines[at - 2]}):
        others = [one for index, one in enumerate(lines) if index != at - 2]
        read = Read()
        runs = list(recorded_runs([written(file, [*others, line, *claude(CHECK)])], read))
        assert runs[-1].calls >= 1, "what can be read is"
        for run in runs:
            assert isinstance(run.folder, str)
            as_steps(run)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"type": ["x"], "message": 1}, "type: found list, expected str"),
        ({"type": "user", "message": 1}, "message: found int, expected dict"),
        ({"type": "user", "message": {"content": [1]}}, "content.0: found int, expected dict"),
        ({"type": "user", "cwd": 1, "message": {"content": ""}}, "cwd: found int, expected str"),
    ],
)
def test_what_is_left_out_of_a_session_is_told(tmp_path: Path, line: Any, why: str) -> None:
    read = Read()
    file = written(tmp_path / "s.jsonl", [line, *claude(CHECK)])
    assert [run.calls for run in recorded_runs([file], read)] == [1]
    assert len(read.left_out) == 1
    assert read.left_out[0].startswith(f"{file}:1: ")
    assert read.left_out[0].endswith(why)


def test_a_run_that_is_something_else_is_left_out(tmp_path: Path) -> None:
    step = {"tool": "bash", "args": {"command": "ls"}, "result": {"stdout": "x", "exit_code": 1},
            "exit_code": 1, "ok": False, "is_error": True}  # fmt: skip
    run = {"id": "r", "agent": "a", "resolved": True, "steps": [step], "final": "Done.",
           "windows": [{"from": 0, "to": 1, "label": "stuck"}]}  # fmt: skip
    lines = list(changed(run))
    read = Read()
    runs = list(recorded_runs([written(tmp_path / "r.jsonl", [*lines, run])], read))
    assert runs[-1].id == "r"
    assert all(as_steps(one) for one in runs)
    assert read.left_out


@pytest.mark.parametrize("cwd", ["/", "C:\\w", "a", "/a\0", "", "\ud800"])
def test_a_session_may_have_been_anywhere(tmp_path: Path, cwd: str) -> None:
    lines = claude(CHECK, edit("a"), cwd=cwd)
    (run,) = recorded_runs([written(tmp_path / "s.jsonl", lines)])
    assert not list(remarks(run, tmp_path))


def test_deep_arguments_and_odd_exit_codes_are_replayed(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    said = [("lookup", {"a": deep}, f"Exit code {'9' * 5000}\nno", True)] * 4
    file = tmp_path / "s.jsonl"
    (run,) = recorded_runs([written(file, claude(*said))])
    assert list(remarks(run, tmp_path))


def test_a_line_that_is_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loki.adapters.monitor.recorded_run.LONGEST_LINE", 40)
    file = tmp_path / "x.jsonl"
    file.write_bytes(b" " * 41 + b'\n\n{"steps": [], "id": "good"}\n')
    read = Read()
    assert [run.id for run in recorded_runs([file], read)] == ["good"]
    assert read.left_out == [f"{file}:1: longer than 40 bytes"]
