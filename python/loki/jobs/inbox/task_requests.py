"""What tasks ask people, and what follows from each answer.

They ask by escalations, approvals and rules that were changed. What stopped goes on only when a person
says so, too: tasks and runs that were paused, interrupted or killed, tasks that spent their budget, and
those whose questions are answered. What a worker or the dispatcher takes up by itself is not among them.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_state import OVER, WAITING_FOR_A_PERSON
from loki.action.processes.command_guard import ASIDE, LOG, RestoredRule, State, put, restored_text
from loki.base import codec, locks, path_containment
from loki.base.error import UsageError
from loki.base.secret import holds_mask
from loki.base.text_format import escape_control_characters
from loki.base.time import isoformat
from loki.execution.assembly import guard, human_reviews
from loki.jobs.inbox import human_review_answers, queue_requests, settled_reviews
from loki.jobs.inbox.request_kind import Kind, ProjectSnapshot, Result, Said
from loki.jobs.queue.queue import queue_of
from loki.memory import task_record
from loki.memory.attempt import DRIFT
from loki.memory.task_record import DONE, TaskRecord
from loki.people.approval import Approvals
from loki.people.escalation import Escalations
from loki.people.human_review import is_about_done
from loki.people.request import Evidence, Option, Request, criterion_options, request_id, yes_or_no

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- Escalations: one entry to a page -----------------------------------------------------------------

ASKED_OTHERWISE = frozenset({"approval", "human_review", DRIFT})
"""Triggers of escalations that other rooms tell of."""

_STAMP = re.compile(r"escalations/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d(?:\.\d+)?)Z-")


def escalations(workspace: Workspace, look: ProjectSnapshot) -> list[Request]:
    """Tasks that stopped because they need a person, and pages that others wrote."""
    found = []
    seen = {one.task_id for one in human_reviews(workspace).open()}  # asked about already
    for page in Escalations(workspace.store, workspace.clock).open():
        tasks = [
            task
            for task in page.tasks
            if task not in seen and not _is_asked_otherwise(look.records.get(task))
        ]
        seen.update(tasks)
        if tasks:
            asked = f"{page.reason or page.trigger}. {page.asks}".strip()
            found.append(_escalation(tasks, page.title, asked, _asked_at(page.page), page.page))
    for task, record in look.records.items():
        outcome = record.outcome
        if outcome is None or outcome.status != "escalated" or task in seen:
            continue
        if not _is_asked_otherwise(record):
            reason, page_name = f"{outcome.reason}.", outcome.page or ""
            found.append(_escalation([task], record.title, reason, record.updated_at, page_name))
    return found


def _is_asked_otherwise(record: TaskRecord | None) -> bool:
    if record is None or record.run:
        return record is not None  # a stage: the pipeline's run asks
    return record.status == "escalated" and record.trigger in ASKED_OTHERWISE


def _asked_at(page: str) -> str:
    """When a page of loki's was written, as its name says."""
    found = _STAMP.match(page)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else ""


def _escalation(tasks: Sequence[str], title: str, asked: str, since: str, page: str) -> Request:
    id_ = request_id("escalation", page or tasks[0])
    options = (
        Option("go on, after you mended it", f"loki approve {id_}"),
        Option("go on, with what you know", f'loki approve {id_} --context "…"'),
        Option("give up", f"loki reject {id_}"),
    )
    others = tuple(tasks[1:])
    return Request(
        id_, "escalation", title, asked, since, options, tasks[0], page=page, others=others
    )


# --- what an answer does -----------------------------------------------------------------------------


def _go_on_after_escalation(workspace: Workspace, one: Request, said: Said) -> Result:
    """Its tasks go on where they stopped, at once; what cannot is tried again, from the queue."""
    resumed = _to_resume(workspace, one)
    others = [task for task in one.tasks if task not in resumed]
    done = "; ".join(_again(workspace, task, said) for task in others)
    is_queued = (
        any(settled_reviews.is_queued(workspace, task) for task in one.tasks) if done else False
    )
    next_ = queue_requests.GO_ON if is_queued else ""
    return Result(done, next_, resumed, at_once=bool(resumed))


def _to_resume(workspace: Workspace, one: Request) -> tuple[str, ...]:
    """The tasks of an escalation that go on where they stopped.

    A dead letter that is alone goes on at once, too; several are queued again.
    """
    lists = queue_of(workspace).lists()
    return tuple(
        task
        for task in one.tasks
        if _can_resume(workspace, task) and (not one.others or lists.where(task) != "dead-letter")
    )


