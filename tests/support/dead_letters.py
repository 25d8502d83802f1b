"""Projects with tasks that were given up, and what became of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import loki
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import LISTS
from loki.testing import ManualClock

CHECK = f"{sys.executable} check.py"

TOOL = """\
import pathlib, sys
value = pathlib.Path("part.py").read_text().strip()
print(f"part.py:1: ValueError: the part {value} does not fit where the caller wants it")
sys.exit("right" not in value)
"""

NOW = datetime(2026, 1, 26, 8, tzinfo=timezone.utc)

KEY_ERROR = "KeyError: 'port' is missing in the settings of the node"


def make_project(folder: Path) -> loki.Workspace:
    """A project whose check fails until its part is right."""
    (folder / "check.py").write_text(TOOL)
    (folder / "part.py").write_text("wrong = 9\n")
    return loki.Workspace(folder, clock=ManualClock(NOW))


def give_up(workspace: loki.Workspace, title: str = "fit the part", **more: Any) -> loki.Outcome:
    """Run a task whose loop is exhausted."""
    turns = iter(range(10**6))
    with workspace.task(title, checks=[CHECK], max_attempts=2, **more) as task:
        outcome = task.run(lambda _: {"part.py": f"wrong = {next(turns)}\n"})
    assert outcome.status == "failed"
    return outcome


def letter(task_id: str, **more: Any) -> dict[str, Any]:
    """A dead letter as another program writes it."""
    return {
        "task_id": task_id,
        "original_queue": "pending",
        "failure_count": 1,
        "first_failure": "2026-01-25T10:00:00Z",
        "last_failure": "2026-01-25T14:30:00Z",
        "error_summary": f"{task_id} failed",
        "attempts": [
            {
                "attempt_number": 1,
                "timestamp": "2026-01-25T14:30:00Z",
                "approach": "initial implementation",
                "error_type": "test_failure",
                "error_message": f"AssertionError: {task_id} is not what was wanted",
                "agent_id": "eng-1",
            }
        ],
        "recovery_strategy": "retry_with_simpler_approach",
        "task_data": {
            "title": f"Do {task_id}",
            "description": "",
            "dependencies": [],
            "priority": "low",
        },
        **more,
    }


def write_letters(workspace: loki.Workspace, letters: Sequence[Any], **more: Any) -> None:
    """Put dead letters into the file as another program would."""
    folder = workspace.folder / "queue"
    folder.mkdir(parents=True, exist_ok=True)
    data: Any = {"tasks": list(letters), **more} if more else list(letters)
    (folder / "dead-letter.json").write_text(json.dumps(data))


def places(workspace: loki.Workspace) -> dict[str, str]:
    """By task, the list that it stands in; one in two lists fails."""
    found: dict[str, str] = {}
    for name in LISTS:
        path = workspace.folder / "queue" / f"{name}.json"
        data = json.loads(path.read_text()) if path.exists() else []
        for one in data if isinstance(data, list) else data["tasks"]:
            id_ = one.get("task_id") or one["id"]
            assert id_ not in found, f"{id_} is in {found[id_]} and in {name}"
            found[id_] = name
    return found


def raw(workspace: loki.Workspace, task_id: str) -> dict[str, Any]:
    """What stands in the queue's files for a task."""
    found = queue_of(workspace).find(task_id)
    assert found is not None
    return dict(found.raw)


def commit(folder: Path, message: str, date: str) -> str:
    """Commit everything; its name."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    environment = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "PATH": "/usr/bin:/bin"}
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(
        ["git", *identity, "commit", "-q", "-m", message],
        cwd=folder,
        check=True,
        env=environment,
    )
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    )
    return found.stdout.strip()
