"""Consumers of signals: one for each kind, each effect once, also where one is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal as system
import sys
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

import loki
from loki.base.error import UsageError
from loki.jobs.signals.signal_handling import CONSUMERS, Dispatch, Done, Waits, handle
from loki.memory import task_record
from loki.people.signal import KINDS, Signal
from support.signals import give, mend, project_on_a_branch, queued, told, waiting
from support.task import task_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_on_a_branch(tmp_path / "p")


def test_every_kind_has_one_consumer() -> None:
    ours = {kind.name for kind in KINDS.values() if "dispatcher" in kind.consumer}
    assert set(CONSUMERS) == ours


def test_tests_that_fail_become_one_task_of_the_queue(project: Path) -> None:
    give(project, "FEATURE_READY", "adding")
    found = handle(loki.Workspace(project))
    assert [one.done for one in found] == [True, True]
    assert "failed: TESTS_FAILED adding" in found[0].told
    (task,) = queued(project)
    assert task.title == "Fix the tests of adding"
    assert "AssertionError" in task.description
    assert task.checks == (f"{sys.executable} -S check.py",)
    assert waiting(project) == []
    give(project, "FEATURE_READY", "adding")
    assert "is queued for it already" in told(handle(loki.Workspace(project)))[1]
    assert len(queued(project)) == 1


def test_tests_that_pass_ask_for_a_merge(project: Path) -> None:
    mend(project)
    give(project, "FEATURE_READY", "adding")
    *done, left = handle(loki.Workspace(project))
    assert [one.signal.kind for one in done] == ["FEATURE_READY", "TESTS_PASSED"]
    assert left.told.startswith("a person merges it: git merge --no-ff feature/add")
    assert waiting(project) == ["MERGE_REQUESTED feature/add"]


def test_what_is_about_unfinished_work_waits_for_it(project: Path) -> None:
    workspace = loki.Workspace(project)
    give(project, "FEATURE_READY", "adding", task_id="t1")
    give(project, "DOCS_NEEDED", task_id="t1", description="add adds")
    for outcome, reason in [(None, "has not ended yet"), ({"status": "failed"}, "ended as failed")]:
        task_record.save(workspace.store, task_of({"id": "t1", "outcome": outcome}))
        found = handle(workspace)
        assert [one.done for one in found] == [False, False]
        assert all(f"task t1 {reason}" in one.told for one in found)
    task_record.save(workspace.store, task_of({"id": "t1", "outcome": {"status": "success"}}))
    assert all(one.done for one in handle(workspace))
    docs = next(task for task in queued(project) if task.id.startswith("docs-"))
    assert (docs.title, docs.after) == ("Document: add adds", "t1")


def test_no_signal_says_what_runs(project: Path) -> None:
    give(project, "FEATURE_READY", "adding", command="touch evil")
    give(project, "TESTS_FAILED", "other", command="touch evil")
    handle(loki.Workspace(project))
    assert not (project / "evil").exists()
    assert all("evil" not in str(task.checks) for task in queued(project))


def test_a_branch_that_is_not_checked_out_is_not_tested(project: Path) -> None:
    give(project, "FEATURE_READY", "adding", branch="main")
    (left,) = handle(loki.Workspace(project))
    assert left.told == "it is about the branch main, which is not checked out"


def test_who_is_at_work_in_the_project_is_waited_for(project: Path) -> None:
    give(project, "FEATURE_READY", "adding")
    workspace = loki.Workspace(project)
    with workspace.exclusive():
        (left,) = handle(workspace)
        assert "another loki run is at work" in left.told
        assert handle(workspace, has_project=True)[0].done


def test_a_consumer_that_cannot_work_leaves_the_signal(project: Path) -> None:
    def fails(_dispatch: Dispatch, _signal: Signal) -> Done | Waits:
        raise UsageError("not now")

    give(project, "DOCS_NEEDED", description="x")
    (found,) = handle(loki.Workspace(project), known={"DOCS_NEEDED": fails})
    assert (found.done, found.told) == (False, "not now")
    assert waiting(project) == ["DOCS_NEEDED"]


def _killed_behind_its_effect(project: Path) -> None:
    from loki.jobs.signals.signal_handling import note

    def killed(dispatch: Dispatch, signal: Signal) -> Done | Waits:
        note(dispatch, signal)
        os.kill(os.getpid(), system.SIGKILL)
        raise AssertionError

    handle(loki.Workspace(project), known={"DOCS_NEEDED": killed})


def test_an_effect_whose_worker_was_killed_behind_it_comes_once(project: Path) -> None:
    give(project, "DOCS_NEEDED", description="x")
    worker = multiprocessing.get_context("fork").Process(
        target=_killed_behind_its_effect, args=(project,)
    )
    worker.start()
    worker.join(60)
    assert worker.exitcode == -9
    assert waiting(project) == ["DOCS_NEEDED"]
    assert [one.done for one in handle(loki.Workspace(project))] == [True]
    assert len(queued(project)) == 1
    assert waiting(project) == []


def _counts(project: Path, log: Path, begin: Event) -> None:
    def count(_dispatch: Dispatch, signal: Signal) -> Done | Waits:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{signal.string_field('description')}\n")
        return Done("")

    begin.wait(60)
    handle(loki.Workspace(project), known={"DOCS_NEEDED": count})


def test_many_dispatchers_act_on_each_signal_once(project: Path, tmp_path: Path) -> None:
    for n in range(10):
        give(project, "DOCS_NEEDED", description=str(n))
    context, log = multiprocessing.get_context("fork"), tmp_path / "log"
    begin = context.Event()
    workers = [context.Process(target=_counts, args=(project, log, begin)) for _ in range(4)]
    for worker in workers:
        worker.start()
    begin.set()
    for worker in workers:
        worker.join(60)
    assert sorted(log.read_text().split()) == sorted(map(str, range(10)))
    assert waiting(project) == []


def test_the_end_of_a_run_takes_its_signals_with_it(project: Path) -> None:
    give(project, "FEATURE_READY", "adding")
    loki.Workspace(project).runs().close()
    assert waiting(project) == []
