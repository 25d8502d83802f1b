"""Something that waits for a person: what is asked, since when, and the commands that answer it."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

WaitingKind: TypeAlias = Literal[
    "rule",
    "human_review",
    "approval",
    "command",
    "stage",
    "escalation",
    "dead_letter",
    "recurring",
    "candidate",
    "blocked",
    "stuck",
    "signal",
    "stopped",
    "breaker",
]
"""What it is; the most urgent first."""

ASKS: frozenset[WaitingKind] = frozenset(
    {"human_review", "approval", "command", "stage", "escalation", "candidate"}
)
"""Kinds that ask something; the others have stopped, and go on when a person says so."""


LET_BEGIN = "let it begin"
"""The answer by which a stage of a pipeline begins."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One way to answer.

    Attributes:
        name: what it is, in a word or two.
        command: the command that does it, as it is typed.
    """

    name: str
    command: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits for a person.

    Attributes:
        id: by which it is answered.
        kind: what it is.
        title: of the task, or what it is about.
        asked: what has to be decided, in a sentence or a few.
        since: when it was asked, ISO 8601 UTC, or "".
        answers: how to answer, the likeliest first.
        task_id: the task, or "".
        until: when nobody is waited for any more, or "".
        page: that tells more, relative to ``.loki/``, or "".
        target: what an answer acts on, where that is not the id: a criterion, a run.
        others: ids of further tasks that the same answer is for.
        number: by which it can be answered, too; 0: it has none yet.
    """

    id: str
    kind: WaitingKind
    title: str
    asked: str
    since: str
    answers: tuple[Answer, ...]
    task_id: str = ""
    until: str = ""
    page: str = ""
    target: str = ""
    others: tuple[str, ...] = ()
    number: int = 0

    @property
    def takes_words(self) -> bool:
        """Whether whoever works on it is told what a person knows."""
        return any("--context" in answer.command for answer in self.answers)

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that it is about."""
        return tuple(filter(None, (self.task_id, *self.others)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def answers_of(
    id_: str, yes: str, no: str, more: str = "", *others: Answer, reason: str = ' --note "why"'
) -> tuple[Answer, ...]:
    """The answers to something: a yes, a yes with words where that is one, others, and a no.

    Args:
        id_: by which it is answered.
        yes, no: what they mean; more: what a yes with words does, or "".
        others: further ones.
        reason: how the reason of a no is said; "": it wants none.

    Example:
        >>> for one in answers_of("a b", "go on", "give up"):
        ...     print(one.command)
        loki approve 'a b'
        loki reject 'a b' --note "why"
    """
    word = shlex.quote(id_)
    with_words = (Answer(more, f'loki approve {word} --context "…"'),) if more else ()
    return (
        Answer(yes, f"loki approve {word}"),
        *with_words,
        *others,
        Answer(no, f"loki reject {word}{reason}"),
    )


def id_of(kind: WaitingKind, *words: str) -> str:
    """A short id for what has none of its own: the same for the same words.

    Example:
        >>> id_of("approval", "t", "the text reads well")
        'approval-63560a'
    """
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:6]}"
