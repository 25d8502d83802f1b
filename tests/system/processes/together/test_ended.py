"""Whatever ends an attempt, an interrupt or nothing said: nothing runs on, nothing goes unlisted."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.changes.tree import Tree
from support.project import QUICK, RIGHT, WRONG, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def test_ctrl_c_ends_an_async_agent_of_the_blocking_form(project: Path) -> None:
    ended = threading.Event()

    async def agent(briefing: loki.Briefing) -> dict[str, str]:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    outcome = loki.run("make add add", agent=agent, checks=[QUICK], path=str(project))
    assert (outcome.status, outcome.exit_code) == ("interrupted", 130)
    assert ended.is_set()


def test_the_event_loop_is_free_while_the_project_is_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    scan = Tree.scan.__func__  # type: ignore[attr-defined]

    def noting(cls: type[Tree], *args: Any, **named: Any) -> Tree:
        threads.append(threading.current_thread())
        return scan(cls, *args, **named)  # type: ignore[no-any-return]

    async def agent(briefing: loki.Briefing) -> dict[str, str]:
        return {"calc.py": RIGHT}

    monkeypatch.setattr(Tree, "scan", classmethod(noting))
    outcome = asyncio.run(loki.arun("make add add", agent=agent, checks=[QUICK], path=str(project)))
    assert outcome.status == "success"
    assert threads
    assert threading.main_thread() not in threads


def test_what_an_attempt_without_a_report_changed_is_listed(project: Path) -> None:
    with loki.Workspace(project).task("make add add", checks=[QUICK], max_attempts=1) as task:
        for _ in task.attempts():
            (project / "calc.py").write_text("# by hand\n" + WRONG)
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.files) == ("failed", ("calc.py",))
    assert loki.Workspace(project).history(task.spec.id).attempts()[0].files_modified == (
        "calc.py",
    )
