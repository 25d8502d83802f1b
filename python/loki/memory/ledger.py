"""The ledger of a task: where it stands, for whoever goes on with it without having been there.

A page of Markdown in ``.loki/memory/ledgers/``, one a task, made of what is on record; pure. What other
programs wrote there is read by `loki.memory.session_context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loki.base.markdown import inline
from loki.memory.attempt_summary import Approach
from loki.memory.front_matter import front_matter
from loki.memory.quote import one_line, quoted, whole
from loki.memory.reflection import Reflection
from loki.memory.task_progress import TaskProgress

FOLDER = "memory/ledgers/"

FILES = 20
"""Files that a ledger names; the others are counted. Chosen, not measured."""

DONE = frozenset({"success", "unverified"})
"""States of a task that nobody has to go on with."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where a task stands.

    Attributes:
        task_id, goal: the task, its title.
        state: running, or how it ended last; reason: why, a sentence.
        updated_at: ISO 8601 UTC.
        said: what people decided or added.
        decisions: why which strategy was chosen, oldest first.
        tried: earlier approaches, each with what came of it.
        attempts: how many there were.
        files: that differ from before the task.
        questions: what is not known.
        next_step: what to do now.
    """

    task_id: str
    goal: str
    state: str = "running"
    reason: str = ""
    updated_at: str = ""
    said: Sequence[str] = ()
    decisions: Sequence[str] = ()
    tried: Sequence[Approach] = ()
    attempts: int = 0
    files: Sequence[str] = ()
    questions: Sequence[str] = ()
    next_step: str = ""

    @property
    def document(self) -> str:
        """Name of its page."""
        return f"{FOLDER}{self.task_id}.md"


def of(
    task_id: str,
    goal: str,
    progress: TaskProgress,
    *,
    state: str = "running",
    reason: str = "",
    at: str = "",
    said: Sequence[str] = (),
    files: Sequence[str] = (),
    reflections: Sequence[Reflection] = (),
) -> Ledger:
    """A ledger from what is on record.

    Args:
        task_id, goal, state, reason, said, files: as of `Ledger`.
        progress: the attempts of the task's life, summed up.
        at: when it is written, ISO 8601 UTC.
        reflections: notes on the last attempts, oldest first.
    """
    last = reflections[-1] if reflections else None
    questions = (
        [f"Not mended yet: {progress.error}"] if progress.error and state not in DONE else []
    )
    if last is not None and last.why:
        questions.append(f"Likely why, unproven: {last.why}")
    approaches = progress.tried.approaches
    otherwise = f"go about it by {progress.strategy}" if progress.strategy else ""
    return Ledger(
        task_id,
        goal,
        state,
        reason,
        at,
        tuple(said),
        progress.decisions[-len(approaches) or None :],
        approaches,
        progress.tried.attempts,
        tuple(files),
        tuple(questions),
        (last.instead if last else "") or otherwise,
    )


def render(ledger: Ledger) -> str:
    """The page of a ledger; whatever its fields hold, they stay data.

    Example:
        >>> print(render(Ledger("t1", "fix the login", next_step="look at the session")))
        ---
        entity_name: memory.ledgers.t1
        namespace: memory.ledgers
        category: ledger
        task_id: t1
        state: running
        updated_at: null
        tags:
        - ledger
        ---
        <BLANKLINE>
        # Ledger
        <BLANKLINE>
        ## Goal
        <BLANKLINE>
        ```text
        fix the login
        ```
        <BLANKLINE>
        ## State
        <BLANKLINE>
        running; 0 attempts so far.
        <BLANKLINE>
        ## Next step
        <BLANKLINE>
        - `look at the session`
        <BLANKLINE>
    """
    head = front_matter(
        {
            "entity_name": f"memory.ledgers.{ledger.task_id}",
            "namespace": "memory.ledgers",
            "category": "ledger",
            "task_id": ledger.task_id,
            "state": ledger.state,
            "updated_at": ledger.updated_at or None,
            "tags": ["ledger"],
        }
    )
    why = f" Why: {quoted(ledger.reason)}." if ledger.reason else ""
    more = [f"and {len(ledger.files) - FILES} more"] if len(ledger.files) > FILES else []
    parts = ["# Ledger", f"## Goal\n\n{whole(ledger.goal)}"]
    parts.append(f"## State\n\n{inline(ledger.state)}; {ledger.attempts} attempts so far.{why}")
    for title, lines in (
        ("What people said", ledger.said),
        ("Decisions", ledger.decisions),
        ("Tried", tuple(map(_approach, ledger.tried))),
        ("Files changed", (*ledger.files[:FILES], *more)),
        ("Open questions", ledger.questions),
        ("Next step", (ledger.next_step,) if ledger.next_step else ()),
    ):
        if lines:
            parts.append(f"## {title}\n\n" + "\n".join(f"- {quoted(line, 300)}" for line in lines))
    return f"{head}\n" + "\n\n".join(parts) + "\n"


def _approach(one: Approach) -> str:
    times = f" ({one.times} times)" if one.times > 1 else ""
    what = one_line(one.action, 150) or "nothing was proposed"
    return f"attempt {one.attempt}{times}: {what} → {one_line(one.error, 100)}"
