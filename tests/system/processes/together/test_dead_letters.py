"""From an exhausted loop to what a review makes of it, by real runs and files of other programs: with processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.agents.command_agent import CommandAgent
from loki.jobs.dead_letters.dead_letter_review import Answers, Scope
from loki.jobs.dead_letters.dead_letters import DeadLetters, Reviewed, review_when_due
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.worker_lock import Worker
from loki.jobs.recurring.recurring_task import CronPart, RecurringTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.memory.dead_letter_log import scan
from support.dead_letters import (
    commit,
    give_up,
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


# --- coming in ------------------------------------------------------------------------------------


def test_an_exhausted_loop_is_a_dead_letter_with_every_field(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    entry = raw(workspace, outcome.task_id)
    assert entry["original_queue"] == "in-progress"
    assert entry["failure_count"] == 2
    assert entry["first_failure"] <= entry["last_failure"]
    assert "ValueError: the part wrong = 1 does not fit" in entry["error_summary"]
    assert [one["attempt_number"] for one in entry["attempts"]] == [1, 2]
    assert {one["error_type"] for one in entry["attempts"]} == {"test_failure"}
    assert entry["recovery_strategy"] == "retry_with_simpler_approach"
    data = entry["task_data"]
    assert (data["title"], data["dependencies"], data["priority"]) == ("fit the part", [], "medium")
    assert data["description"] == ""
    assert metadata(workspace) == {
        "last_reviewed": None,
        "total_abandoned": 0,
        "total_recovered": 0,
    }


def test_an_error_chain_names_the_type_of_each_error(workspace: loki.Workspace) -> None:
    """A KeyError's message may be a value alone."""
    Path(workspace.root, "check.py").write_text("raise KeyError(6)\n")
    outcome = give_up(workspace)
    page = (workspace.folder / str(outcome.page)).read_text("utf-8")
    assert page.count("- **Error:** KeyError: 6\n") == 2
    attempts = workspace.history(outcome.task_id).attempts()
    assert [one.error for one in attempts] == ["KeyError: 6"] * 2


def test_a_task_that_is_given_up_again_stands_there_once(workspace: loki.Workspace) -> None:
    first = give_up(workspace)
    before = raw(workspace, first.task_id)
    give_up(workspace)
    after = raw(workspace, first.task_id)
    assert (before["failure_count"], after["failure_count"]) == (2, 4)
    assert after["first_failure"] == before["first_failure"]
    assert places(workspace) == {first.task_id: "dead-letter"}


