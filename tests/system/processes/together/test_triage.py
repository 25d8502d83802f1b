"""Triage joined with a project: in the background, one at a time, and whole whatever is killed: with processes."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from loki import Workspace
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.jobs.triage.triages import Triages
from support.smoke import Smoke, verdict
from support.triage import NOW, failing
from support.triage_project import Project

WAITS = "echo begun > $TOOLS/begun; cat $TOOLS/gate > /dev/null; "
"""A triage agent tells that it has begun, and waits until somebody opens the gate."""


@pytest.fixture
def smoke(tmp_path: Path) -> Smoke:
    return Smoke(tmp_path / "shop")


def test_it_holds_nothing_up_and_is_one_at_a_time(smoke: Smoke) -> None:
    """A tick returns while the agent thinks; further ticks, also of other dispatchers, start no second one."""
    smoke.config(WAITS + verdict("NOOP"), triage_cooldown="1ms")
    project = Project(smoke, "backup")
    project.tick()
    project.await_agent()
    (record,) = project.records("backup")
    assert record["status"] == "running"
    assert project.tasks.load("backup").last_triaged_at == NOW
    project.clock.advance("1d")
    project.tasks.update("backup", lambda task: task.with_(last_failure_at=project.clock.now()))
    project.tick()
    other = Triages(project.workspace, project.tasks, project.cancelled, waits=True)
    other.tick(project.clock.now())
    assert len(project.records("backup")) == 1
    project.open_gate()
    project.triages.close()
    (record,) = project.records("backup")
    assert (record["status"], record["verdict"]) == ("done", "NOOP")


def test_a_triage_that_is_stopped_has_failed(
    smoke: Smoke, caplog: pytest.LogCaptureFixture
) -> None:
    smoke.config(WAITS + verdict("PAUSE"))
    project = Project(smoke, "backup")
    project.tick()
    project.await_agent()
    project.cancelled.set()
    project.triages.close()
    (record,) = project.records("backup")
    assert record["status"] == "failed"
    assert "stopped" in str(record["reason"])
    assert project.tasks.load("backup").paused is None
    assert caplog.text.count("no recursive triage") == 1


def test_a_half_open_breaker_lets_one_triage_probe(smoke: Smoke) -> None:
    """The others have not begun: no cooldown, no record, and they come once the breaker is closed."""
    smoke.config(WAITS + verdict("NOOP"))
    project = Project(smoke, "backup", "report")
    breaker = project.workspace.ways.breakers["agent/doc"]
    for _ in range(3):
        breaker.try_acquire().failure("down")
    project.tick()
    assert project.records("backup") == project.records("report") == []
    project.clock.advance("10m")
    project.tick()
    project.await_agent()
    project.open_gate()
    project.triages.wait()
    triaged = [id_ for id_ in ("backup", "report") if project.records(id_)]
    assert len(triaged) == 1
    (waits,) = {"backup", "report"} - set(triaged)
    assert project.tasks.load(waits).last_triaged_at is None
    assert project.tasks.load(waits).triages == 0
    breaker.close()
    project.tick()
    project.await_agent()
    project.open_gate()
    project.triages.close()
    assert len(project.records(waits)) == 1


def test_an_agents_own_task_is_triaged_by_its_agent(smoke: Smoke) -> None:
    """Where no triage agent is configured."""
    program = smoke.program("own", verdict("NOOP", "a blip"))
    project = Project(smoke)
    part = {"task": "make it work", "agent_command": str(program), "checks": ["true"]}
    data = {**json.loads(failing("tidy").to_text()), "command": [], "agent": part}
    text = json.dumps(data)
    project.workspace.store.write("recurring/tidy/task.json", text)
    project.tick()
    project.triages.close()
    (record,) = project.records("tidy")
    assert (record["agent"], record["root_cause"]) == ("own", "a blip")


def test_an_answer_that_cannot_be_read_is_noop_and_a_line(
    smoke: Smoke, caplog: pytest.LogCaptureFixture
) -> None:
    smoke.config("cat; echo it is fine")  # it echoes the prompt, answer's form and all
    project = Project(smoke, "backup")
    with caplog.at_level(logging.INFO):
        project.tick()
        project.triages.close()
    (record,) = project.records("backup")
    assert (record["status"], record["verdict"]) == ("done", "NOOP")
    assert "its answer counts as NOOP: no verdict in it; it ends: it is fine" in caplog.text


@pytest.fixture
def killed(smoke: Smoke) -> Smoke:
    """A project whose dispatcher was killed in the middle of a triage."""
    smoke.config(WAITS + verdict("PAUSE"))
    for name in ("begun", "gate"):
        os.mkfifo(smoke.tools / name)
    RecurringTasks(Workspace(smoke.root).store).add(failing())
    smoke.now = NOW
    environment = {**os.environ, "LOKI_NOW": smoke.now.isoformat()}
    command = [sys.executable, "-m", "loki", "tick"]
    with subprocess.Popen(command, cwd=smoke.root, env=environment) as dispatcher:
        (smoke.tools / "begun").read_text()
        dispatcher.send_signal(signal.SIGKILL)
    return smoke


def test_a_dispatcher_killed_during_a_triage(killed: Smoke) -> None:
    """The triage has failed, with one warning; its cooldown stands, and nothing of its verdict is done."""
    killed.now += timedelta(hours=1)
    killed.loki("tick")
    assert killed.said.count("no recursive triage") == 1
    assert "its dispatcher ended in the middle of it" in killed.said
    shown = killed.show()
    (record,) = shown["recent_triages"]
    assert (record["status"], record["started_at"]) == ("failed", shown["last_triaged_at"])
    assert shown["paused"] is None
    killed.now += timedelta(hours=1)
    killed.loki("tick")
    assert "triage" not in killed.said
    assert len(killed.show()["recent_triages"]) == 1
