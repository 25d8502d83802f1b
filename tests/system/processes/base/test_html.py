"""What Jupyter shows of loki's objects: escaped, masked, small, and in any page's colors: with processes."""

from __future__ import annotations

from pathlib import Path

import loki
from support.html import HOSTILE, SECRET, shown


def test_a_task_and_its_outcome(tmp_path: Path) -> None:
    workspace = loki.Workspace(tmp_path)
    with workspace.task(f"{HOSTILE} {SECRET}", checks=["false"], max_attempts=1) as task:
        assert "not ended" in shown(task).text
        outcome = task.run(lambda _: {"a.txt": "a"})
    assert "failed" in shown(task).text
    assert "Outcome: failed" in shown(outcome).text
