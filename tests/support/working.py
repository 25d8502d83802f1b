"""Tasks in copies, for tests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import loki
from loki.execution.assembly import TaskRequest
from loki.execution.task_session import AgentLike, new_task
from loki.jobs.work.copy_merger import run_in_copy
from loki.memory.task_record import Outcome

PASSES = f"{sys.executable} -S -c pass"


def in_copy(
    project: Path, agent: AgentLike, title: str = "a task", **options: Any
) -> tuple[Outcome, Mapping[str, bytes]]:
    """A task run in a copy; its outcome, and the project's files afterwards."""
    options = {"checks": [PASSES], "kind": "refactor", "complexity": "low", **options}
    outcome = run_in_copy(
        loki.Workspace(project),
        lambda workspace: new_task(workspace, TaskRequest(title, **options)),
        lambda _: agent,
        threading.Event(),
    )
    return outcome, files(project)


def files(project: Path) -> dict[str, bytes]:
    """Every file of a project but git's and loki's own."""
    return {
        path.relative_to(project).as_posix(): path.read_bytes()
        for path in sorted(project.rglob("*"))
        if path.is_file() and not {".git", ".loki", "__pycache__"} & set(path.parts)
    }
