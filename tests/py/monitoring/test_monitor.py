"""The monitor as its callers meet it: tools before and after, instructions, an ending."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loki
from loki import Monitor, ToolCall

CHECK = ToolCall("Bash", {"command": "pytest -q"})
SAID = "FAILED test_login.py::test_redirect - KeyError: 'next'"


def edit(text: str, path: str = "login.py") -> ToolCall:
    return ToolCall("Edit", {"file_path": path, "old_string": "pass", "new_string": text})


def test_the_same_fix_again_and_again_is_nudged_and_then_stopped(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    kinds = []
    for number in range(4):
        reaction = monitor.after(CHECK, SAID, exit_code=1)
        kinds.append(reaction.kind)
        assert not monitor.after(edit(f"return {number}"), "ok")
    assert kinds == ["none", "nudge", "nudge", "stop"]
    assert reaction.count == 4
    assert reaction.failure is not None
    with pytest.raises(loki.AgentStuck, match="led nowhere") as caught:
        reaction.raise_if_stop()
    assert caught.value.count == 4
    assert "return 2" in monitor.instructions()


def test_every_failing_call_is_kept_without_secrets(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, session="s", agent="a", task="t")
    monitor.after(ToolCall("Bash", {"command": "pytest --password=hunter2"}), SAID, exit_code=1)
    (line,) = (tmp_path / ".loki/logs/tool-calls.jsonl").read_text("utf-8").splitlines()
    kept = json.loads(line)
    assert kept["call"] == "pytest --password=<secret>"
    assert (kept["session"], kept["agent"], kept["task"], kept["exit_code"]) == ("s", "a", "t", 1)
    assert "hunter2" not in line


def test_a_claim_without_a_passing_check_is_refused_once(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    assert not monitor.ending("All tests pass.")  # nothing was changed
    monitor.after(edit("x"), "ok")
    assert not monitor.ending("I changed the login.")
    refused = monitor.ending("All tests pass.")
    assert (refused.kind, refused.reason) == ("refuse", "claim")
    assert not monitor.ending("All tests pass.")
    monitor.after(edit("y"), "ok")
    monitor.after(CHECK, "1 passed", exit_code=0)
    assert not monitor.ending("Everything works now.")


def test_processes_share_a_session(tmp_path: Path) -> None:
    kinds = []
    for number in range(4):
        monitor = Monitor(tmp_path, session="one")
        kinds.append(monitor.after(CHECK, SAID, exit_code=1).kind)
        Monitor(tmp_path, session="one").after(edit(str(number)), "ok")
    assert kinds == ["none", "nudge", "nudge", "stop"]
    assert not Monitor(tmp_path, session="another").after(CHECK, SAID, exit_code=1)


def test_a_path_that_no_file_has_is_a_path(tmp_path: Path) -> None:
    call = ToolCall("write_file", {"path": "/a\0b", "content": "x"})
    assert not Monitor(tmp_path).after(call, "wrote 1 character")
