"""An agent's run of a recurring task: what the reviewer of a run that failed is asked."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from loki.action.agent_protocol import ReviewRequest, Verdict
from loki.execution import resolve
from loki.execution.task_session import performer as performer_of
from loki.jobs.recurring import recurring_agent_run
from loki.jobs.recurring.recurring_run import Running, RunResult
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.workspace import Workspace

NOW = datetime(2026, 4, 4, 10, tzinfo=timezone.utc)
SECRET = "ghp_" + "a1B2" * 9


class Reviewer:
    """Approves, and keeps what it was asked."""

    name = "kind"

    def review(self, request: ReviewRequest) -> Verdict:
        self.asked = request
        return Verdict(True, "good enough")


def test_no_secret_of_the_change_reaches_who_evaluates_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer = Reviewer()

    def performer(*about: Any) -> Any:
        found = performer_of(*about)
        found.judge = replace(found.judge, diff=lambda: f"+KEY = '{SECRET}'\n+1\n")
        return found

    monkeypatch.setattr(resolve, "reviewer", lambda *_: reviewer)
    monkeypatch.setattr(recurring_agent_run, "performer_of", performer)
    work = {"task": "count", "agent_command": "true", "evaluate_command": "true"}
    task = RecurringTask.model_validate({"id": "n", "schedule": {"cron": "@daily"}, "agent": work})
    begun = Running(number=1, scheduled_at=NOW, started_at=NOW)
    run = begun.ended(NOW, RunResult("failed", task_id="n-1", reason="tests fail"))
    said = recurring_agent_run.evaluate(Workspace(tmp_path), task, run, threading.Event())
    assert said is not None
    assert said.is_good
    assert "tests fail" in reviewer.asked.criterion.description
    assert SECRET not in reviewer.asked.diff
    assert "+1" in reviewer.asked.diff
