"""Signals in a proposal: files below ``.loki/signals/`` are given, not written to the project.

What agents may give says `loki.people.agent_signal`; what they may not stays in the change, and is
refused there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loki.action.changes.change import Edit
from loki.base.error import LokiError
from loki.base.log import log_event, quoted
from loki.people import agent_signal
from loki.people.human_review_store import HumanReviews
from loki.people.signal import HUMAN_REVIEW_NEEDED

if TYPE_CHECKING:
    from loki.action.agent_protocol import Proposal
    from loki.action.task import TaskSpec
    from loki.people.signals import Signals


def emit_signals(
    proposal: Proposal, task: TaskSpec, signals: Signals
) -> tuple[Proposal, tuple[str, ...]]:
    """Give the signals of a proposal; from whom they come and for which task is said by loki.

    Args:
        proposal: what an agent answered.
        task: what it worked on.
        signals: where they go.

    Returns:
        The proposal without them, and the names of what was given.
    """
    kept: list[Edit] = []
    found: list[str] = []
    for edit in proposal.change.edits:
        if edit.after is None or not _is_signal(edit):
            kept.append(edit)
            continue
        given = agent_signal.emitted_signals(
            edit.path, edit.after, agent=proposal.agent, task_id=task.id, goal=task.title
        )
        for one in given:
            try:
                found.append(_give(one, signals))
            except LokiError as error:
                log_event(task.id, f"signal {one.kind} could not be given: {error}", warning=True)
    if len(kept) == len(proposal.change.edits):
        return proposal, ()
    for label in found:
        log_event(task.id, f"signal={quoted(label)} agent={quoted(proposal.agent or 'caller')}")
    change = replace(proposal.change, edits=tuple(kept))
    return replace(proposal, change=change), tuple(found)


def _give(given: agent_signal.EmittedSignal, signals: Signals) -> str:
    data = given.data
    if given.kind != HUMAN_REVIEW_NEEDED:
        return signals.emit(given.kind, given.name, data).label
    # Asked once more by the next attempt, it still is one question.
    asked = HumanReviews(signals.store, signals.clock).ask(
        reason=data["reason"],
        task_id=data["task_id"],
        context=data.get("context", ""),
        severity=data["severity"],
        agent=data["agent"],
        blocking=data["blocking"],
        alternatives=data.get("alternatives_considered", ()),
    )
    return f"{given.kind} {asked.id}"


def _is_signal(edit: Edit) -> bool:
    return (
        edit.path.startswith(agent_signal.PREFIX)
        and edit.mode != "symlink"
        and edit.size == len(edit.after or b"")
        and not agent_signal.why_refused(edit.path, edit.after)
    )
