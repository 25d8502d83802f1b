"""Killed at any step while work lands, the project is wholly as before or wholly as after."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import loki
from loki.action.changes.change import Change, Edit
from loki.execution.assembly import TaskRequest
from loki.execution.task_session import new_task
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.work.copy_merger import run_in_copy
from loki.jobs.work.queued_task_spec import finished
from loki.stores.project_lock import MARK
from support.journal import die_at_call, killed, make_project, picture
from support.working import PASSES

CHANGE = Change(
    (
        Edit("a.py", b"new = 1\n"),
        Edit("old/deep/gone.py", None),
        Edit("new/deep/b.py", b"b = 1\n"),
        Edit("tool", b"#!/bin/sh\n", mode="executable"),
    )
)
LOST = QueuedTask("t", "change it", lost=1)
STEP = 1 if os.environ.get("LOKI_THOROUGH") == "1" else 8


def land(project: Path, die_at: int = 0) -> loki.Outcome:
    """Run the task; killed before the n-th call after it was let land that changes something on disk."""

    def may_land() -> bool:
        if die_at:
            die_at_call(die_at)
        return True

    return run_in_copy(
        loki.Workspace(project),
        lambda workspace: new_task(
            workspace, TaskRequest("change it", [PASSES], "refactor", "low", id="t")
        ),
        lambda _: lambda _: CHANGE,
        threading.Event(),
        may_land,
    )


def test_killed_at_any_step_of_landing(tmp_path: Path) -> None:
    done = make_project(tmp_path / "done")
    start = picture(done)
    assert land(done).status == "success"
    end = picture(done)
    seen = set()
    number = 1
    while True:
        project = make_project(tmp_path / str(number))
        if not killed(lambda n=number, p=project: land(p, n)):  # type: ignore[misc]
            break
        with loki.Workspace(project).exclusive():
            now = picture(project)
        assert now in (start, end), number
        assert not (project / ".loki" / MARK).exists()
        seen.add(now == end)

        # Whoever takes the task over ends it, and what it did can be undone.
        ended = finished(loki.Workspace(project), LOST) or land(project)
        assert ended.status == "success", number
        assert picture(project) == end, number
        assert not list((project / ".loki" / "tasks" / "t").glob("work*"))
        loki.Workspace(project).journal("t").undo()
        assert picture(project) == start, number
        number += STEP
    assert seen == {False, True}
    assert number > 20, "killed in the middle"
