"""Sessions that processes share: real processes, crashes, torn files, bounded in number and size: with processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from loki import Monitor
from loki.adapters.monitor.monitor import (
    document_of,
)
from loki.decision.monitor.monitor_state import MonitorState
from support.tool_calls import bash, pytest_fails

WORK = """
import os, signal, sys
from loki import Monitor, ToolCall
monitor = Monitor(sys.argv[1], session="shared")
for number in range(int(sys.argv[2])):
    name = f"{sys.argv[3]}-{number}/app.py"
    monitor.after(ToolCall("Edit", {"file_path": name}), "ok")
    if number == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def worker(project: Path, edits: int, name: str, dies_at: int = -1) -> subprocess.Popen[bytes]:
    arguments = [str(project), str(edits), name, str(dies_at)]
    return subprocess.Popen([sys.executable, "-c", WORK, *arguments])


def state(project: Path) -> MonitorState:
    text = (project / ".loki" / document_of("shared")).read_text("utf-8")
    return MonitorState.from_dict(json.loads(text))


def test_no_change_of_another_process_is_lost(tmp_path: Path) -> None:
    workers = [worker(tmp_path, 15, name) for name in "abc"]
    assert [one.wait(120) for one in workers] == [0, 0, 0]
    assert state(tmp_path).change == 45


def test_what_was_told_before_a_crash_is_there_after_it(tmp_path: Path) -> None:
    assert worker(tmp_path, 9, "a", dies_at=4).wait(60) == -signal.SIGKILL
    assert state(tmp_path).change == 5
    assert worker(tmp_path, 2, "b").wait(60) == 0
    assert state(tmp_path).change == 7


def test_a_failure_is_counted_across_processes_of_which_one_was_killed(tmp_path: Path) -> None:
    check = bash("pytest -q", pytest_fails(), 1)
    kinds = []
    for name in "abc":
        # A hook's process for each call; one for an edit is killed once it is told.
        reaction = Monitor(tmp_path, session="shared").after(check.call, check.output, **check.how)
        kinds.append(reaction.kind)
        assert worker(tmp_path, 1, name, dies_at=0).wait(60) == -signal.SIGKILL
    assert kinds == ["none", "none", "nudge"]
