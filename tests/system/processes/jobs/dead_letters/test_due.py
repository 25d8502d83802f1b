"""Who works for days reviews the dead letters once a day, and is not held up by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.jobs.dead_letters.dead_letters import LOOK, Daily
from loki.testing import ManualClock
from support.dead_letters import give_up, make_project


@pytest.fixture
def workspace(tmp_path: Path) -> loki.Workspace:
    return make_project(tmp_path)


def letters(workspace: loki.Workspace) -> Path:
    return workspace.folder / "queue" / "dead-letter.json"


def test_who_works_for_days_reviews_once_a_day(
    workspace: loki.Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    outcome, clock = give_up(workspace), workspace.clock
    assert isinstance(clock, ManualClock)
    told: list[str] = []
    daily, days = Daily(workspace, lambda one: told.append(one.task_id)), 3
    for _ in range(int(days * 24 * 3600 / LOOK)):
        clock.advance(LOOK)
        daily()
    assert told == [outcome.task_id] * days
    letters(workspace).write_text("no JSON")
    clock.advance(LOOK)
    daily()
    assert "dead-letter.json:1:1" in caplog.text


def test_a_watch_reviews_them_also_while_it_goes_on(
    workspace: loki.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_up(workspace)
    monkeypatch.setenv("LOKI_NOW", "2026-01-26T09:00:00Z")
    run("recur", "add", "--cron", "0 * * * *", "--project", str(workspace.root), "--", "true")
    run("tick", "--watch", "--for", "30h", "--project", str(workspace.root))
    metadata: dict[str, Any] = json.loads(letters(workspace).read_text())["metadata"]
    assert metadata["last_reviewed"] > "2026-01-27T09"


def run(*words: str) -> None:
    ran = CliRunner().invoke(app, list(words))
    assert ran.exit_code == 0, ran.output
