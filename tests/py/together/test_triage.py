"""Triage joined with a project: in the background, one at a time, and whole whatever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.agents.model_agent import ModelAgent
from loki.jobs.inbox.inbox import requests
from loki.jobs.triage import triage_policy, triages
from loki.jobs.triage.triage_prompt import INSTRUCTIONS
from loki.testing import ScriptedLLM
from support.smoke import Smoke, verdict
from support.triage import NOW
from support.triage_project import Project


@pytest.fixture
def smoke(tmp_path: Path) -> Smoke:
    return Smoke(tmp_path / "shop")


@pytest.mark.parametrize("agent", [None, "nobody"])
def test_where_nobody_can_be_asked_it_says_how(
    smoke: Smoke, caplog: pytest.LogCaptureFixture, agent: str | None
) -> None:
    smoke.config(**({"triage_agent": agent} if agent else {}))
    project = Project(smoke, "backup")
    for _ in range(3):
        project.tick()
    assert caplog.text.count("no agent can look at it") == 1
    assert "triage_agent = " in caplog.text
    assert (agent is None) or "unknown agent 'nobody'" in caplog.text
    assert project.records("backup") == []
    assert project.tasks.load("backup").last_triaged_at is None


def test_a_model_sees_the_evidence_alone(smoke: Smoke, monkeypatch: pytest.MonkeyPatch) -> None:
    smoke.config(triage_agent="scripted:model")
    llm = ScriptedLLM(['{"verdict": "RECOMMEND-CONFIG", "action_taken": "a time-out of 1h"}'])
    monkeypatch.setattr(triages, "named_agent", lambda *_: ModelAgent(llm))
    project = Project(smoke, "backup")
    project.tick()
    project.triages.close()
    (record,) = project.records("backup")
    assert (record["verdict"], record["recommendation"]) == ("RECOMMEND-CONFIG", "a time-out of 1h")
    assert record["model"] == "script"
    (asked,) = llm.requests
    assert (asked.system, asked.tool) == (INSTRUCTIONS, None)
    assert "| ./backup" in asked.messages[0].text
    (waits,) = requests(project.workspace)
    assert (waits.id, waits.kind) == ("backup", "recurring")
    assert "recommends: a time-out of 1h" in waits.question
    assert waits.options[0].command == "loki approve backup"
    project.tasks.update("backup", lambda task: task.with_(consecutive_failures=0))
    assert requests(project.workspace) == []
    assert project.tasks.load("backup").paused is None


def test_a_kill_right_after_the_beginning_is_seen(smoke: Smoke) -> None:
    """The record stands before the task knows of the triage: it has failed, and its cooldown counts."""
    smoke.config(verdict("NOOP"))
    project = Project(smoke, "backup")
    _, record = triage_policy.begun(project.tasks.load("backup"), "doc", NOW)
    project.workspace.store.write("recurring/backup/triage/1.json", record.to_text())
    project.clock.advance("1h")
    project.tasks.update("backup", lambda task: task.with_(last_failure_at=project.clock.now()))
    project.tick()
    project.triages.close()
    task = project.tasks.load("backup")
    assert (task.last_triaged_at, task.triages) == (NOW, 1)
    assert [one["status"] for one in project.records("backup")] == ["failed"]
