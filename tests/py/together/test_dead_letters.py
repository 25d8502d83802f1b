"""From an exhausted loop to what a review makes of it, by real runs and files of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.jobs.dead_letters.dead_letter_review import Answers
from loki.jobs.dead_letters.dead_letters import DeadLetters, Reviewed
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from support.dead_letters import (
    KEY_ERROR,
    letter,
    make_project,
    places,
    raw,
    write_letters,
)


@pytest.fixture
def workspace(tmp_path: Path) -> loki.Workspace:
    return make_project(tmp_path)


def review(
    workspace: loki.Workspace, answers: Answers | None = None, **more: Any
) -> dict[str, Reviewed]:
    said = {"": answers} if answers else {}
    return {one.task_id: one for one in DeadLetters(workspace, **more).review(said=said)}


def metadata(workspace: loki.Workspace) -> dict[str, Any]:
    data = json.loads((workspace.folder / "queue" / "dead-letter.json").read_text())
    assert isinstance(data, dict)
    return dict(data["metadata"])


def test_files_of_other_programs_are_read_and_kept(workspace: loki.Workspace) -> None:
    odd = letter("task-7", mood="sour")
    bare = {"task_id": "task-8"}
    write_letters(workspace, [odd, bare, "rubbish that is no id", 7])
    found = review(workspace)
    assert {"task-7", "task-8"} <= found.keys()
    assert raw(workspace, "task-7")["mood"] == "sour"
    assert raw(workspace, "task-7")["attempts"] == odd["attempts"]
    assert raw(workspace, "task-8")["recovery_strategy"] == "retry_with_simpler_approach"


# --- facts ----------------------------------------------------------------------------------------


def test_a_task_that_it_depends_on_is_completed(workspace: loki.Workspace) -> None:
    data = {"title": "B", "description": "", "dependencies": ["first"], "priority": "low"}
    write_letters(workspace, [letter("b", task_data=data)])
    queue = queue_of(workspace)
    queue.submit(QueuedTask("first", "First"))
    assert review(workspace)["b"].decision.action == "stay"
    with Worker(workspace.folder) as worker:
        claim = queue.lease(worker)
        assert claim is not None
        queue.complete(claim)
    found = review(workspace)["b"]
    assert (found.decision.action, found.decision.rule) == ("retry", "dependency_available")
    assert raw(workspace, "b")["recovery_strategy"] == "dependency_resolved"
    assert places(workspace) == {"first": "completed", "b": "pending"}
    assert metadata(workspace)["total_recovered"] == 1


def test_a_dependency_that_was_abandoned_will_never_come(workspace: loki.Workspace) -> None:
    data = {"title": "B", "description": "", "dependencies": ["first"], "priority": "low"}
    write_letters(workspace, [letter("b", task_data=data)])
    queue = queue_of(workspace)
    queue.submit(QueuedTask("first", "First"))
    queue.abandon("first", "not wanted")
    assert review(workspace)["b"].decision.rule == "dependency_never"
    assert places(workspace) == {"first": "abandoned", "b": "abandoned"}
    assert metadata(workspace)["total_abandoned"] == 1


def missing(task_id: str, message: str) -> dict[str, Any]:
    made = letter(task_id)
    made["attempts"][0] |= {"error_message": message, "error_type": "dependency"}
    return made


def test_a_variable_is_set_now(workspace: loki.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "Error: environment variable FLUX_ENDPOINT is not set"
    write_letters(workspace, [missing("a", message)])
    assert review(workspace)["a"].decision.rule == "third_party"
    monkeypatch.setenv("FLUX_ENDPOINT", "there")
    assert review(workspace)["a"].decision.rule == "dependency_available"
    assert DeadLetters(workspace).escalations.open() == [], "and nobody is asked any more"


def test_three_tasks_with_one_root_cause_make_one_escalation(workspace: loki.Workspace) -> None:
    letters = [letter(name) for name in ("a", "b", "c", "d")]
    for one in letters[:3]:
        one["attempts"][0]["error_message"] = KEY_ERROR
    write_letters(workspace, letters)
    found = review(workspace)
    assert {name: one.decision.action for name, one in found.items()} == {
        **dict.fromkeys("abc", "escalate"),
        "d": "stay",
    }
    (page,) = DeadLetters(workspace).escalations.open()
    assert sorted(page.tasks) == ["a", "b", "c"]
    assert page.trigger == "shared_root_cause"
    write_letters(workspace, [*letters, {**letters[0], "task_id": "e"}])
    review(workspace)
    (page,) = DeadLetters(workspace).escalations.open()
    assert sorted(page.tasks) == ["a", "b", "c", "e"], "a later one joins it"
