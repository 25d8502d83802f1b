"""Something that waits for a person: what is asked, since when, and the commands that answer it."""

from __future__ import annotations

import hashlib
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

BY_ID: frozenset[WaitingKind] = frozenset(
    {"rule", "human_review", "approval", "command", "stage", "escalation", "candidate"}
)
"""Kinds that ``loki approve`` and ``loki reject`` answer."""


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

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that it is about."""
        return tuple(filter(None, (self.task_id, *self.others)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def id_of(kind: WaitingKind, *words: str) -> str:
    """A short id for what has none of its own: the same for the same words.

    Example:
        >>> id_of("approval", "t", "the text reads well")
        'approval-63560a'
    """
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:6]}"
