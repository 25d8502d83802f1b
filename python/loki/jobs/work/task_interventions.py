"""How a person steps in: they answer a task, go on with it, give it up, or end what is under way."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.action.changes.executor import forget
from loki.action.changes.journal import UndoResult
from loki.action.loop import recorder, resumption
from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_state import OVER
from loki.action.processes.process import outlived_by_commands
from loki.action.task import limited, retries_of
from loki.base import atomic_file
from loki.base.error import UsageError
from loki.base.text_format import did_you_mean
from loki.base.time import Duration, isoformat
from loki.execution.assembly import resolved
from loki.execution.stop_request import ALL, LOOK, Word, home, is_at_work, released
from loki.execution.task_session import Task, human_answers
from loki.jobs.inbox import settled_reviews
from loki.jobs.queue import worker_lock
from loki.jobs.queue.queue import Queue, Slots, queue_of
from loki.jobs.queue.worker_lock import Worker
from loki.jobs.work.queued_task_spec import finish, give_back
from loki.memory import task_record
from loki.memory.task_record import Awaited, Intervention, Outcome, TaskRecord, intervention_text
from loki.people.approval import PREFIX, Approval, Approvals
from loki.people.escalation import Escalations, answer_sentence, with_answer
from loki.people.person import user

if TYPE_CHECKING:
    from loki.action.agent_protocol import Reviewer
    from loki.action.checks.check import Check
    from loki.workspace import Workspace


# --- What is under way is ended, whichever process has it ---------------------------------------------


@contextmanager
def given_up(workspace: Workspace, task: str, by: str) -> Iterator[None]:
    """End whoever works on a task; inside, nobody does, and no worker takes it up.

    Args:
        workspace: the project.
        task: its id.
        by: who gives it up.

    Raises:
        UsageError: it had not ended in time; it is blocked, and ends as soon as it can.
    """
    queue = queue_of(workspace)
    _block(queue, task, f"{by} gives it up")
    with released(workspace.folder, home(task), lambda: _holder(workspace, queue, task)):
        yield


@contextmanager
def run_given_up(workspace: Workspace, run: str) -> Iterator[None]:
    """End whoever works on a run of a pipeline; inside, nobody does. As `given_up`."""

    def holder() -> str:
        is_running = pipeline_record.load(workspace.store, run).get("status") == "running"
        return "a run" if is_running and is_at_work(workspace.folder) else ""

    with released(workspace.folder, home("", run), holder):
        yield


def _block(queue: Queue, task: str, reason: str) -> None:
    """From here on no worker takes it; it stays so where giving it up fails, for a person to see."""
    known = queue.find(task)
    if known is not None and known.blocked is None:
        with suppress(UsageError):
            queue.block(task, reason)


def _holder(workspace: Workspace, queue: Queue, task: str) -> str:
    """Who works on a task just now; "": nobody."""
    known = queue.find(task)
    if known is not None and known.claim is not None and queue.where(task) == "in-progress":
        if not queue.is_lost(known):
            return f"the worker {known.claim.worker}"
        queue.reap()
    record = task_record.load(workspace.store, task)
    if not record or record.outcome:
        return ""
    return "a run" if is_at_work(workspace.folder) else ""


def broadcast(folder: Path, word: Word, patience: float) -> list[str]:
    """End all that is at work on a project.

    Args:
        folder: the workspace's folder.
        word: ``drain``: what is in hand is done; ``stop``: it is ended, to be gone on with later.
        patience: seconds to wait for that.

    Returns:
        Who is still at work.

    Raises:
        StoreError: it could not be said.
    """
    said = {"word": word, "id": secrets.token_hex(8), "at": time.time()}
    atomic_file.make_folder((folder / ALL).parent)
    atomic_file.write_atomic(folder / ALL, json.dumps(said).encode() + b"\n")
    end = time.monotonic() + patience
    while (there := at_work(folder)) and time.monotonic() < end:
        time.sleep(LOOK)
    return there


def at_work(folder: Path) -> list[str]:
    """Who works on a project just now: ids of workers, and ``a run`` where one has the project."""
    locks = sorted((folder / worker_lock.FOLDER).glob("*.lock"))
    found = [lock.stem for lock in locks if worker_lock.is_alive(folder, lock.stem)]
    return [*found, *(["a run"] if is_at_work(folder) else [])]


# --- A person gives a run of a pipeline up ------------------------------------------------------------


def give_up(
    workspace: Workspace, run: str, by: str, why: str = "", *, force: bool = False
) -> UndoResult:
    """Give a run up, wherever it stands, in whichever process; its stages are undone, the last first.

    Args:
        workspace: the project.
        run: its id.
        by: who gives it up; why: for whoever wonders later.
        force: restore also files that somebody changed since.

    Returns:
        What was restored; where there are conflicts and no ``force``, the run stays as it is.

    Raises:
        UsageError: there is no such run, it has ended, or whoever works on it does not end.
    """
    _run_must_be_open(workspace, run)
    with run_given_up(workspace, run), workspace.exclusive():
        data = _run_must_be_open(workspace, run)
        begun = [one for one in data["stages"] if one.get("tries")]
        restored: list[str] = []
        for stage in reversed(begun):
            undone = workspace.journal(str(stage["task"])).undo(force=force)
            restored += [path for path in undone.restored if path not in restored]
            if undone.conflicts and not force:
                return UndoResult(tuple(restored), undone.conflicts, undone.damaged)
            recorder.forget_refused(workspace.store, str(stage["task"]))
        now, ids = workspace.clock.now(), [str(one["id"]) for one in begun]
        after = pipeline_record.given_up(data, by, why, ids, now)
        line = {"timestamp": isoformat(now), "event": "GivenUp", "by": by, "note": why}
        where = {"phase": after["phase"], "stage": after["at"]}
        workspace.store.append(f"{pipeline_record.folder(run)}/events.jsonl", {**line, **where})
        pipeline_record.save(workspace.store, after)
    for stage in begun:
        settled_reviews.given_up(workspace, str(stage["task"]), by)
    return UndoResult(tuple(restored))


def _run_must_be_open(workspace: Workspace, run: str) -> dict[str, Any]:
    data = pipeline_record.load(workspace.store, run)
    if data.get("phase") in {phase.value for phase in OVER}:
        raise UsageError(f"run {run} has ended: {data.get('status')}: {data.get('reason')}")
    return data


# --- A person goes on with a task of the queue --------------------------------------------------------


@contextmanager
def take_over(workspace: Workspace, task: str) -> Iterator[Callable[[Outcome], object]]:
    """Hold a task of the queue, if it is one, while a person works on it.

    Args:
        workspace: the project.
        task: its id.

    Yields:
        To be called with how it ended; where it is not, the task waits for a person as before.

    Raises:
        UsageError: a worker is at work on it.
        StoreError: the queue cannot be read or written.
    """
    queue = queue_of(workspace)
    waited = _make_ready(queue, task)
    if waited is None:
        yield lambda _: None
        return
    with Worker(workspace.folder) as worker, outlived_by_commands(worker.fileno()):
        claim = queue.lease(worker, Slots(admits=lambda queued: queued.id == task))
        if claim is None and queue.where(task) == "in-progress":
            raise UsageError(
                f"a worker has just begun {task}: wait for it, or end `loki work` first"
            )
        finished = []

        def ended(outcome: Outcome) -> None:
            if claim is not None:
                finished.append(finish(queue, claim, outcome))

        try:
            yield ended
        finally:
            if claim is not None and not finished:  # as before
                give_back(queue, claim, "blocked" if waited else "interrupted", waited)


def drop_takeover(workspace: Workspace, task: str, why: str) -> None:
    """A person gave a task up: what is left of it lands nowhere, and the queue knows.

    Args:
        workspace: the project.
        task: its id.
        why: for whoever wonders later.
    """
    queue = queue_of(workspace)
    if queue.where(task) == "in-progress":  # another program has it, or left it there
        queue.take_back(task)
    if queue.where(task) in {"pending", "failed", "dead-letter"}:
        queue.abandon(task, why)
    forget(workspace.folder, workspace.store, task)


def _make_ready(queue: Queue, task: str) -> str | None:
    """Let a task be claimed; why it was blocked, or None where it is no task to claim."""
    where, queued = queue.where(task), queue.find(task)
    if queued is None or where in {None, "completed"}:
        return None
    if where == "in-progress":
        if not queue.is_lost(queued):
            raise UsageError(
                f"a worker is at work on {task}: wait for it, or end `loki work` first"
            )
        queue.reap()
    elif where != "pending":
        queued = queue.requeue(task)
    if queued.blocked is None:
        return ""
    queue.unblock(task)
    return queued.blocked.reason


# --- What a person says to a task that waits for them -------------------------------------------------


def record_of(workspace: Workspace, task: str) -> TaskRecord:
    """What is kept of a task.

    Raises:
        UsageError: there is none.
    """
    if task in workspace.tasks() and (record := task_record.load(workspace.store, task)):
        return record
    raise UsageError(f"no task {task!r} here: `loki show` lists them")


def resume(
    workspace: Workspace,
    task: str,
    *,
    context: str = "",
    checks: Sequence[str | Check] | None = None,
    max_attempts: int | None = None,
    max_time: Duration | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    wait: bool | None = None,
    reviewer: Reviewer | None = None,
) -> Task:
    """A task that stopped, to be gone on with; `loki.Workspace.resume` says more."""
    record = record_of(workspace, task)
    resumption.must_be_resumable(record)
    spec = recorder.spec_of(record, None if checks is None else ())
    spec = replace(
        spec,
        checks=resolved(workspace, spec.checks if checks is None else checks, reviewer),
        max_retries=spec.max_retries if max_attempts is None else retries_of(max_attempts),
        budget=limited(spec.budget, max_time, max_tokens, max_cost),
        wait=spec.wait if wait is None else wait,
    )
    answers = human_answers(workspace, record.id, record.updated_at)
    words = intervention_text("\n".join(filter(None, (context, *answers))))
    settled_reviews.resumed(workspace, record.id, words, user())
    if not resumption.is_help(record, words):
        return Task(workspace, spec, reviewer=reviewer)
    help_ = Intervention(isoformat(workspace.clock.now()), context=words)
    return Task(workspace, spec, help_, reviewer=reviewer)


def abort(workspace: Workspace, task_id: str, *, force: bool = False, why: str = "") -> UndoResult:
    """Give a task up, wherever it stands; `loki.Workspace.abort` says more."""
    _must_be_open(workspace, task_id)
    with given_up(workspace, task_id, user()):
        record = task_record.load(workspace.store, task_id)
        if not _must_be_open(workspace, task_id):
            undone = UndoResult()
        else:
            with workspace.exclusive():
                undone = _undo(workspace, record, intervention_text(why), force=force)
            if undone.conflicts and not force:
                return undone
        drop_takeover(
            workspace, task_id, why or "a person aborted the task; its changes were undone"
        )
    settled_reviews.given_up(workspace, task_id, user())
    return undone


def _must_be_open(workspace: Workspace, task_id: str) -> bool:
    """Whether there is work of a task to be undone; else it only stands in the queue.

    Raises:
        UsageError: there is no such task, or it has ended, also just now.
    """
    record = task_record.load(workspace.store, task_id)
    if resumption.is_open(record):
        return True
    if settled_reviews.is_waiting_in_queue(workspace, task_id):
        return False
    if not record:
        raise UsageError(f"no task {task_id!r} here: `loki show` lists them, and `loki queue`")
    resumption.must_be_resumable(record)
    return True


def _undo(workspace: Workspace, record: TaskRecord, why: str, *, force: bool) -> UndoResult:
    """Undo what a task changed, and note on its pages that it is given up."""
    journal = workspace.journal(record.id)
    journal.recover()
    undone = journal.undo(force=force)
    if undone.conflicts and not force:
        return undone
    recorder.forget_refused(workspace.store, record.id)
    after = resumption.aborted(record, isoformat(workspace.clock.now()), why)
    answer = answer_sentence(after.interventions[-1])
    Escalations(workspace.store, workspace.clock).answer_with(record.id, answer)
    page = record.outcome.page if record.outcome and resumption.awaits_approval(record) else None
    if page and (text := workspace.store.read(page)):
        workspace.store.write(page, with_answer(text, answer))
    task_record.save(workspace.store, after)
    return undone


def approve(
    workspace: Workspace,
    task: str,
    criterion: str,
    *,
    approved: bool = True,
    by: str = "",
    note: str = "",
) -> Approval:
    """Keep a person's decision; `loki.Workspace.approve` says more."""
    record = record_of(workspace, task)
    at, who = isoformat(workspace.clock.now()), by or user()
    approvals = Approvals(workspace.strict_store, record.id)
    if criterion.startswith(PREFIX):
        return approvals.decide(approvals.words(criterion), approved, who, at, note.strip())
    awaited = record.approval or Awaited()
    names = awaited.criteria
    if criterion not in names:
        waits = f"it waits for: {', '.join(map(repr, names))}" if names else "it waits for none"
        raise UsageError(
            f"task {record.id} does not wait for an approval of {criterion!r}: {waits}"
            f"{did_you_mean(criterion, names)}"
        )
    # Of what the page showed, not of what is there now: that is looked at when the task goes on.
    approval = Approval(criterion, approved, who, at, awaited.digest, note.strip())
    approvals.add(approval)
    return approval
