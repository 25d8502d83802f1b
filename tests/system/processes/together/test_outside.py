"""Nothing outside is ever removed or written, whatever ids and paths stand in the files of ``.loki/``: with processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.outside import AWAY, loki_says, outside, task, write
from support.project import make_project

FACES = [
    ["status"],
    ["show"],
    ["show", AWAY],
    ["undo", AWAY],
    ["undo", AWAY, "--force"],
    ["resume", AWAY, "--abort"],
    ["queue"],
    ["queue", "abandon", AWAY, "--reason", "no"],
    ["dead-letters"],
    ["dead-letters", "review"],
    ["recur", "list"],
    ["recur", "history", AWAY, "--output"],
    ["recur", "history", "backup", "--output"],
    ["recur", "remove", AWAY],
    ["tick"],
    ["history"],
    ["report"],
    ["run", "--task", "t", "--check", "true", "--agent-command", "true"],
    ["work"],
]


def lease() -> dict[str, Any]:
    return {"worker": AWAY, "generation": 1, "until": "2020-01-01T00:00:00Z"}


RUN = {
    "number": 1,
    "status": "success",
    "output": f"{AWAY}/secret",
    "started_at": "2020-01-01T00:00:00Z",
}


STATES: dict[str, dict[str, Any]] = {
    "landing": {"landing.json": {"task": AWAY}},
    "pending": {"queue/pending.json": {"tasks": [task()]}},
    "claimed": {"queue/in-progress.json": {"tasks": [task(claim=lease(), lost=1)]}},
    "failed": {"queue/failed.json": {"tasks": [task()]}},
    "dead": {"queue/dead-letter.json": {"tasks": [{"task_id": AWAY, "task_data": task()}]}},
    "current": {"queue/current-task.json": task()},
    "review": {"signals/HUMAN_REVIEW_NEEDED": {"id": AWAY, "task_id": AWAY, "reason": "why"}},
    "recurring": {
        "recurring/backup/task.json": {"id": AWAY, "schedule": {"delay": "10m"}, "command": ["true"]},
        "recurring/backup/runs.jsonl": RUN,
    },
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = make_project(tmp_path / "project")
    outside = tmp_path / "outside"
    for name in ("work", "work.before", "undo", "output"):
        (outside / name).mkdir(parents=True)
        (outside / name / "precious").write_text("mine")
        (outside / name / ".loki-half.tmp").write_text("mine")
    (outside / "secret").write_text("s3same")
    (outside / "task.json").write_text("{}")
    return project


@pytest.mark.parametrize("state", STATES)
def test_ids_that_lead_out_reach_nothing(
    state: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, STATES[state])
    before = outside(project)
    monkeypatch.chdir(project)
    for arguments in FACES:
        said = loki_says(arguments)
        assert "s3same" not in said, arguments
        assert outside(project) == before, arguments
