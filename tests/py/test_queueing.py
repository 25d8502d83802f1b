"""What the queue and a project make of each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.base.error import UsageError
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.work.queued_task_spec import must_be_whole, must_be_workable, submit, task_of


def test_a_secret_that_came_in_another_way_is_kept_masked_and_not_run(tmp_path: Path) -> None:
    queue = queue_of(loki.Workspace(tmp_path))
    task = queue.submit(QueuedTask("a", "A", checks=("curl --password hunter2hunter2",)))
    assert "hunter2" not in (tmp_path / ".loki" / "queue" / "pending.json").read_text()
    with pytest.raises(UsageError, match="held a secret, which loki does not keep"):
        must_be_whole(task)
    must_be_whole(QueuedTask("b", "B", checks=("true",)))


def test_of_several_that_are_submitted_the_wrong_one_is_named(tmp_path: Path) -> None:
    workspace = loki.Workspace(tmp_path)
    good, wrong = QueuedTask("a", "A", checks=("true",)), QueuedTask("b", "B", checks=("no-such",))
    with pytest.raises(UsageError, match="task b: .*no-such"):
        submit(workspace, [good, wrong])
    assert queue_of(workspace).tasks() == []
    assert [task.id for task in submit(workspace, [good, wrong], validate=False)] == ["a", "b"]


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        {"checks": ("true",)},
        {"checks": ("no-such-program --now",)},
        {"checks": ("review: it is right",)},
        {"checks": ("approval: it is right",)},
        {},
        {"kind": "miracle", "checks": ("true",)},
        {"kind": "security", "checks": ("true",)},
        {"complexity": "vast", "checks": ("true",)},
        {"max_attempts": 0, "checks": ("true",)},
        {"max_time": "soon", "checks": ("true",)},
        {"max_cost": -1.0, "checks": ("true",)},
        {"reviewer_command": "no-such-program", "checks": ("true",)},
        {"checks": ("curl -u a:<secret> x",)},
    ],
)
def test_what_can_be_submitted_can_be_worked_on(
    tmp_path: Path, said: dict[str, Any], *, asks: bool
) -> None:
    workspace, task = loki.Workspace(tmp_path), QueuedTask("a", "A", **said)
    assert refusal(must_be_workable, workspace, task, asks) == refusal(
        task_of, workspace, task, asks
    )


def refusal(
    look: Callable[..., object], workspace: loki.Workspace, task: QueuedTask, asks: bool
) -> str | None:
    """Why a task is refused, or None."""
    try:
        look(workspace, task, asks=asks)
    except UsageError as error:
        return str(error)
    return None
