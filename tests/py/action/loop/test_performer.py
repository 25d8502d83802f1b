"""What performs the loop's effects: what it shows an agent is the project as it is."""

from __future__ import annotations

import threading
from pathlib import Path

from loki import Workspace
from loki.action.checks.check import Check
from loki.action.loop.loop_events import Ask, RunStrategy
from loki.base.machine import Wait
from loki.execution import task_session
from loki.recognition.failure import Failure
from loki.testing import ManualClock
from support.project import RIGHT, make_project


def test_after_a_wait_the_project_is_looked_at_again(tmp_path: Path) -> None:
    project = make_project(tmp_path / "calc")
    workspace = Workspace(project, clock=ManualClock())
    spec = workspace.task("make add add", checks=[Check(("true",))]).spec
    performer = task_session.performer(workspace, spec, 1, threading.Event())
    failure = Failure.of("add does not add", path="calc.py", line=2)
    performer.perform(RunStrategy("analyze_then_fix", failure))
    performer.perform(Wait(300.0, "the circuit is open"))
    (project / "calc.py").write_text(RIGHT)  # by a person, meanwhile
    performer.briefing(Ask(1, failure))
    shown = performer.shown_digest()
    performer.briefing(Ask(2, failure))
    assert performer.shown_digest() == shown
