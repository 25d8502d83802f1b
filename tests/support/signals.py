"""What tests of signals and their consumers share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import loki
from loki.execution.assembly import signals_of
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.signals.signal_handling import Handled
from loki.people.signal import Signal
from loki.stores.file_store import FileStore
from support.project import RIGHT, make_project

TESTS = f'version: 1\ncommands:\n  test: "{sys.executable} -S check.py"\n'


def git(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=project, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def project_on_a_branch(root: Path) -> Path:
    """A project on the branch ``feature/add``, whose tests fail."""
    make_project(root, git=True)
    git(root, "config", "user.name", "t")
    git(root, "config", "user.email", "t@example.org")
    git(root, "checkout", "-qb", "feature/add")
    (root / ".loki").mkdir()
    (root / ".loki/verification-gates.yml").write_text(TESTS)
    return root


def mend(project: Path) -> None:
    (project / "calc.py").write_text(RIGHT)
    git(project, "commit", "-qam", "mend")


def queued(project: Path) -> list[QueuedTask]:
    workspace = loki.Workspace(project)
    return Queue(FileStore(workspace.folder), workspace.clock).tasks()


def give(project: Path, kind: str, name: str = "", **data: str) -> Signal:
    return signals_of(loki.Workspace(project)).emit(kind, name, data)


def told(found: list[Handled]) -> list[str]:
    return [f"{one.signal.label}: {one.told}" for one in found]


def waiting(project: Path) -> list[str]:
    return [one.label for one in signals_of(loki.Workspace(project)).pending()]
