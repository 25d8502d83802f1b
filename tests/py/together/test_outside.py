"""Nothing outside is ever removed or written, whatever ids and paths stand in the files of ``.loki/``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.changes.executor import forget, move_over
from loki.action.changes.journal import Journal
from loki.action.changes.journal_storage import DiskJournalStorage
from loki.base.error import LokiError
from loki.execution import stop_request
from support.outside import AWAY, loki_says, outside, write
from support.project import make_project


def put_back(path: str, kept: str = "") -> dict[str, str]:
    said = {"command": "c", "found": "", "restored": "x", "at": "2020-01-01T00:00:00Z"}
    return {"id": "rule-123456", "path": path, "kept": kept, **said}


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
    records, damaged = DiskJournalStorage(folder).load()
    assert records == []
    assert "expected a relative path" in damaged[0]
    journal = Journal(folder, project)
    journal.recover()
    journal.undo()
    assert outside(project) == before


@pytest.mark.parametrize("path", [AWAY, "/outside/secret", "secret", ".loki/../../outside/secret"])
@pytest.mark.parametrize("kept", ["", "../outside/secret", "set-aside/../../outside/secret"])
def test_a_forged_record_of_what_was_put_back_waits_for_nobody(
    path: str, kept: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's yes removes or writes only what decides how loki or git work."""
    monkeypatch.chdir(project)
    full = os.path.normpath(project.parent / path.lstrip("/"))
    for one in (path, full, str(project / "calc.py")):
        write(project, {"logs/rules.jsonl": put_back(one, kept)})
        before = {**outside(project), "calc.py": (project / "calc.py").read_bytes()}
        assert "loki approve rule-123456" not in loki_says(["status"])
        loki_says(["approve", "rule-123456"])
        assert {**outside(project), "calc.py": (project / "calc.py").read_bytes()} == before


@pytest.mark.parametrize(
    "kept", ["../outside/secret", "set-aside/../../outside/secret", "config.toml"]
)
def test_what_is_brought_back_was_kept_aside(
    kept: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    write(project, {"logs/rules.jsonl": put_back(str(project / ".loki" / "config.toml"), kept)})
    assert "loki approve rule-123456" not in loki_says(["status"])
    loki_says(["approve", "rule-123456"])
    assert not (project / ".loki" / "config.toml").exists()


HOSTILE = [AWAY, "/outside", "..", "", "a\0b", "x" * 300, "\ud800"]


@pytest.mark.parametrize("task", HOSTILE)
def test_a_word_to_a_task_of_a_hostile_id_is_no_file(task: str, project: Path) -> None:
    folder = project / ".loki"
    (project.parent / "outside" / "cancel").write_text("mine")
    before = outside(project)
    assert not stop_request.is_cancelled(folder, task)
    with suppress(LokiError):
        stop_request.begins(folder, task)
    assert outside(project) == before


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hash_that_leads_out_has_no_content(name: str, project: Path) -> None:
    storage = DiskJournalStorage(project / ".loki" / "tasks" / "t" / "undo")
    assert (storage.get(name), storage.has(name, 6)) == (None, False)


def test_a_task_s_folder_that_is_a_link_keeps_what_it_leads_to(project: Path) -> None:
    folder = project / ".loki"
    (folder / "tasks").mkdir(parents=True)
    (folder / "tasks" / "t").symlink_to(project.parent / "outside")
    (project.parent / "outside" / "cancel").write_text("mine")
    (project.parent / "outside" / "work.before").rename(project.parent / "outside" / "other")
    before = outside(project)
    with suppress(LokiError, OSError):
        move_over(folder, "t", loki.Change.nothing(), project)
    stop_request.begins(folder, "t")
    assert {**outside(project), **before} == outside(project)


REMOVES = {
    "base/path_containment.py": "by handles, from a folder of loki's own",
    "base/atomic_file.py": "the file that is being written, by the handle of its folder",
    "action/changes/safe_path.py": "by handles, from the project's folder: edits of a change",
    "action/changes/scratch_copy.py": "by handles, in a copy, or `remove_folder`",
    "action/checks/judge.py": "by handles, in a copy",
    "action/changes/journal.py": "`Place.replace`, by handles",
    "action/processes/command_guard.py": "files that decide, of fixed names; what was written there is kept",
    "action/changes/journal_storage.py": "a content's file, named by its hash",
    "jobs/inbox/task_requests.py": "files that `Rules.decides`",
    "stores/project_lock.py": "landing.json itself",
    "action/changes/executor.py": "by the handle of the task's folder",
    "stores/file_store.py": "by handles: a folder in a document's place, into set-aside/",
    "jobs/queue/worker_lock.py": "by handles: a worker's lock",
    "jobs/queue/queue_index.py": "state/queue.db itself",
    "decision/breakers_file.py": "the breakers' file itself",
    "pytest_plugin/run_journal.py": "by handles: a journal that this run made",
    "adapters/hooks/success_buffer.py": "by handles: calls of a session",
    "adapters/hooks/session_cleanup.py": "by handles: files of one folder",
    "adapters/hooks/hook_installation.py": "settings of an agent, at a person's word",
}
"""Who removes or renames files, and what keeps that inside."""


def test_who_removes_anything_is_known() -> None:
    """Whoever is new here says what keeps it inside; what names come from files goes by `below`."""
    package = Path(loki.__file__).parent
    calls = re.compile(
        r"os\.(?:unlink|remove|rmdir|rename|replace)\(|\.(?:unlink|rmdir)\(|\.rename\(|place\.replace\("
    )
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "cli/demo/project" not in path.as_posix() and calls.search(path.read_text())
    }
    assert found == REMOVES.keys(), (
        "go by loki.base.path_containment, and say above what keeps it inside"
    )


def test_removal_is_in_one_place() -> None:
    """Trees are removed by `loki.base.path_containment` alone, which stays below folders of loki's own."""
    package = Path(loki.__file__).parent
    found = [
        f"{path}:{line}"
        for path in package.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"rmtree\(|removedirs|TemporaryDirectory", line)
    ]
    allowed = ("agents/contract.py", "cli/replay.py")  # empty folders, of their own making
    assert [line for line in found if not any(name in line for name in allowed)] == []
