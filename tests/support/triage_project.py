"""What tests of together/test_triage of both tiers share."""

from __future__ import annotations

import os
import threading

from loki import Workspace
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.jobs.triage.triage_prompt import records
from loki.jobs.triage.triages import Triages
from loki.testing import ManualClock
from support.smoke import Smoke
from support.triage import NOW, failing


class Project:
    """A project in this process, with a recurring task that keeps failing."""

    def __init__(self, smoke: Smoke, *ids: str) -> None:
        self.smoke, self.clock = smoke, ManualClock(NOW)
        self.workspace = Workspace(smoke.root, clock=self.clock)
        self.tasks = RecurringTasks(self.workspace.store)
        for id_ in ids:
            self.tasks.add(failing(id_))
        self.cancelled = threading.Event()
        self.triages = Triages(self.workspace, self.tasks, self.cancelled)
        for name in ("begun", "gate"):
            os.mkfifo(smoke.tools / name)

    def tick(self) -> None:
        self.triages.tick(self.clock.now())

    def await_agent(self) -> None:
        """Until a triage agent has begun."""
        (self.smoke.tools / "begun").read_text()

    def open_gate(self) -> None:
        (self.smoke.tools / "gate").write_text("")

    def records(self, id_: str) -> list[dict[str, object]]:
        return [one.to_dict() for one in records(self.workspace, id_, 9)]
