"""What tasks ask people to approve: criteria that no command can check, commands that no setting allows,
and stages of pipelines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from loki.execution.human_answers import human_reviews
from loki.jobs.inbox import escalation_requests
from loki.jobs.inbox.request_kind import Kind, Result, Said
from loki.jobs.work.task_interventions import approve
from loki.memory.task_record import TaskRecord
from loki.people.request import Evidence, Option, Request, id_of, yes_or_no
from loki.people.request_page import criterion_options
from loki.people.review_trigger import is_about_done

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.workspace import Workspace


def _criteria(workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Criteria that only a person can approve, where no request asks about them already."""
    from loki.people.approval import Approvals

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
    id_ = id_of("approval", task, criterion)
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
    from loki.action.loop.resumption import DONE
    from loki.people.approval import Approvals

    for task, record in look.records.items():
        if record and record.status not in DONE and record.trigger != "aborted":
            for name in Approvals(workspace.store, task).undecided():
                yield _command(task, record, name)


def _command(task: str, record: TaskRecord, name: str) -> Request:
    from loki.base.control_characters import escape_control_characters
    from loki.base.secret import holds_mask

    id_ = id_of("command", task, name)
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
    approve(workspace, one.task_id, one.target, by=said.by, note=said.note)
    return Result(f"approved: {one.target}", goes_on=True, frees=True)


def _no(workspace: Workspace, one: Request, said: Said) -> Result:
    if said.abort:
        return escalation_requests.give_up(workspace, one, said)
    approve(workspace, one.task_id, one.target, approved=False, by=said.by, note=said.note)
    return Result(f"rejected: {one.target}", goes_on=True, frees=True)


def _stages(workspace: Workspace, _: ProjectSnapshot) -> Iterator[Request]:
    """Stages of pipelines that wait for leave, or could not go on alone."""
    from loki.action.pipelines import pipeline_record

    for data in pipeline_record.runs(workspace.store):
        run, stage, phase = str(data["run"]), str(data.get("at")), data.get("phase")
        if phase not in {"approval", "escalated"}:
            continue
        id_ = id_of("stage", run, stage, str(phase))
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
