"""A handoff: what a session says to the next one, a page in ``.loki/memory/handoffs/``; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loki.memory.front_matter import front_matter
from loki.memory.quote import quoted, whole

FOLDER = "memory/handoffs/"


@dataclass(frozen=True, slots=True)
class Handoff:
    """What one session hands to the next.

    Attributes:
        task_id, goal: the task, its title.
        at: when, ISO 8601 UTC.
        why: why the session ended: a context clear, or how the task stopped.
        by: who worked on it, or "".
        drifts: how the work left the task, each a sentence.
        last: what was done last, and what came of it.
        next_step: what to do now.
    """

    task_id: str
    goal: str
    at: str
    why: str
    by: str = ""
    drifts: Sequence[str] = ()
    last: str = ""
    next_step: str = ""

    @property
    def document(self) -> str:
        """Name of its page: sorted by it, the newest is the last of its task."""
        at = "".join(c for c in self.at if c.isalnum())
        return f"{FOLDER}{at}-{self.task_id}.md"


def render(handoff: Handoff) -> str:
    """The page of a handoff; whatever its fields hold, they stay data.

    Example:
        >>> page = render(Handoff("t1", "fix it", "2026-04-04T12:00:00Z", "interrupted", last="a.py"))
        >>> print(page.split("---")[2].strip())
        # Handoff
        <BLANKLINE>
        ```text
        fix it
        ```
        <BLANKLINE>
        - Why the session ended: `interrupted`
        - Done last: `a.py`
    """
    head = front_matter(
        {
            "entity_name": f"memory.handoffs.{handoff.task_id}",
            "namespace": "memory.handoffs",
            "category": "handoff",
            "task_id": handoff.task_id,
            "created_at": handoff.at,
            "agent": handoff.by or None,
            "tags": ["handoff"],
        }
    )
    rows = [
        ("Why the session ended", handoff.why),
        *(("Left the task", drift) for drift in handoff.drifts),
        ("Done last", handoff.last),
        ("Next", handoff.next_step),
    ]
    lines = "\n".join(f"- {name}: {quoted(text, 300)}" for name, text in rows if text)
    return f"{head}\n# Handoff\n\n{whole(handoff.goal)}\n\n{lines}\n"
