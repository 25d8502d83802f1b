"""What waits for a person in a project: one function a room, workspace in, list out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from loki.base.error import StoreError
from loki.base.time import isoformat
from loki.people.human_review import HumanReview
from loki.people.review_trigger import is_about_done
from loki.people.waiting import LET_BEGIN, Answer, Waiting, answers_of, id_of
from loki.signalling import merging
from loki.waiting import numbers, reviews, standing, stuck
from loki.waiting.escalated import escalations
from loki.waiting.look import Look
from loki.waiting.rules import rules
from loki.waiting.stopped import stopped

if TYPE_CHECKING:
    from loki.workspace import Workspace

STOPPED = frozenset({"dead_letter", "blocked", "stuck", "stopped"})

Source = Callable[["Workspace", Look], list[Waiting]]


def waiting(workspace: Workspace, look: Look | None = None) -> list[Waiting]:
    """Everything that waits for a person, the most urgent kind first, the oldest first of each.

    Args:
        workspace: the project.
        look: at it; None: a new one.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> waiting(Workspace(tempfile.mkdtemp()))
        []
    """
    look, left = look or Look(workspace), numbers.left(workspace)
    found: list[Waiting] = []
    for source in SOURCES:
        new = sorted(source(workspace, look), key=lambda one: (one.since, one.id))
        new = [one for one in new if numbers.key(one) not in left] if left else new
        # What has stopped because a person is asked something is asked about once.
        asked = {task for one in found for task in one.tasks}
        found += [one for one in new if one.kind not in STOPPED or one.task_id not in asked]
    return found


# --- requests for a person's decision ---------------------------------------------------------------


def human_reviews(workspace: Workspace, look: Look) -> list[Waiting]:
    """Open requests: HUMAN_REVIEW_NEEDED."""
    timeout = timedelta(seconds=workspace.config.review.timeout)
    return [_review(one, look.records, timeout) for one in reviews.of(workspace).open()]


def _review(
    review: HumanReview, records: Mapping[str, Mapping[str, Any]], timeout: timedelta
) -> Waiting:
    id_, until = shlex.quote(review.id), review.until(timeout)
    record = records.get(review.task_id) or {}
    more = Answer("say more", f'loki approve {id_} --context "…"')
    answers = [
        Answer("approve", f"loki approve {id_}"),
        Answer("reject", f'loki reject {id_} --note "why"'),
        *([] if is_about_done(review) else [more]),
    ]
    if record and not record.get("run"):
        answers.append(Answer("give up", f"loki reject {id_} --abort"))
    return Waiting(
        review.id,
        "human_review",
        str(record.get("title") or review.task_id or review.reason),
        review.asked,
        review.timestamp,
        tuple(answers),
        review.task_id,
        isoformat(until) if until else "",
        str((record.get("outcome") or {}).get("page") or ""),
    )


# --- tasks ------------------------------------------------------------------------------------------


def approvals(workspace: Workspace, look: Look) -> list[Waiting]:
    """Criteria that only a person can approve, where no request asks about them already."""
    from loki.people.approval import Approvals

    asked = {one.task_id for one in reviews.of(workspace).open() if is_about_done(one)}
    found = []
    for id_, record in look.records.items():
        outcome, awaited = record.get("outcome") or {}, record.get("approval") or {}
        if outcome.get("trigger") != "approval" or id_ in asked:
            continue
        decided = Approvals(workspace.store, id_)
        digest = str(awaited.get("digest", ""))
        found += [
            _approval(id_, record, name)
            for name in map(str, awaited.get("criteria") or [])
            if decided.standing(name, digest) is None
        ]
    return found


def _approval(task: str, record: Mapping[str, Any], criterion: str) -> Waiting:
    id_ = id_of("approval", task, criterion)
    checks = [c for c in record.get("checks") or [] if isinstance(c, Mapping)]
    said = [str(c.get("description") or "") for c in checks if c.get("name") == criterion]
    about = (record.get("approval") or {}).get("about") or {}
    text = next(filter(None, (*said, about.get(criterion))), criterion)
    files = (
        ", ".join(map(str, (record.get("outcome") or {}).get("files_modified") or [])) or "nothing"
    )
    return Waiting(
        id_,
        "approval",
        str(record.get("title")),
        f"Does this hold: {text}? Every other check passes; it changed {files}.",
        str(record.get("updated_at") or ""),
        (
            Answer("approve", f"loki approve {id_}"),
            Answer("reject", f'loki reject {id_} --note "why"'),
        ),
        task,
        page=str((record.get("outcome") or {}).get("page") or ""),
        target=criterion,
    )


def commands(workspace: Workspace, look: Look) -> list[Waiting]:
    """Commands that agents may not run by themselves, of tasks that are not done."""
    from loki.action.resumption import DONE, status_of
    from loki.base.invisible import written_out
    from loki.base.secret import holds_mask
    from loki.people.command_approval import CommandApprovals

    found = []
    for task, record in look.records.items():
        aborted = (record.get("outcome") or {}).get("trigger") == "aborted"
        if not record or status_of(record) in DONE or aborted:
            continue
        for name in CommandApprovals(workspace.store, task).undecided():
            id_ = id_of("command", task, name)
            answers = (
                Answer("approve", f"loki approve {id_}"),
                Answer("reject", f'loki reject {id_} --note "why"'),
            )
            if holds_mask(name):
                words = f'loki resume {shlex.quote(task)} --approve "command: …"'
                answers = (Answer("approve, with the secret's words", words), answers[1])
            found.append(
                Waiting(
                    id_,
                    "command",
                    str(record.get("title")),
                    f"May the agent run exactly this: {written_out(name.partition(' ')[2])}?",
                    str(record.get("updated_at") or ""),
                    answers,
                    task,
                    target=name,
                )
            )
    return found


def stages(workspace: Workspace, _: Look) -> list[Waiting]:
    """Stages of pipelines that wait for leave, or could not go on alone."""
    from loki.action import pipeline_record

    found = []
    for data in pipeline_record.runs(workspace.store):
        run, stage, phase = str(data["run"]), str(data.get("at")), data.get("phase")
        if phase not in {"approval", "escalated"}:
            continue
        id_ = id_of("stage", run, stage, str(phase))
        is_approval = phase == "approval"
        first = (
            Answer(LET_BEGIN, f"loki approve {id_}")
            if is_approval
            else Answer("go on, with what you know", f'loki approve {id_} --context "…"')
        )
        asked = (
            f"May stage {stage} of {run} begin?"
            if is_approval
            else (f"Stage {stage} of {run} needs you: {data.get('reason') or 'no reason given'}.")
        )
        found.append(
            Waiting(
                id_,
                "stage",
                f"{data.get('pipeline')}: {stage}",
                asked,
                str(data.get("updated_at") or ""),
                (first, Answer("end the run", f'loki reject {id_} --note "why"')),
                target=run,
            )
        )
    return found


# --- what is learned, and what has stopped ----------------------------------------------------------


def candidates(workspace: Workspace, _: Look) -> list[Waiting]:
    """Patterns and rules that loki would learn."""
    try:
        agenda = workspace.review().agenda(workspace.clock.now())
    except StoreError:
        return []
    return [
        Waiting(
            one.id,
            "candidate",
            one.name.splitlines()[0] if one.name else one.id,
            f"Is this {one.kind} to be learned? It was drawn from "
            f"{', '.join(source.task for source in one.sources) or 'nothing'}.",
            one.created_at,
            (
                Answer("learn it", f"loki approve {one.id}"),
                Answer("not this one", f'loki reject {one.id} --note "why"'),
                Answer("look at all of them", "loki review"),
            ),
            page=one.document,
        )
        for one in agenda.candidates
    ]


def breakers(_workspace: Workspace, look: Look) -> list[Waiting]:
    """Circuit breakers that stay open until somebody closes them."""
    return [
        Waiting(
            name,
            "breaker",
            name,
            "It is isolated: no call goes out before somebody closes it.",
            str(one.generation),
            answers_of(name, "close it", "leave it isolated", reason=""),
        )
        for name, one in look.breakers.items()
        if one.is_isolated
    ]


def recommendations(workspace: Workspace, look: Look) -> list[Waiting]:
    """What triages recommend of tasks that fail."""
    failing = [task for task in look.recurring if task.consecutive_failures]
    if not failing:  # what reads triages takes long to import
        return []
    from loki.triaging.recommendation import recommendations as found

    return found(workspace, failing)


SOURCES: Sequence[Source] = (
    rules,
    human_reviews,
    approvals,
    commands,
    stages,
    escalations,
    standing.dead_letters,
    standing.recurring,
    recommendations,
    candidates,
    standing.blocked,
    stuck.stuck,
    merging.waiting,
    stopped,
    breakers,
)
