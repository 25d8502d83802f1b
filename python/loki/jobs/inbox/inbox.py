"""Everything that waits for a person in a project: one list, one number each, one way to answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from loki.base.error import StoreError, UsageError
from loki.execution.assembly import review as review_of
from loki.execution.assembly import signals_of
from loki.execution.resolve import breakers as breakers_of
from loki.jobs.inbox import (
    human_review_answers,
    queue_requests,
    request_kind,
    settled_reviews,
    task_requests,
)
from loki.jobs.inbox.request_kind import Answer, Kind, ProjectSnapshot, Result, Said
from loki.jobs.inbox.task_requests import RULE, STOPPED
from loki.jobs.queue.queue import queue_of
from loki.jobs.signals import signal_handling
from loki.memory import task_record
from loki.memory.task_record import DONE
from loki.people.request import Evidence, Option, Request, RequestKind, yes_or_no
from loki.people.signal import MERGE_REQUESTED

if TYPE_CHECKING:
    from loki.workspace import Workspace


# --- kinds that need no room of their own -------------------------------------------------------------


def _candidates(workspace: Workspace, _: ProjectSnapshot) -> Iterator[Request]:
    """Patterns and rules that loki would learn."""
    try:
        agenda = review_of(workspace).agenda(workspace.clock.now())
    except StoreError:
        return
    for one in agenda.candidates:
        sources = [source.task for source in one.sources]
        yield Request(
            one.id,
            "candidate",
            one.name.splitlines()[0] if one.name else one.id,
            f"Is this {one.kind} to be learned? It was drawn from {', '.join(sources) or 'nothing'}.",
            one.created_at,
            (
                Option("learn it", f"loki approve {one.id}"),
                Option("not this one", f'loki reject {one.id} --note "why"'),
                Option("look at all of them", "loki review"),
            ),
            page=one.document,
            evidence=tuple(Evidence("source", task) for task in sources),
        )


def _learn(workspace: Workspace, one: Request, said: Said) -> Result:
    review_of(workspace).approve(one.id, said.by, workspace.clock.now())
    return Result(f"learned: {one.id}")


def _not_learned(workspace: Workspace, one: Request, said: Said) -> Result:
    review_of(workspace).reject(one.id, said.note, said.by, workspace.clock.now())
    return Result(f"not learned: {one.id}")


def _breakers(_workspace: Workspace, look: ProjectSnapshot) -> Iterator[Request]:
    """Circuit breakers that stay open until somebody closes them."""
    for name, one in look.breakers.items():
        if one.is_isolated:
            question = "It is isolated: no call goes out before somebody closes it."
            options = yes_or_no(name, "close it", "leave it isolated", reason=False)
            yield Request(name, "breaker", name, question, str(one.generation), options)


def _close(workspace: Workspace, one: Request, _said: Said) -> Result:
    breakers_of(workspace)[one.id].close()
    return Result(f"closed: {one.id}")


def _merge(workspace: Workspace, one: Request, _said: Said) -> Result:
    from loki.jobs.signals.signal_handling import handle  # running is much to load

    known = {MERGE_REQUESTED: partial(signal_handling.merge_branch, allowed=True)}
    for handled in handle(workspace, known=known, only=lambda signal: signal.id == one.id):
        if handled.done:
            return Result(handled.told)
        raise UsageError(f"it is not merged: {handled.told}")
    raise UsageError(f"{one.id} waits no longer, or somebody acts on it just now")


def _clear(workspace: Workspace, one: Request, _said: Said) -> Result:
    signals = signals_of(workspace)
    for signal in signals.pending(MERGE_REQUESTED):
        if signal.id == one.id:
            signals.clear(signal)
    return Result(f"cleared: {one.title}")


KINDS: Mapping[RequestKind, Kind] = {
    "rule": RULE,
    "human_review": human_review_answers.HUMAN_REVIEW_KIND,
    "approval": task_requests.CRITERION,
    "command": task_requests.COMMAND,
    "stage": task_requests.STAGE,
    "escalation": task_requests.ESCALATION,
    "dead_letter": queue_requests.DEAD_LETTER,
    "recurring": queue_requests.RECURRING,
    "candidate": Kind("to be learned", _candidates, _learn, _not_learned, asks=True),
    "blocked": queue_requests.BLOCKED,
    "stuck": queue_requests.STUCK,
    "signal": Kind("signal", signal_handling.merge_requests, _merge, _clear),
    "stopped": STOPPED,
    "breaker": Kind("circuit breaker", _breakers, _close, request_kind.leave_numbers),
}
"""Every kind of request, the most urgent first."""


# --- the list -----------------------------------------------------------------------------------------


def requests(workspace: Workspace, look: ProjectSnapshot | None = None) -> list[Request]:
    """Everything that waits for a person, the most urgent kind first, the oldest first of each.

    Args:
        workspace: the project.
        look: at it; None: a new one.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> requests(Workspace(tempfile.mkdtemp()))
        []
    """
    look, left = look or ProjectSnapshot(workspace), request_kind.numbers_log(workspace).left()
    found: list[Request] = []
    for kind in KINDS.values():
        new = sorted(kind.find(workspace, look), key=lambda one: (one.since, one.id))
        new = [one for one in new if one.key not in left] if left else new
        # What has stopped because a person is asked something is asked about once.
        asked = {task for one in found for task in one.tasks}
        found += [one for one in new if not kind.yields or one.task_id not in asked]
    return found


def find(there: Sequence[Request], wanted: str) -> Request:
    """The request of an id, the beginning of one, or of a task of which one thing waits.

    Raises:
        UsageError: there is none, or several.
    """
    found = (
        [one for one in there if one.id == wanted]
        or [one for one in there if wanted and one.id.startswith(wanted)]
        or [one for one in there if wanted and wanted in one.tasks]
        or [one for one in there if wanted and any(t.startswith(wanted) for t in one.tasks)]
    )
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{one.id} ({one.title})" for one in found)
        raise UsageError(f"{wanted!r} stands for several: {listed}")
    listed = ", ".join(one.id for one in there)
    waits = f"there waits: {listed}" if listed else "nothing waits for you; `loki status` says more"
    raise UsageError(f"nothing of the id {wanted!r} waits; {waits}")


def find_shown(workspace: Workspace, there: Sequence[Request], wanted: str) -> Request:
    """The request of a number that was shown, or what `find` finds.

    Raises:
        UsageError: there is none, or several; or the number was another's.
    """
    if wanted.isdecimal() and not any(one.id == wanted for one in there):
        return request_kind.of_number(workspace, there, int(wanted))
    return find(there, wanted)


# --- answers ------------------------------------------------------------------------------------------


def approve(workspace: Workspace, one: Request, said: Said) -> Result:
    """Say yes.

    Args:
        workspace: the project.
        one: what waits.
        said: by whom, and what with it.

    Raises:
        UsageError: it waits no longer, or this is no answer to it.
    """
    if said.context and not one.takes_words:
        raise UsageError(
            f"{one.id} wants a yes or a no: expected no --context; `loki reject {one.id} --note "
            '"what is missing"` tells the agent'
        )
    return _answered(workspace, one, said, "approved", KINDS[one.kind].yes)


def reject(workspace: Workspace, one: Request, said: Said) -> Result:
    """Say no.

    Args:
        workspace: the project.
        one: what waits.
        said: by whom, and why; the agent is told.

    Raises:
        UsageError: it waits no longer, or a reason is missing.
    """
    return _answered(
        workspace, one, said, "aborted" if said.abort else "rejected", KINDS[one.kind].no
    )


def wants_why(one: Request) -> bool:
    """Whether a no to something has to say why: somebody is told, or looks it up later."""
    says = any(option.takes == "note" for option in one.options)
    return says and KINDS[one.kind].wants_why


def _answered(workspace: Workspace, one: Request, said: Said, how: str, does: Answer) -> Result:
    result = does(workspace, one, said)
    if one.kind != "human_review":  # whose decision stands there before anything follows from it
        request_kind.numbers_log(workspace).add(
            "answered",
            one.id,
            kind=one.kind,
            tasks=one.tasks,
            question=one.question,
            target=one.target,
            answer=how,
            by=said.by,
            note=said.words,
        )
    return _followed(workspace, one, result)


def _followed(workspace: Workspace, one: Request, result: Result) -> Result:
    """The result with what goes on now, unless something else of the task waits still."""
    if not (result.goes_on and one.task_id):
        return result
    left = [o for o in requests(workspace) if one.task_id in o.tasks and KINDS[o.kind].asks]
    if left:
        return replace(result, next=f"loki approve {left[0].id}")
    record = task_record.load(workspace.store, one.task_id)
    if run := record.run:
        return replace(result, next=f"loki pipeline resume {shlex.quote(run)}", run=run)
    if settled_reviews.is_queued(workspace, one.task_id):
        return _queued(workspace, one, result)
    if not record or record.status in DONE:
        return result
    command = f"loki resume {shlex.quote(one.task_id)}"
    return replace(result, next=command, tasks=(one.task_id,))


def _queued(workspace: Workspace, one: Request, result: Result) -> Result:
    if result.frees:
        settled_reviews.unblock(workspace, one.task_id)
    queued = queue_of(workspace).find(one.task_id)
    if queued is None or queued.blocked is None:
        return replace(result, next=queue_requests.GO_ON)
    unblock = f"loki queue unblock {shlex.quote(one.task_id)}"
    return replace(result, done=f"{result.done}; {one.task_id} stays blocked", next=unblock)
