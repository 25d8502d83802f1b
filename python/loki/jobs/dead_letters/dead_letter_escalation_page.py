"""The page by which a review asks a person about a dead letter."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from loki.jobs.dead_letters.fact_finder import FactFinder
from loki.jobs.queue.project_queue import queue_of
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import PastAttempt
from loki.people.escalation import Escalation, options
from loki.people.request import Option

if TYPE_CHECKING:
    from loki.jobs.dead_letters.dead_letters import Reviewed
    from loki.workspace import Workspace


def escalation(workspace: Workspace, looked: Reviewed) -> Escalation:
    """What a person is asked about a dead letter that shows a trigger.

    Args:
        workspace: the project.
        looked: the dead letter, and what was found about it.
    """
    letter, decision = looked.letter, looked.decision
    finder = FactFinder(workspace, queue_of(workspace).lists())
    life = finder.life(letter.task_id) or list(map(_told, letter.attempts))
    others = decision.trigger.others if decision.trigger else ()
    return Escalation(
        letter.task_id,
        letter.title,
        decision.rule,
        decision.reason,
        looked.facts.case.failure,
        life,
        tuple(dict.fromkeys(path for one in life for path in one.files_modified)),
        others=others,
        evidence=decision.evidence,
        ways=ways(letter.task_id, tuple(one for one in others if one in finder.letters))
        + tuple(_go_on(one) for one in others if one not in finder.letters),
        failures=letter.failure_count,
    )


def ways(task_id: str, others: tuple[str, ...] = ()) -> tuple[Option, ...]:
    """How a person can go on with a dead letter, with what speaks for and against each.

    Args:
        task_id: the task.
        others: further dead letters with the same root cause.

    Example:
        >>> ways("fix-login")[0].command
        'loki dead-letters retry fix-login --fixed-by COMMIT'
    """
    ids = shlex.join([task_id, *others])
    retry, abandon = f"loki dead-letters retry {ids}", f"loki dead-letters abandon {ids}"
    return (
        Option(
            "Mend the cause, then retry",
            f"{retry} --fixed-by COMMIT",
            "Costs your time; most certain where rights, credentials, data or a design are concerned. "
            "The retries begin anew, with everything on record that was tried.",
        ),
        Option(
            "Retry with another approach",
            f'{retry} --approach "…"',
            "Cheapest where you know what the agent does not. It stands in the task's description; may "
            "end here again where knowledge was not what is missing.",
        ),
        Option(
            "Reduce the scope",
            f'loki dead-letters retry {shlex.quote(task_id)} --simpler "…"',
            "Gets you a part soon: a new, smaller task is queued that names this one. What it leaves "
            "out is not done; this task stays here until the smaller one is completed.",
        ),
        Option(
            "Abandon",
            f'{abandon} --reason "…"',
            "Costs nothing more. The task moves to abandoned.json with your reason; its attempts, "
            "pages and edits stay, and `loki undo` restores the files.",
        ),
    )


def _go_on(task_id: str) -> Option:
    """A task that stopped for the same reason, and is no dead letter."""
    by_hand, *_ = options(task_id)
    return Option(f"Go on with {task_id}", by_hand.command, "It stopped for the same reason.")


def _told(one: PastAttempt) -> Attempt:
    """An attempt that another program told of, as loki's own pages show attempts."""
    return Attempt(
        one.attempt_number,
        one.timestamp,
        one.approach,
        "failed",
        one.error_message.partition("\n")[0][:300] or one.error_type,
        agent=one.agent_id,
    )
