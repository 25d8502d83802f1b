"""The seam to agents: a briefing in, a proposal out."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from loki.action.changes.tree import Tree
from loki.decision.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from loki.action.changes.change import Change
    from loki.action.changes.project_copies import ProjectCopies
    from loki.action.checks.check import Check, CheckResult
    from loki.action.task import TaskSpec
    from loki.memory.reflection import Reflection


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an agent is told before an attempt; ``str(briefing)`` is the whole text.

    Attributes:
        text: the task first, then the signs that bear on it, what failed and what to try: Markdown.
        task_id: the task it is for.
        attempt: number of the attempt it is for, 1 or more.
        root: the project's folder, absolute. Agents read it; only loki writes it.
        cancelled: set when the run is being stopped; long work should look at it.
        left: what the run may still spend.
        simpler: makes what to ask instead where nobody could answer this: less work. None: there is
            nothing less to ask for.
        work: full, simpler or minimal: how much of the work it asks for.
        wait: seconds to wait where nobody may be asked before a time, at most; None: as is usual.
        tree: the project's files when this was made; None: nobody has looked.
        copies: copies of the project to work in; None: whoever wants one makes it.
        is_fresh: the context was cleared: an agent that keeps a conversation begins another.
        draft: what was proposed last and refused: nothing of it is in the project, and this attempt
            begins with it; None: it begins with the project as it is.
    """

    text: str
    task_id: str
    attempt: int
    root: Path
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    left: Budget = UNLIMITED
    simpler: Callable[[], Briefing] | None = field(default=None, compare=False, repr=False)
    work: str = "full"
    is_fresh: bool = False
    draft: Change | None = field(default=None, compare=False, repr=False)
    wait: float | None = None
    tree: Tree | None = field(default=None, compare=False, repr=False)
    copies: ProjectCopies | None = field(default=None, compare=False, repr=False)

    def seen(self, last: Tree | None = None) -> Tree:
        """The project's files as they are.

        Args:
            last: them, as whoever asks has seen them last.
        """
        if self.tree is not None and self.tree.is_recent:
            return self.tree
        return Tree.scan(self.root, self.tree or last)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Proposal:
    """An agent's answer.

    Attributes:
        change: what to do; an empty change says "nothing more to change".
        description: what it did and why, one line or a few.
        confidence: 0 to 1, or None where the agent does not say.
        agent: name of the agent.
        model: name of the model, where there is one.
        tokens: tokens used, where known.
        cost: money spent in US dollars, where known.
        output: all that it printed, where it is a program.
        is_described: the description is loki's, as whoever made it said nothing.
        question: what a person has to answer before it can go on; the change is not made then.
        afresh: it stands for itself; else what was refused before is part of it, where its change
            does not say otherwise of a file.
    """

    change: Change
    description: str = ""
    confidence: float | None = None
    agent: str = ""
    model: str | None = None
    tokens: int | None = None
    cost: float | None = None
    output: str = ""
    is_described: bool = False
    question: str = ""
    afresh: bool = False


@dataclass(frozen=True, slots=True)
class ReflectionRequest:
    """What an agent is asked after an attempt that failed; ``str(request)`` is the whole text.

    Attributes:
        text: the task, what was tried, what failed, and the question: Markdown.
        task_id: the task.
        attempt: number of the attempt, 1 or more.
        root: the project's folder, absolute; only loki writes it.
        cancelled: set when the run is being stopped; long work should look at it.
    """

    text: str
    task_id: str
    attempt: int
    root: Path
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


class Reflective(Protocol):
    """An agent that can say what it thinks went wrong; ``reflect`` may be ``async``.

    Optional. Where an agent has no such method, or it raises, the facts speak.
    """

    def reflect(self, request: ReflectionRequest) -> str | Reflection | Awaitable[str | Reflection]:
        """A short note on an attempt that failed: why, and what to try instead."""


class Agent(Protocol):
    """Anything that turns a briefing into a proposal; ``propose`` may be ``async``.

    ``propose`` raises `loki.AgentError` where it could not answer; any other exception is treated
    alike. It must not touch the project itself. An agent may have a ``breaker``, the name of the
    circuit breaker that its calls pass, such as ``api/claude``; else that is ``agent/<name>``.

    One that waits, asks again and passes circuit breakers by itself says so with ``is_resilient``,
    True: the loop then does none of it a second time. What it raises in the end is final, a
    `loki.BreakerOpen` where nobody can be asked before a time.
    """

    name: str

    def propose(self, briefing: Briefing) -> Proposal | Change | Awaitable[Proposal | Change]:
        """The agent's answer to a briefing."""


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What a reviewer is asked.

    Attributes:
        criterion: what has to hold; its ``description`` is the text.
        task: the task that it belongs to.
        diff: what the task has changed, in the unified format; secrets masked.
        results: what the task's other checks said.
        root: the project's folder, absolute; the change is in it. Nobody but loki writes it.
        cancelled: set when the run is being stopped.
    """

    criterion: Check
    task: TaskSpec
    diff: str
    results: tuple[CheckResult, ...]
    root: Path
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reviewer's answer.

    Attributes:
        approved: the criterion holds; anything but True means that it does not.
        reason: why, in a sentence or a few; the next attempt is told.
    """

    approved: bool
    reason: str = ""


class Reviewer(Protocol):
    """Judges a criterion that no command can check; ``review`` may be ``async``.

    ``review`` raises `loki.AgentError` where it could not answer. A reviewer may have a ``breaker``,
    as an agent does.
    """

    name: str

    def review(self, request: ReviewRequest) -> Verdict | Awaitable[Verdict]:
        """Whether the criterion holds."""
