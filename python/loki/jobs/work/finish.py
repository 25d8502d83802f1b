"""Where a task goes in the queue once it has been worked on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from loki.action.loop.resumption import DONE
from loki.base.time import isoformat
from loki.memory.attempt import DRIFT

if TYPE_CHECKING:
    from loki.jobs.queue.queue import Queue
    from loki.jobs.queue.queue_lists import LeasedTask
    from loki.memory.task_record import Outcome

Place: TypeAlias = Literal[
    "completed", "failed", "dead-letter", "blocked", "paused", "interrupted", "cancelled", "lost"
]
"""What became of a claim; paused, interrupted and blocked tasks are pending again, and so is a cancelled
one until whoever gave it up has put it away."""

EXIT_CODES: dict[Place, int] = {
    "completed": 0,
    "failed": 5,
    "dead-letter": 4,
    "blocked": 3,
    "paused": 6,
    "interrupted": 130,
    "cancelled": 0,
    "lost": 0,
}
"""What ``loki work`` ends with for it."""

CANNOT = "it cannot be worked on"
"""How the reason begins for which a task is blocked that could not even begin."""

SEVERITY = (130, 1, 4, 3, 5, 6, 0)
"""Exit codes, the most severe first: that of all that happened is the command's."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a task ended, and where it stands now.

    Attributes:
        task: its id; title: what was to be achieved.
        place: where it went.
        reason: why, one sentence.
        outcome: of the loop; None where it did not come to that.
        seconds: how long it was worked on.
    """

    task: str
    title: str
    place: Place
    reason: str = ""
    outcome: Outcome | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """JSON-able form."""
        return {
            "task_id": self.task,
            "title": self.title,
            "result": self.place,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "outcome": self.outcome.to_dict() if self.outcome else None,
        }


def finish(queue: Queue, claim: LeasedTask, outcome: Outcome) -> tuple[Place, str]:
    """Move a task to where its outcome belongs.

    Returns:
        Where that is, and why.

    Raises:
        StoreError: the queue cannot be written; the claim is lost with its worker.
    """
    reason, data = outcome.reason, outcome.to_dict()
    if outcome.status in DONE:
        return _if(queue.complete(claim, data), "completed"), reason
    if outcome.status == "failed" and outcome.trigger == "budget":
        return _if(queue.fail(claim, reason, data), "failed"), reason
    if outcome.status == "failed":
        entry = {"task_id": claim.id, "error_summary": reason, "outcome": data}
        queue.dead_letter(entry, claim)  # where its record was filed already, that one stays
        return _if(queue.where(claim.id) == "dead-letter", "dead-letter"), reason
    if outcome.status == "escalated":
        return give_back(queue, claim, "blocked", _asking(outcome))
    if outcome.status == "paused":
        until = f" (until {isoformat(outcome.retry_at)})" if outcome.retry_at else ""
        return give_back(
            queue, claim, "paused", f"{reason}{until}" if until not in reason else reason
        )
    return give_back(queue, claim, "interrupted", reason)


def give_back(
    queue: Queue,
    claim: LeasedTask,
    place: Literal["blocked", "paused", "interrupted", "cancelled"],
    reason: str,
) -> tuple[Place, str]:
    """Give a task back to the queue; ``blocked`` for nobody but a person.

    Raises:
        StoreError: the queue cannot be written; the claim is lost with its worker.
    """
    went = queue.release(claim, blocked=reason if place == "blocked" else None)
    if went == "dead-letter":
        return "dead-letter", f"too many attempts over its life; at last: {reason}"
    return _if(went is not None, place), reason


def _asking(outcome: Outcome) -> str:
    """What a person has to know who finds the task blocked."""
    page = f"; read .loki/{outcome.page}" if outcome.page else ""
    command = f"approve {outcome.review}" if outcome.review else f"resume {outcome.task_id}"
    if outcome.trigger == DRIFT or outcome.awaiting:  # the one thing that waits for the task
        command = f"approve {outcome.task_id}"
    return f"{outcome.reason}{page}; answer it with `loki {command}`"


def _if(holds: bool, place: Place) -> Place:
    return place if holds else "lost"