def _again(workspace: Workspace, task: str, said: Said) -> str:
    if queue_of(workspace).where(task) == "dead-letter":
        return queue_requests.retry(workspace, task, said).done
    settled_reviews.unblock(workspace, task)
    _answered(workspace, task, f"a person lets it go on, by {said.by}", said.words)
    return f"may go on: {task}"


def _give_up_escalation(workspace: Workspace, one: Request, said: Said) -> Result:
    """Give up every task that something is about.

    Raises:
        UsageError: files of one changed since; the tasks before it are given up.
    """
    records = {task: task_record.load(workspace.store, task) for task in one.tasks}
    # The newest change is undone first: others may lie below it, in the same files.
    newest = sorted(records, key=lambda t: records[t].updated_at, reverse=True)
    for task in newest:
        human_review_answers.give_up(workspace, task, said.note)
        _answered(workspace, task, f"given up, by {said.by}", said.note)
    files = "its files are" if not one.others else "their files are"
    return Result(f"given up: {', '.join(one.tasks)}; {files} as they were")


def _answered(workspace: Workspace, task: str, what: str, words: str) -> None:
    store = workspace.strict_store
    Escalations(store, workspace.clock).answer(task, what, words)


def _can_resume(workspace: Workspace, task: str) -> bool:
    record = task_record.load(workspace.store, task)
    return bool(record) and record.status not in DONE and not record.run


ESCALATION = Kind(
    "escalation",
    escalations,
    _go_on_after_escalation,
    _give_up_escalation,
    asks=True,
    wants_why=False,
)


# --- Approvals: of criteria, of commands, of stages of pipelines --------------------------------------


