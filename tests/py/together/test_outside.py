"""Nothing outside is ever removed or written, whatever ids and paths stand in the files of ``.loki/``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loki
from loki.action.disk_shelf import DiskShelf
from loki.action.journal import Journal
from loki.base.error import LokiError
from loki.cli.app import app
from loki.working.unfinished import forget, move_over
from support.project import make_project

AWAY = "../../../outside"
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


def task(**more: Any) -> dict[str, Any]:
    return {"id": AWAY, "title": "x", "checks": ["true"], "agent_command": "true", **more}


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


def outside(project: Path) -> dict[str, bytes | None]:
    """All that is beside the project."""
    found: dict[str, bytes | None] = {}
    for place, _, names in os.walk(project.parent):
        if Path(place).is_relative_to(project):
            continue
        found[place] = None
        found.update({f"{place}/{name}": Path(place, name).read_bytes() for name in names})
    return found


def loki_says(arguments: list[str]) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), arguments
    return done.output


def write(project: Path, files: dict[str, Any]) -> None:
    for name, data in files.items():
        path = project / ".loki" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data) + "\n")


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


@pytest.mark.parametrize("name", ["recurring", "tasks", "queue", "signals", "state"])
def test_a_link_in_place_of_a_folder_loses_nothing(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an agent or a person has put in the place of one of loki's folders."""
    monkeypatch.chdir(project)
    for arguments in (
        ["recur", "add", "--every", "10m", "--id", "backup", "--", "true"],
        ["submit", "--task", "t", "--id", "t", "--check", "true", "--agent-command", "true"],
    ):
        loki_says(arguments)
    real = project.parent / "outside" / name
    folder = project / ".loki" / name
    (folder if folder.exists() else project / ".loki").mkdir(exist_ok=True)
    folder.rename(real) if folder.exists() else real.mkdir()
    folder.symlink_to(real)
    before = outside(project).keys()
    for arguments in (
        ["recur", "remove", "backup"],
        ["queue", "abandon", "t", "--reason", "no"],
        ["status"],
    ):
        loki_says(arguments)
    assert before <= outside(project).keys()


@pytest.mark.parametrize(
    "work",
    [
        lambda folder, store: forget(folder, store, AWAY),
        lambda folder, _: move_over(folder, AWAY, loki.Change.nothing(), folder.parent),
        lambda folder, _: loki.Workspace(folder.parent).journal(AWAY),
    ],
)
def test_a_task_of_an_id_that_leads_out_has_no_folder(
    work: Callable[[Path, Any], Any], project: Path
) -> None:
    before = outside(project)
    with suppress(LokiError):
        work(project / ".loki", loki.Workspace(project).store)
    assert outside(project) == before


STATE = {"hash": "0" * 64, "mode": "644", "symlink": False}


@pytest.mark.parametrize("stage", ["applying", "running", "applied"])
def test_a_journal_of_paths_that_lead_out_is_damaged(stage: str, project: Path) -> None:
    record = {
        "record": 1,
        "version": 1,
        "kind": "change",
        "stage": stage,
        "steps": [{"path": "../outside/secret", "before": None, "after": STATE}],
        "made": ["../outside/work"],
        "folders": {"../outside": 0o700},
        "temporaries": ["../outside/task.json"],
    }
    folder = project / ".loki" / "tasks" / "t" / "undo"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(json.dumps(record) + "\n")
    before = outside(project)
    records, damaged = DiskShelf(folder).load()
    assert records == []
    assert "expected a relative path" in damaged[0]
    journal = Journal(folder, project)
    journal.recover()
    journal.undo()
    assert outside(project) == before


def test_removal_is_in_one_place() -> None:
    """Trees are removed by `loki.base.below` alone, which stays below folders of loki's own."""
    package = Path(loki.__file__).parent
    found = subprocess.run(
        ["grep", "-rnE", r"rmtree\(|removedirs|TemporaryDirectory", "--include=*.py", str(package)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    allowed = ("agents/contract.py", "cli/replay.py")  # empty folders, of their own making
    assert [line for line in found if not any(name in line for name in allowed)] == []
