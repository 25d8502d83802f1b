"""What the closed loop is told where a person has to decide before it goes on."""

from __future__ import annotations

from dataclasses import dataclass

from loki.action.agent_protocol import Proposal


@dataclass(frozen=True, slots=True)
class ReviewNeeded:
    """A person is asked; what was to be done next is not done.

    Attributes:
        review: id of the request.
        reason: what has to be decided, in a sentence or a few.
        proposal: what the agent answered, where it asks the question itself.
    """

    review: str
    reason: str
    proposal: Proposal | None = None
