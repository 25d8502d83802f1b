"""How a task comes among the dead letters, and out of them again when it succeeds after all."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loki.base.error import StoreError, UsageError
from loki.dead_letters.facts import FactFinder
from loki.memory import task_record
from loki.memory.dead_letter import DeadLetter
from loki.memory.dead_letters import DeadLetters
from loki.people.escalation_trigger import triggers
from loki.queueing import queue_of
from loki.recurrence import dead_letter, dead_letter_review, queued_form
from loki.recurrence.dead_letter import Letter
from loki.recurrence.queued import QueuedTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.action.task import Outcome, TaskSpec
    from loki.workspace import Workspace

logger = logging.getLogger("loki")

SUMMARY = 300
"""Characters of an ``error_summary``; chosen, not measured."""


def listener(
    workspace: Workspace, spec: TaskSpec, agent: Callable[[], Mapping[str, Any] | None]
) -> Callable[[Outcome, DeadLetter | None], None]:
    """What a task's recorder calls before it keeps how the task ended.

    Args:
        workspace: the project.
        spec: the task.
        agent: tells what is known of who worked on it.

    A stage of a pipeline is no task of the queue: its run is what is tried again.
    """

    def ended(outcome: Outcome, letter: DeadLetter | None) -> None:
        if spec.run:
            return
        try:
            if letter is not None:
                bury(workspace, spec, letter, agent())
            elif outcome.status == "success":
                queue_of(workspace).achieve(spec.id, outcome.to_dict())
        except StoreError as error:  # the loop goes on; a review adds what is missing
            logger.warning(
                "Could not persist: %s. The queue does not know how %s ended.", error, spec.id
            )

    return ended


def bury(
    workspace: Workspace, spec: TaskSpec, letter: DeadLetter, agent: Mapping[str, Any] | None
) -> None:
    """Put a task whose loop is exhausted among the dead letters; twice is as good as once.

    Raises:
        StoreError: it could not be kept.
    """
    from loki.dead_letters.reviewing import Reviews

    queue = queue_of(workspace)
    asked = queue.find(spec.id) or _asked(spec, agent)
    summary = str(letter.failure)[:SUMMARY]
    finder = FactFinder(workspace, queue.lists())
    queue.bury(_entry(finder, asked, summary, letter.blocked_at))
    Reviews(workspace).escalate(spec.id)


def complete(workspace: Workspace) -> list[str]:
    """Add what the list of dead letters lacks: tasks given up earlier, and attempts of others.

    Returns:
        Ids of the tasks that were added or completed.

    Raises:
        StoreError: it could not be kept.
    """
    queue = queue_of(workspace)
    finder = FactFinder(workspace, queue.lists())
    done = []
    for record in DeadLetters(workspace.store, workspace.patterns).records():
        kept = task_record.load(workspace.store, record.task)
        if finder.where(record.task) is None and _was_given_up(kept):
            asked = _asked_of(kept, record.task, record.title)
            summary = (record.message or record.signature)[:SUMMARY]
            queue.bury(_entry(finder, asked, summary, record.at))
            done.append(record.task)
    for id_, letter in finder.letters.items():
        if not letter.attempts and finder.life(id_):
            queue.bury(_entry(finder, letter.task, letter.error_summary, letter.last_failure))
            done.append(id_)
        elif not letter.recovery_strategy:
            queue.bury({"task_id": id_, "recovery_strategy": _strategy(finder, letter)})
            done.append(id_)
    return done


def _entry(finder: FactFinder, task: QueuedTask, summary: str, at: str) -> dict[str, Any]:
    """The whole entry of a task; ``task_data`` where the queue does not know it."""
    made = dead_letter.entry(task, finder.life(task.id), summary, at or finder.now, strategy="")
    letter = replace(Letter.of(replace(task, raw={**task.raw, **made})), task=task)
    made["recovery_strategy"] = _strategy(finder, letter)
    if finder.where(task.id) is None:
        data = queued_form.write(task)
        made["task_data"] = {name: value for name, value in data.items() if name != "id"}
    return made


def _strategy(finder: FactFinder, letter: Letter) -> str:
    facts = finder.facts(letter)
    last = letter.attempts[-1].error_type if letter.attempts else dead_letter.VALIDATION
    return dead_letter.strategy_for(
        last,
        waits=any(one.state != "available" for one in facts.dependencies),
        is_hopeless=dead_letter_review.is_hopeless(letter, facts.failures),
        needs_person=bool(triggers(facts.case)),
    )


def _was_given_up(record: Mapping[str, Any]) -> bool:
    outcome = record.get("outcome") or {}
    is_dead = outcome.get("status") == "failed" and outcome.get("trigger") not in {
        "budget",
        "aborted",
    }
    return is_dead and not record.get("run")


def _asked_of(record: Mapping[str, Any], task_id: str, title: str) -> QueuedTask:
    from loki.action import specification

    try:
        return _asked(specification.from_dict(record), record.get("agent"))
    except UsageError:  # a check held a secret: whoever retries it says its checks again
        return QueuedTask(task_id, title or task_id)


def _asked(spec: TaskSpec, agent: Mapping[str, Any] | None) -> QueuedTask:
    """A task that was never queued, as the queue would have it."""
    from loki.action.check import EVIDENCE

    said = agent or {}
    words: Sequence[str] = said.get("command") or ()
    command = "" if said.get("masked") or said.get("preset") else shlex.join(map(str, words))
    known = said.get("preset") or said.get("agent") or ""
    return QueuedTask(
        spec.id,
        spec.title,
        kind=spec.kind,
        complexity=spec.complexity,
        checks=tuple(check.shown for check in spec.checks if check.name != EVIDENCE),
        scope=spec.scope,
        agent="" if command else str(known),
        agent_command=command,
        max_attempts=None if spec.max_retries is None else spec.max_retries + 1,
    )
