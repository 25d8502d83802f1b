"""Whose triages begin, where one who is asked may not be called."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import loki
from loki.jobs.recurring.recurring_task import AgentPart
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.jobs.triage.triages import Triages
from support.triage import NOW, failing


def test_an_open_breaker_holds_its_own_triages_back_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = loki.Workspace(tmp_path)
    tasks = RecurringTasks(workspace.strict_store)
    other = tmp_path / "other"
    other.symlink_to(sys.executable)
    commands = {"a": sys.executable, "b": str(other), "d": sys.executable}
    for id_ in "abcd":
        part = AgentPart(task="t", agent_command=commands[id_]) if id_ in commands else None
        tasks.add(failing(id_, agent=part, command=None if part else ("true",)))
    begun: list[str] = []
    monkeypatch.setattr(Triages, "_triage", lambda _, id_, doctor: begun.append(id_))  # noqa: ARG005
    workspace.breakers()[f"agent/{Path(sys.executable).name}"].isolate()
    with ThreadPoolExecutor() as pool:
        triages = Triages(workspace, tasks, threading.Event(), pool=pool)
        triages.tick(NOW)
        triages.wait()
    assert begun == ["b"]
