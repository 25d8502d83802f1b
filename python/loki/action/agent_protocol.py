"""The seams to agents and models: a briefing in, a proposal out; a request in, an answer out.

`loki.Agent` is one storey higher: a briefing in, a proposal out; `loki.agents.model_agent` makes an agent
of a model. Retries, circuit breakers and the fallback chain are loki's business, so an adapter makes
one call over the wire and tells what came of it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from loki.action.changes.tree import Tree
from loki.base.tokens import TokenUsage
from loki.decision.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from loki.action.changes.change import Change
    from loki.action.changes.scratch_copy import ProjectCopies
    from loki.action.checks.check import Check, CheckResult
    from loki.action.task import TaskSpec
    from loki.memory.reflection import Reflection


# --- The seam to agents: a briefing in, a proposal out ------------------------------------------------

WORKS = ("full", "simpler", "minimal")
"""How much is asked for; what follows the last is a person."""


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


# --- The seam to models: a request in, an answer out --------------------------------------------------

Role: TypeAlias = Literal["user", "assistant"]

Ending: TypeAlias = Literal["end", "tool", "length", "refused"]
"""Why a model stopped: it was done, it called the tool, ``max_tokens`` was reached, it would not."""

MAX_TOKENS = 16_000
"""Tokens of an answer, at most, where nothing else is said. Chosen, not measured."""

TIMEOUT = 600.0
"""Seconds that a call may take, where nothing else is said. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """The form that an answer must have: the model calls it, or answers by its schema.

    Attributes:
        name: letters, digits, ``_`` and ``-``.
        description: when to call it and what for.
        schema: JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    Attributes:
        messages: the conversation, oldest first, the last one from the user.
        system: what stays the same from request to request; providers cache it.
        tool: the form of the answer; None: text.
        max_tokens: of the answer.
        timeout: seconds that the call may take.
        on_text: called with each piece of text as it arrives; what it raises ends the call.
        cancelled: set when the run is being stopped; the call then ends soon.
        task: id of the task that it is for, for the record of the call; "" where there is none.
        left: what may still be spent on it, all tries together.
        simpler: makes what to ask instead where nobody could answer this: less work. None: there is
            nothing less to ask for.
        work: full, simpler or minimal: how much of the work it asks for.
        retries: how often it may be asked again, at most; None: as often as is usual. Not all is
            worth a wait.
        wait: seconds to wait where no model may be asked before a time, at most; None: as is usual.
    """

    messages: tuple[Message, ...]
    system: str = ""
    tool: Tool | None = None
    max_tokens: int = MAX_TOKENS
    timeout: float = TIMEOUT
    on_text: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    task: str = ""
    left: Budget = UNLIMITED
    simpler: Callable[[], Request] | None = field(default=None, compare=False, repr=False)
    work: str = "full"
    retries: int | None = None
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Attributes:
        text: what it said.
        arguments: JSON text of the tool's arguments as it was sent, malformed or not; None: the
            tool was not called.
        ending: why it stopped.
        usage: tokens; of all calls that it took, where there were several.
        model: the model that answered, as the provider names it.
        request_id: what the provider's support asks for, or "".
        cost: US dollars where the provider says so; None: reckoned from the price table.
        work: full, simpler or minimal: how much of the work was asked for in the end.
    """

    text: str = ""
    arguments: str | None = None
    ending: Ending = "end"
    usage: TokenUsage = field(default_factory=TokenUsage)
    model: str = ""
    request_id: str = ""
    cost: float | None = None
    work: str = "full"


class LLM(Protocol):
    """A model at a provider; ``complete`` may be ``async``.

    ``complete`` makes one call, without retries of its own, and raises `loki.LLMError` where no
    answer came. Threads may share an object.

    Attributes:
        provider: as OpenTelemetry's GenAI conventions name it, like ``anthropic`` or ``openai``.
        model: as the provider names it.
        breaker: name of the circuit breaker that its calls pass, like ``api/anthropic/<model>``.
    """

    provider: str
    model: str
    breaker: str

    def complete(self, request: Request) -> Answer | Awaitable[Answer]:
        """The model's answer."""


# --- The seam to agents for text alone: a question in, words out; nothing in the project changes ------

ANSWER_TOKENS = 2_000
"""Tokens of an answer in words, thinking included. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent is asked to say something about; ``str(question)`` is the whole text.

    Attributes:
        text: Markdown.
        task_id: what it is about.
        root: the project's folder, absolute; only loki writes it.
        attempt: which attempt it is about, or which question, 1 or more.
        cancelled: set when whoever asks is being stopped; long work should look at it.
        instructions: what a model is told before, the same for all questions of a kind.
        max_tokens: of the answer, where a model gives it.
        sees_project: whether a program works in a copy of the project, which is thrown away with
            all that it did there; else it works in an empty folder.
        environment: variables that a program gets besides.
        retries: how often it is asked again where its service is out; None: as always.
    """

    text: str
    task_id: str
    root: Path
    attempt: int = 1
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    instructions: str = ""
    max_tokens: int = ANSWER_TOKENS
    sees_project: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    retries: int | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent answered in words.

    Attributes:
        text: its answer, or all that it printed; nothing in it is masked.
        model: name of the model, where there is one.
        tokens, cost: what it took, cost in US dollars, where known.
        changed: paths that it changed in its copy of the project; none of it came to the project.
    """

    text: str
    model: str = ""
    tokens: int | None = None
    cost: float | None = None
    changed: tuple[str, ...] = ()


@runtime_checkable
class Answering(Protocol):
    """An agent that can be asked for text alone; ``ask`` may be ``async``."""

    name: str

    def ask(self, question: Question) -> Said | Awaitable[Said]:
        """What it says; raises `loki.AgentError` where it could not answer."""
