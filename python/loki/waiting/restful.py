"""A person's yes or no by kind, where nothing else follows: of what has stopped, of rules and candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.people.human_review import Standing
from loki.people.signal import MERGE_REQUESTED
from loki.people.waiting import Waiting, WaitingKind
from loki.queueing import queue_of
from loki.recurrence.dead_letter import Letter
from loki.recurrence.dead_letter_review import Answers, Decision
from loki.waiting import numbers, reviews, rules, stuck

if TYPE_CHECKING:
    from loki.workspace import Workspace

Way = Callable[["Workspace", Waiting, str, str], str]
"""From a project, what waits, who answers and their words, to what was done, a sentence."""


def approve(workspace: Workspace, one: Waiting, by: str, words: str) -> str:
    """Say yes.

    Args:
        workspace: the project.
        one: what waits.
        by: who says so; words: theirs, or "".

    Returns:
        What was done, a sentence; "" where it goes on where it stopped, which is the caller's.

    Raises:
        UsageError: it cannot be answered so now; says why.
    """
    return KINDS[one.kind][0](workspace, one, by, words)


def reject(workspace: Workspace, one: Waiting, by: str, why: str) -> str:
    """Say no; as `approve`."""
    return KINDS[one.kind][1](workspace, one, by, why)


# --- tasks ------------------------------------------------------------------------------------------


def _tell(workspace: Workspace, one: Waiting, by: str, words: str) -> None:
    """Keep what a person knows with the task, for every briefing of it."""
    if words.strip():
        here = reviews.of(workspace, strict=True)
        asked = here.ask(reason=one.kind, task_id=one.task_id, context=one.asked, blocking=False)
        here.decide(asked.id, by=by, note=words, answer=Standing.CLARIFIED)
        here.told(asked.id)
        here.done(asked.id)


def _unblock(workspace: Workspace, one: Waiting, by: str, words: str) -> str:
    _tell(workspace, one, by, words)
    queue_of(workspace).unblock(one.task_id)
    return f"may go on: {one.task_id}"


def _again(workspace: Workspace, one: Waiting, by: str, words: str) -> str:
    rule, why = ("new_approach", "a new approach") if words else ("person", "a person wants it")
    return _decided(workspace, one, by, Decision("retry", rule, why, approach=words))


def _abandon(workspace: Workspace, one: Waiting, by: str, why: str) -> str:
    return _decided(workspace, one, by, Decision("abandon", "person", why))


def _decided(workspace: Workspace, one: Waiting, by: str, decision: Decision) -> str:
    from loki.dead_letters.reviewing import Reviews

    task = queue_of(workspace).find(one.id)
    if task is None:
        raise UsageError(f"no task {one.id!r} in the queue: `loki queue` lists them")
    Reviews(workspace, by=by).decided(Letter.of(task), Answers(by=by), decision)
    return f"{'queued again' if decision.action == 'retry' else 'abandoned'}: {one.id}"


def _give_run_up(workspace: Workspace, run: str, by: str, why: str) -> str:
    from loki.pipeline.giving_up import give_up

    if conflicts := give_up(workspace, run, by, why).conflicts:
        listing = "; ".join(f"{one.path}: {one.reason}" for one in conflicts)
        raise UsageError(
            f"run {run} stays open, because files changed since ({listing}); "
            f"`loki cancel {run} --force` overwrites them"
        )
    return f"given up: {run}; its files are as they were"


def _give_up(workspace: Workspace, one: Waiting, by: str, why: str) -> str:
    if not one.task_id:
        return _give_run_up(workspace, one.target, by, why)
    reviews.give_up(workspace, one.task_id, why)
    return f"given up: {one.task_id}; its files are as they were"


def _without(workspace: Workspace, one: Waiting, _by: str, _words: str) -> str:
    return stuck.let_begin(workspace, one)


def _goes_on(_workspace: Workspace, _one: Waiting, _by: str, _words: str) -> str:
    return ""


# --- recurring tasks, signals, breakers ---------------------------------------------------------------


def _recur(workspace: Workspace, one: Waiting, _by: str, _words: str) -> str:
    from loki.recurrence import outcome
    from loki.recurrence.recurring_tasks import RecurringTasks
    from loki.scheduling import knobs

    tasks, now, known = RecurringTasks(workspace.store), workspace.clock.now(), knobs(workspace)
    task = tasks.load(one.id)  # says what is wrong with one that cannot be used
    is_held = task.paused is not None or task.stopped is not None
    change = outcome.resumed if is_held else outcome.without_failures
    tasks.update(one.id, lambda there: change(there, now, known))
    tasks.log(now, "resumed" if is_held else "edited", one.id, by="person")
    return f"resumed: {one.id}" if is_held else f"its failures are forgiven: {one.id}"


def _no_more(workspace: Workspace, one: Waiting, by: str, why: str) -> str:
    from loki.recurrence import outcome
    from loki.recurrence.recurring import RecurringTask
    from loki.recurrence.recurring_tasks import RecurringTasks

    tasks, now = RecurringTasks(workspace.store), workspace.clock.now()
    task = tasks.find(one.id)
    if isinstance(task, RecurringTask) and task.stopped is None:
        if task.paused is None:  # a setting that a triage recommends
            return _leave(workspace, one, by, why)
        tasks.update(one.id, lambda there: outcome.paused(there, now, why, by))
        return f"it stays paused: {one.id}"
    tasks.remove(one.id)
    tasks.log(now, "removed", one.id, by="person", reason=why)
    return f"removed: {one.id}; what is kept of its runs stays"


def _merge(workspace: Workspace, one: Waiting, _by: str, _words: str) -> str:
    from loki.signalling.handling import handle
    from loki.signalling.merging import merge

    known = {MERGE_REQUESTED: partial(merge, allowed=True)}
    for handled in handle(workspace, known=known, only=lambda signal: signal.id == one.id):
        if handled.done:
            return handled.told
        raise UsageError(f"it is not merged: {handled.told}")
    raise UsageError(f"{one.id} waits no longer, or somebody acts on it just now")


def _clear(workspace: Workspace, one: Waiting, _by: str, _why: str) -> str:
    from loki.signalling import signals_of

    signals = signals_of(workspace)
    for signal in signals.pending(MERGE_REQUESTED):
        if signal.id == one.id:
            signals.clear(signal)
    return f"cleared: {one.title}"


def _close(workspace: Workspace, one: Waiting, _by: str, _words: str) -> str:
    workspace.breakers()[one.id].close()
    return f"closed: {one.id}"


def _leave(workspace: Workspace, one: Waiting, _by: str, _why: str) -> str:
    numbers.leave(workspace, one)
    return f"left as it is: {one.id}; it is shown again once something about it has changed"


def _learn(workspace: Workspace, one: Waiting, by: str, _words: str) -> str:
    workspace.review().approve(one.id, by, workspace.clock.now())
    return f"learned: {one.id}"


def _not_learned(workspace: Workspace, one: Waiting, by: str, why: str) -> str:
    workspace.review().reject(one.id, why, by, workspace.clock.now())
    return f"not learned: {one.id}"


def _accept(workspace: Workspace, one: Waiting, by: str, _words: str) -> str:
    return rules.answer(workspace, one.id, by, accepted=True)


def _refuse(workspace: Workspace, one: Waiting, by: str, _why: str) -> str:
    return rules.answer(workspace, one.id, by, accepted=False)


KINDS: Mapping[WaitingKind, tuple[Way, Way]] = {
    "rule": (_accept, _refuse),
    "candidate": (_learn, _not_learned),
    "dead_letter": (_again, _abandon),
    "recurring": (_recur, _no_more),
    "blocked": (_unblock, _give_up),
    "stuck": (_without, _give_up),
    "signal": (_merge, _clear),
    "stopped": (_goes_on, _give_up),
    "breaker": (_close, _leave),
}
"""By kind: what a yes does, what a no does."""
