"""What the queue and a project make of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.base.error import UsageError
from loki.queueing import must_be_whole, queue_of, submit
from loki.recurrence.queued import QueuedTask


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