def _criteria(workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Criteria that only a person can approve, where no request asks about them already."""

    asked = {one.task_id for one in human_reviews(workspace).open() if is_about_done(one)}
    for id_, record in look.records.items():
        awaited = record.approval
        if record.trigger != "approval" or awaited is None or id_ in asked:
            continue
        decided = Approvals(workspace.store, id_)
        for name in awaited.criteria:
            if decided.current(name, awaited.digest) is None:
                yield _criterion(id_, record, name, look)


def _criterion(task: str, record: TaskRecord, criterion: str, look: ProjectSnapshot) -> Request:
    id_ = request_id("approval", task, criterion)
    said = [check.description for check in record.checks if check.name == criterion]
    about = record.approval.about if record.approval else {}
    text = next(filter(None, (*said, about.get(criterion))), criterion)
    files = record.outcome.files if record.outcome else ()
    changed = ", ".join(files) or "nothing"
    question = f"Does this hold: {text}? Every other check passes; it changed {changed}."
    options, evidence = criterion_options(task, criterion), (Evidence("changed", f) for f in files)
    request = Request(
        id_, "approval", record.title, question, record.updated_at, options, task, target=criterion
    )
    return replace(request, page=look.page_of(task), evidence=tuple(evidence))


def _commands(workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Commands that agents may not run by themselves, of tasks that are not done."""

    for task, record in look.records.items():
        if record and record.status not in DONE and record.trigger != "aborted":
            for name in Approvals(workspace.store, task).undecided():
                yield _command(task, record, name)


def _command(task: str, record: TaskRecord, name: str) -> Request:
    id_ = request_id("command", task, name)
    options = yes_or_no(id_, "approve", "reject")
    if holds_mask(name):
        words = f'loki resume {shlex.quote(task)} --approve "command: …"'
        options = (Option("approve, with the secret's words", words), options[1])
    question = (
        f"May the agent run exactly this: {escape_control_characters(name.partition(' ')[2])}?"
    )
    return Request(
        id_, "command", record.title, question, record.updated_at, options, task, target=name
    )


def _yes(workspace: Workspace, one: Request, said: Said) -> Result:
    return _decided(workspace, one, said, approved=True)


def _no(workspace: Workspace, one: Request, said: Said) -> Result:
    if said.abort:
        return _give_up_escalation(workspace, one, said)
    return _decided(workspace, one, said, approved=False)


def _decided(workspace: Workspace, one: Request, said: Said, *, approved: bool) -> Result:
    from loki.jobs.work.task_interventions import approve  # how work is done is much to load

    approve(workspace, one.task_id, one.target, approved=approved, by=said.by, note=said.note)
    done = f"{'approved' if approved else 'rejected'}: {one.target}"
    return Result(done, goes_on=True, frees=True)


def _stages(workspace: Workspace, _: ProjectSnapshot) -> Iterator[Request]:
    """Stages of pipelines that wait for leave, or could not go on alone."""
    for data in pipeline_record.runs(workspace.store):
        run, stage, phase = str(data["run"]), str(data.get("at")), data.get("phase")
        if phase not in {"approval", "escalated"}:
            continue
        id_ = request_id("stage", run, stage, str(phase))
        first = Option("let it begin", f"loki approve {id_}")
        question = f"May stage {stage} of {run} begin?"
        if phase == "escalated":
            first = Option("go on, with what you know", f'loki approve {id_} --context "…"')
            why = data.get("reason") or "no reason given"
            question = f"Stage {stage} of {run} needs you: {why}."
        options = (first, Option("end the run", f'loki reject {id_} --note "why"'))
        title, since = f"{data.get('pipeline')}: {stage}", str(data.get("updated_at") or "")
        yield Request(id_, "stage", title, question, since, options, target=run)


def _begin(_workspace: Workspace, one: Request, _said: Said) -> Result:
    return Result("", run=one.target, at_once=True, lets_begin=not one.takes_words)


CRITERION = Kind("approval", _criteria, _yes, _no, asks=True)
COMMAND = Kind("command", _commands, _yes, _no, asks=True)
STAGE = Kind("stage", _stages, _begin, _begin, asks=True)


# --- Files that decide, that a command changed and that were put back ---------------------------------

logger = logging.getLogger("loki")


def tell(workspace: Workspace, one: RestoredRule) -> None:
    """Tell people of a file that was put back, as the project's ``[notify]`` says."""

    from loki.execution.notify_channels import notifier

    notifier(workspace).notify("human_review", restored_text(one), id=one.id, answer="loki status")


def rules(workspace: Workspace, _: ProjectSnapshot) -> list[Request]:
    """What was put back and nobody has looked at yet."""
    return [
        Request(
            one.id,
            "rule",
            os.path.relpath(one.path, workspace.project),
            f"`{one.command}` {'changed' if one.found else 'deleted'} it, which decides how loki or git "
            "work; it was put back. Is it to be as the command left it?",
            one.at,
            (
                Option("no, leave it", f"loki reject {shlex.quote(one.id)}"),
                Option("yes, it was me", f"loki approve {shlex.quote(one.id)}"),
            ),
            page=one.kept,
            target=one.path,
        )
        for one in _open(workspace).values()
    ]


def _answer(workspace: Workspace, one: Request, said: Said, *, accepted: bool) -> Result:
    """Keep a person's answer; what was put back is as the command left it where that was right."""
    put_back = _open(workspace).get(one.id)
    if put_back is None:
        raise UsageError(f"{one.id} waits no longer")
    if accepted:
        _as_it_was_left(workspace, put_back)
    record = {"answered": one.id, "accepted": accepted, "by": said.by}
    workspace.store.append(LOG, {**record, "at": isoformat(workspace.clock.now())})
    how = "is as the command left it" if accepted else "stays as it is"
    return Result(f"{put_back.path} {how}")


def _as_it_was_left(workspace: Workspace, one: RestoredRule) -> None:
    if not one.kept:
        os.unlink(one.path)
        return
    kept = Path(path_containment.path(workspace.folder, one.kept))
    try:
        content, mode = kept.read_bytes(), kept.stat().st_mode & 0o777
    except OSError as error:
        raise UsageError(f"{kept}: cannot be read any more: {error.strerror}") from error
    put(one.path, State("file", content, mode))


def _open(workspace: Workspace) -> dict[str, RestoredRule]:
    found: dict[str, RestoredRule] = {}
    declined: set[str] = set()  # the same change again is put back without a question
    records = workspace.store.records(LOG)
    decides = guard(workspace).rules.decides if records else None
    for record in records:
        if "answered" in record:
            id_ = str(record["answered"])
            found.pop(id_, None)
            (declined.discard if record.get("accepted") else declined.add)(id_)
            continue
        try:
            one = codec.parse(RestoredRule, record)
        except ValueError:
            continue
        if not one.is_asked or one.id in declined:
            continue
        # Whatever a program has written into the log: a person's yes writes or removes nothing else.
        is_kept = not one.kept or (
            one.kept.startswith(f"{ASIDE}/") and path_containment.is_path(one.kept)
        )
        if is_kept and decides is not None and decides(one.path):
            found.setdefault(one.id, one)
        else:
            said = "%s: left out %s: it names %s, expected a file that decides how loki or git work"
            logger.warning(said, LOG, one.id, one.path)
    return found


RULE = Kind(
    "rule changed", rules, partial(_answer, accepted=True), partial(_answer, accepted=False)
)


# --- What goes on only when a person says so, although nothing is asked -------------------------------

WHY: Mapping[str, str] = {
    "escalated": "What was asked about it is answered",
    "paused": "It is paused: {reason}",
    "interrupted": "It was interrupted",
    "budget": "Its budget is spent: {reason}",
    "": "It was ended before it was done",
}
"""By how it stands, "" for what has no end; `escalated` is here where nothing asks about it."""


_ASKED = frozenset(phase.value for phase in OVER | WAITING_FOR_A_PERSON)


def stopped(workspace: Workspace, look: ProjectSnapshot) -> list[Request]:
    """What goes on only when a person says so; what is asked about it stands elsewhere.

    Args:
        workspace: the project.
        look: at it.
    """
    found = [*_tasks(workspace, look.records), *_runs(workspace)]
    # Without an end it may be at work just now.
    is_sure = all(status for status, _ in found) or not locks.is_held(workspace.folder / "run")
    return [one for status, one in found if status or is_sure]


def _tasks(
    workspace: Workspace, records: Mapping[str, TaskRecord]
) -> Iterator[tuple[str, Request]]:
    for id_, record in records.items():
        status = "budget" if record.trigger == "budget" else record.status
        if (
            not record
            or record.run
            or status not in WHY
            or settled_reviews.is_queued(workspace, id_)
        ):
            continue
        if status != "escalated" and _is_recurring(workspace, id_):
            continue  # the next run begins it anew
        reason = record.outcome.reason if record.outcome else ""
        yield (
            status,
            Request(
                id_,
                "stopped",
                record.title or id_,
                f"{WHY[status].format(reason=reason)}; it goes on when you say so.",
                record.updated_at,
                yes_or_no(id_, "go on", "give up", "go on, with what you know"),
                id_,
            ),
        )


def _is_recurring(workspace: Workspace, id_: str) -> bool:
    from loki.jobs.recurring.recurring_tasks import RecurringTasks  # takes long to import

    return RecurringTasks(workspace.store).has_run(id_)


def _runs(workspace: Workspace) -> Iterator[tuple[str, Request]]:
    for data in pipeline_record.runs(workspace.store):
        phase = str(data.get("phase"))
        if phase in _ASKED:
            continue
        status = phase if phase in WHY else ""
        run, reason = str(data["run"]), str(data.get("reason") or "no reason given")
        yield (
            status,
            Request(
                run,
                "stopped",
                f"{data.get('pipeline')}: {data.get('at')}",
                f"{WHY[status].format(reason=reason)}; it goes on when you say so.",
                str(data.get("updated_at") or ""),
                yes_or_no(run, "go on", "give it up"),
                target=run,
            ),
        )


def _go_on(_workspace: Workspace, one: Request, _said: Said) -> Result:
    run = "" if one.task_id else one.target
    return Result("", tasks=one.tasks, run=run, at_once=True)


def _give_up(workspace: Workspace, one: Request, said: Said) -> Result:
    if one.task_id:
        human_review_answers.give_up(workspace, one.task_id, said.note)
    else:
        _give_run_up(workspace, one.target, said)
    return Result(f"given up: {one.task_id or one.target}; its files are as they were")


def _give_run_up(workspace: Workspace, run: str, said: Said) -> None:
    from loki.jobs.work.task_interventions import give_up  # how work is done is much to load

    if conflicts := give_up(workspace, run, said.by, said.note).conflicts:
        listing = "; ".join(f"{one.path}: {one.reason}" for one in conflicts)
        raise UsageError(
            f"run {run} stays open, because files changed since ({listing}); "
            f"`loki cancel {run} --force` overwrites them"
        )


STOPPED = Kind("stopped", stopped, _go_on, _give_up, yields=True, wants_why=False)