def test_what_is_resumed_and_succeeds_is_recovered(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    with workspace.resume(outcome.task_id) as task:
        assert task.run(lambda _: {"part.py": "right = 1\n"}).status == "success"
    assert places(workspace) == {outcome.task_id: "completed"}
    assert metadata(workspace)["total_recovered"] == 1


def test_what_is_aborted_is_abandoned(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    workspace.abort(outcome.task_id)
    assert places(workspace) == {outcome.task_id: "abandoned"}
    assert "a person" in raw(workspace, outcome.task_id)["reason"]
    assert review(workspace) == {}


def test_a_spent_budget_and_an_escalation_are_no_dead_letters(workspace: loki.Workspace) -> None:
    with workspace.task("fit it", checks=["false"], max_tokens=1) as task:
        task.run(lambda _: {"part.py": "x\n"})
    assert not (workspace.folder / "queue" / "dead-letter.json").exists()


def test_what_an_earlier_release_gave_up_is_added(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    (workspace.folder / "queue" / "dead-letter.json").unlink()
    assert list(review(workspace)) == [outcome.task_id]
    assert [one["approach"] for one in raw(workspace, outcome.task_id)["attempts"]] == [
        "changed part.py: wrong = 0",
        "changed part.py: wrong = 1",
    ]


# --- when -----------------------------------------------------------------------------------------


def test_it_is_reviewed_once_a_day(workspace: loki.Workspace) -> None:
    give_up(workspace)
    assert len(review_when_due(workspace)) == 1
    assert review_when_due(workspace) == []
    workspace.clock.advance(24 * 3600)  # type: ignore[attr-defined]
    assert review_when_due(workspace) == []
    workspace.clock.advance(1)  # type: ignore[attr-defined]
    assert len(review_when_due(workspace)) == 1


def test_a_review_of_one_is_none_of_all(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    DeadLetters(workspace).review([outcome.task_id])
    assert metadata(workspace)["last_reviewed"] is None


def missing(task_id: str, message: str) -> dict[str, Any]:
    made = letter(task_id)
    made["attempts"][0] |= {"error_message": message, "error_type": "dependency"}
    return made


def test_a_module_is_there_now(workspace: loki.Workspace) -> None:
    message = "ModuleNotFoundError: No module named 'flux_capacitor'"
    write_letters(workspace, [missing("a", message)])
    assert review(workspace)["a"].decision.action == "stay"
    (workspace.root / "flux_capacitor.py").write_text("power = 1.21\n")
    assert review(workspace)["a"].decision.rule == "dependency_available"
    queue = queue_of(workspace)
    with Worker(workspace.folder) as worker:
        queue.dead_letter({"task_id": "a", "error_summary": message}, queue.lease(worker))
    assert review(workspace)["a"].decision.action == "stay", "it was there, and it failed again"


def test_a_commit_fixed_what_blocked_it(workspace: loki.Workspace) -> None:
    commit(workspace.root, "before", "2026-01-25T14:00:00Z")
    write_letters(workspace, [letter("task-7")])
    assert review(workspace)["task-7"].decision.action == "stay"
    (workspace.root / "note.txt").write_text("x")
    fixed = commit(workspace.root, "Unblock task-7: ask the cache", "2026-01-25T15:00:00Z")
    found = review(workspace)["task-7"].decision
    assert (found.action, found.rule, found.commit) == ("retry", "bug_fixed", fixed)
    assert raw(workspace, "task-7")["fix_commit"] == fixed


def test_a_commit_touches_the_file_that_fails(workspace: loki.Workspace) -> None:
    made = letter("a")
    made["attempts"][0]["error_message"] = "part.py:1: ValueError: the part does not fit at all"
    write_letters(workspace, [made, letter("task-70")])
    commit(workspace.root, "Mend the part, as for task-701", "2026-01-25T15:00:00Z")
    found = review(workspace)
    assert found["a"].decision.rule == "bug_fixed"
    assert found["a"].decision.evidence == ("it touches part.py, where the task fails",)
    assert found["task-70"].decision.action == "stay", "task-701 is another one"


# --- answers --------------------------------------------------------------------------------------


def test_a_new_approach_counts_anew_and_is_told(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    review(workspace, Answers(new_approach="ask the caller what it wants"), by="ann")
    entry = raw(workspace, outcome.task_id)
    assert entry["failure_count"] == 0
    assert "ask the caller what it wants" in entry["description"]
    assert len(entry["dead_letter"]["attempts"]) == 2
    give_up(workspace)
    again = raw(workspace, outcome.task_id)
    assert (again["failure_count"], len(again["attempts"])) == (2, 4)


def test_a_simpler_task_is_linked_and_takes_its_place_once_it_is_done(
    workspace: loki.Workspace,
) -> None:
    outcome = give_up(workspace)
    simpler = Answers(simpler_scope=Scope("fit half of it"))
    new = review(workspace, simpler)[outcome.task_id].new_task
    assert places(workspace) == {outcome.task_id: "dead-letter", new: "pending"}
    assert raw(workspace, new)["after"] == outcome.task_id
    assert raw(workspace, outcome.task_id)["simpler_task"] == new
    assert review(workspace, simpler)[outcome.task_id].decision.action == "stay"
    queue = queue_of(workspace)
    with Worker(workspace.folder) as worker:
        claim = queue.lease(worker)
        assert claim is not None
        queue.complete(claim)
    assert review(workspace)[outcome.task_id].decision.rule == "scope_gone"
    assert places(workspace)[outcome.task_id] == "abandoned"


def reviewer(answer: str) -> CommandAgent:
    return CommandAgent([sys.executable, "-c", f"print({answer!r})"])


def test_a_reviewer_answers_what_no_fact_decides(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace)
    answer = '{"scope_gone": "the part was dropped"}'
    found = review(workspace, reviewers=[reviewer(answer)])[outcome.task_id].decision
    assert (found.action, found.rule) == ("abandon", "scope_gone")
    assert raw(workspace, outcome.task_id)["reason"].endswith("the part was dropped")


@pytest.mark.parametrize("answer", ["Delete everything!", '{"scope_gone": 1}', ""])
def test_a_reviewer_that_makes_no_sense_decides_nothing(
    workspace: loki.Workspace, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = give_up(workspace)
    found = review(workspace, reviewers=[reviewer(answer)])[outcome.task_id]
    assert found.decision.action == "stay"
    assert "is not understood" in caplog.text


def test_a_reviewer_that_cannot_be_asked_decides_nothing(
    workspace: loki.Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = give_up(workspace)
    broken = CommandAgent([sys.executable, "-c", "raise SystemExit(3)"])
    assert review(workspace, reviewers=[broken])[outcome.task_id].decision.action == "stay"
    assert "could not be asked" in caplog.text


# --- people ---------------------------------------------------------------------------------------


def test_a_security_critical_task_is_escalated_as_soon_as_it_is_given_up(
    workspace: loki.Workspace,
) -> None:
    outcome = give_up(workspace, kind="security")
    (found,) = DeadLetters(workspace).escalations.open()
    assert (found.trigger, found.tasks) == ("security_critical", (outcome.task_id,))
    entry = raw(workspace, outcome.task_id)
    assert entry["recovery_strategy"] == "requires_human_review"
    assert entry["escalation"] == found.page
    page = (workspace.folder / found.page).read_text()
    assert "**Failure Count:** 2" in page
    assert "its kind: security" in page
    assert f"loki dead-letters retry {outcome.task_id} --fixed-by COMMIT" in page
    assert review(workspace)[outcome.task_id].page == found.page, "asked once"
    assert len(DeadLetters(workspace).escalations.open()) == 1


def test_what_the_loop_escalated_counts_for_a_root_cause(workspace: loki.Workspace) -> None:
    check = (
        f"{sys.executable} -c 'print(\"CONFLICT (content): Merge conflict in part.py\"); exit(1)'"
    )
    outcomes = []
    for name in ("merge one", "merge two"):
        with workspace.task(name, checks=[check]) as task:
            outcomes.append(task.run(lambda _: {"part.py": "x\n"}))
        workspace.clock.advance(1)  # type: ignore[attr-defined]
    assert {outcome.status for outcome in outcomes} == {"escalated"}
    made = letter("c")
    made["attempts"][0]["error_message"] = "CONFLICT (content): Merge conflict in part.py"
    write_letters(workspace, [made])
    found = review(workspace)["c"].decision
    assert found.rule == "shared_root_cause"
    (page,) = DeadLetters(workspace).escalations.open()
    assert set(page.tasks) == {"c", *(outcome.task_id for outcome in outcomes)}
    text = (workspace.folder / page.page).read_text()
    assert "`loki dead-letters retry c --fixed-by COMMIT`" in text, "only those that it takes"
    assert all(f"`loki resume {outcome.task_id}`" in text for outcome in outcomes)


def test_when_a_condition_comes_true_nobody_is_asked_any_more(workspace: loki.Workspace) -> None:
    outcome = give_up(workspace, kind="security")
    review(workspace, Answers(fixed_by="5fd6e0c"), by="ann")
    assert DeadLetters(workspace).escalations.open() == []
    assert places(workspace) == {outcome.task_id: "pending"}


def test_people_are_told_of_dead_letters_and_escalations_once(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    program = tmp_path / "tell.py"
    program.write_text(f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read() + '\\n')")
    folder = tmp_path / "project"
    (folder / ".loki").mkdir(parents=True)
    config = f'[notify]\ncommand = "{sys.executable} {program}"\n'
    (folder / ".loki" / "config.toml").write_text(config)
    workspace = make_project(folder)
    plain = give_up(workspace)
    guarded = give_up(workspace, "fit the lock", kind="security")
    for _ in range(2):
        review(workspace)
    kinds = [
        (one["kind"], one["task_id"]) for one in map(json.loads, told.read_text().splitlines())
    ]
    assert sorted(kinds) == sorted(
        [
            ("dead_letter", plain.task_id),
            ("dead_letter", guarded.task_id),
            ("escalation", guarded.task_id),
        ]
    )


def test_a_dry_run_changes_nothing(workspace: loki.Workspace) -> None:
    give_up(workspace)

    def look() -> dict[Path, bytes]:
        # Beside a database stand files of SQLite's own as long as anybody has it open.
        files = (p for p in workspace.folder.rglob("*") if not p.name.startswith("queue.db-"))
        return {p: p.read_bytes() for p in files if p.is_file()}

    before = look()
    found = DeadLetters(workspace).review(said={"": Answers(abandon="enough")}, dry_run=True)
    assert [one.decision.action for one in found] == ["abandon"]
    assert look() == before


def test_it_is_kept_how_a_task_came_to_be_given_up(workspace: loki.Workspace) -> None:
    def source(task_id: str) -> str:
        (last,) = [one for one in scan(workspace.store) if one.task_id == task_id][-1:]
        return last.source

    first = give_up(workspace)
    assert source(first.task_id) == "loop"
    give_up(workspace)
    assert source(first.task_id) == "queue"
    nightly = RecurringTask(id="nightly", schedule=CronPart(cron="@daily"), command=("true",))
    RecurringTasks(workspace.store).add(nightly)
    assert source(give_up(workspace, id="nightly-3").task_id) == "recurring"
