"""A recurring task that keeps failing, and the record of its triage."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from loki.jobs.recurring.recurring_task import RecurringTask
from loki.jobs.triage.triage_verdict import TriageRecord

NOW = datetime(2026, 4, 4, 10, tzinfo=timezone.utc)


def failing(id_: str = "backup", **changes: Any) -> RecurringTask:
    task = RecurringTask.model_validate(
        {"id": id_, "schedule": {"cron": "0 * * * *"}, "command": ["./backup"]}
    )
    said = {"consecutive_failures": 3, "total_failures": 3, "last_failure_at": NOW}
    return task.with_(**{**said, **changes})


RECORD = TriageRecord(
    id=".triage-backup-1", number=1, task_id="backup", status="running", started_at=NOW, failures=3
)
