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
    for number in range(12):
        reaction = monitor.after(CHECK, SAID, exit_code=1)
        kinds.append(reaction.kind)
        assert not monitor.after(edit(f"return {number}"), "ok")
    assert kinds == ["none", "none", *["nudge"] * 9, "stop"]
    assert reaction.count == 12
    assert reaction.failure is not None
    with pytest.raises(loki.AgentStuck, match="led nowhere") as caught:
        reaction.raise_if_stop()
    assert caught.value.count == 12
    assert "return 10" in monitor.instructions()


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
    for _ in range(7):
        monitor = Monitor(tmp_path, session="one")
        kinds.append(monitor.after(CHECK, SAID, exit_code=1).kind)
        Monitor(tmp_path, session="one").after(edit("pass"), "ok")
    assert kinds == ["none", "none", *["nudge"] * 4, "stop"]
    assert not Monitor(tmp_path, session="another").after(CHECK, SAID, exit_code=1)


def test_a_path_that_no_file_has_is_a_path(tmp_path: Path) -> None:
    call = ToolCall("write_file", {"path": "/a\0b", "content": "x"})
    assert not Monitor(tmp_path).after(call, "wrote 1 character")


def test_an_agent_in_a_container_works_on_the_project(tmp_path: Path) -> None:
    """Its folders are others: mapped, or such as this machine has not."""
    for given, folder in (({"/workspace": "."}, "/workspace"), ({}, "/testbed-of-nobody")):
        monitor = Monitor(root=tmp_path, mapped=given)
        kinds = []
        for number in range(3):
            said = f"  File \"{folder}/login.py\", line 3, in go\nKeyError: 'next'\n{SAID}"
            kinds.append(monitor.after(CHECK, said, exit_code=1).kind)
            monitor.after(edit(f"return {number}", f"{folder}/login.py"), "ok")
        assert kinds == ["none", "none", "nudge"], folder
        assert monitor.ending("All tests pass.").kind == "refuse"


def test_what_is_changed_outside_the_project_is_none_of_it(tmp_path: Path) -> None:
    monitor = Monitor(root=tmp_path)
    monitor.after(edit("x", "/tmp/notes/elsewhere.py"), "ok")
    assert not monitor.ending("All tests pass.")


def test_the_project_is_named_once(tmp_path: Path) -> None:
    assert Monitor(root=tmp_path).workspace.root == Monitor(tmp_path).workspace.root
    with pytest.raises(loki.UsageError, match="expected one of them"):
        Monitor(tmp_path, root=tmp_path)


def test_what_a_tool_refuses_is_called_by_its_first_words(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    said = (
        "<tool_use_error>String to replace not found in file.</tool_use_error>\n"
        "String: x = 1\n\nPlease try again with another string.\n^^^^^"
    )
    for number in range(4):
        reaction = monitor.after(edit(str(number)), said, ok=False)
    assert reaction.failure is not None
    assert reaction.failure.message == "String to replace not found in file."


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("bash: line 1: pytset: command not found\n", "nudge"),
        ("python: can't open file '/w/x.py': [Errno 2] No such file or directory\n", "nudge"),
        ("Segmentation fault (core dumped)\n", "nudge"),
        ("Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'a'\n", "nudge"),
        ("0 rows\n", "none"),
    ],
)
def test_a_shells_own_words_tell_where_no_exit_code_does(
    tmp_path: Path, said: str, kind: str
) -> None:
    monitor = Monitor(tmp_path)
    call = ToolCall("bash", {"command": "python x.py"})
    kinds = [monitor.after(call, said).kind for _ in range(3)]
    assert kinds == ["none", "none", kind]


def test_scaffolds_frame_outputs_and_name_the_open_file(tmp_path: Path) -> None:
    """SWE-agent: no exit codes, the file that is open behind each output."""
    monitor = Monitor(tmp_path)
    end = "\n(Open file: /app-of-nobody/src/query.py)\n(Current directory: /app-of-nobody)\nbash-$"
    kinds = []
    for number in range(3):
        kinds.append(
            monitor.after(ToolCall("bash", {"command": "python reproduce.py"}), f"wrong: 3{end}")
        )
        change = ToolCall("bash", {"command": f"edit 3:3\nreturn {number}\nend_of_edit"})
        monitor.after(change, f"[File updated]{end}")
    assert [one.reason for one in kinds] == ["", "", "same-output"]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KeyError("rate limit exceeded"), "CLOSED"),
        (IndexError("429 too many requests"), "CLOSED"),
        (ConnectionResetError("connection reset by peer"), "OPEN"),
    ],
    ids=repr,
)
def test_a_bug_in_a_tool_is_no_outage(tmp_path: Path, error: Exception, state: str) -> None:
    monitor = loki.Monitor(tmp_path)
    fetch = ToolCall("fetch", {"url": "https://api.example.com/v1"})
    for _ in range(3):
        monitor.after(fetch, error)
    breaker = monitor.workspace.breakers()["tool/api.example.com"]
    assert breaker.snapshot().state == state
