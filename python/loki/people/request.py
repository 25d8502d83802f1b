"""What waits for a person: one form for whatever asks, with the commands that answer it; pure.

What kinds there are, and what an answer to each does, is `loki.jobs.inbox.inbox`. Why it is so:
``docs/design/human-review.md``.
"""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

RequestKind: TypeAlias = Literal[
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
"""What asks."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer.

    Attributes:
        name: what it is, in a word or two.
        command: the command that does it, as it is typed.
        follows: what comes of it, and what speaks for and against it; "" where the name says it.
    """

    name: str
    command: str
    follows: str = ""

    @property
    def verb(self) -> str:
        """approve or reject; "" for a command of another kind."""
        words = self.command.split(maxsplit=2)
        return words[1] if words[:1] == ["loki"] and words[1] in {"approve", "reject"} else ""

    @property
    def takes(self) -> str:
        """What words with it are: context for the agent, a note why; "" where it takes none."""
        return next((word for word in ("context", "note") if f"--{word}" in self.command), "")

    @property
    def aborts(self) -> bool:
        """Whether its task is given up."""
        return "--abort" in self.command

    def typed(self, id_: str, number: int) -> str:
        """The command as a person types it: by the number, the words without their option.

        Args:
            id_: of the request.
            number: of the request; 0: it has none.

        Example:
            >>> Option("no", 'loki reject t --note "why"').typed("t", 3)
            'loki reject 3 "why"'
        """
        long = f"loki {self.verb} {shlex.quote(id_)}"
        if not (number and self.verb and self.command.startswith(long)):
            return self.command
        return self.command.replace(long, f"loki {self.verb} {number}").replace(
            f" --{self.takes} ", " "
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something to look at before answering.

    Attributes:
        kind: what it is: ``changed`` a path, ``asks`` who, ``severity``, ``instead`` what else could be
            done, ``source`` what it was drawn from.
        text: it.
    """

    kind: Literal["changed", "asks", "severity", "instead", "source"]
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """Something that waits for a person.

    Attributes:
        id: by which it is answered.
        kind: what asks.
        title: of the task, or what it is about.
        question: what has to be decided, in a sentence or a few.
        since: when it was asked, ISO 8601 UTC, or "".
        options: how to answer, the likeliest first.
        task_id: the task, or "".
        until: when nobody is waited for any more, or "".
        expires: what happens then, a clause.
        page: that tells more, relative to ``.loki/``, or "".
        target: what an answer acts on, where that is not the id: a criterion, a run.
        others: ids of further tasks that the same answer is for.
        evidence: what to look at besides.
        number: by which it can be answered, too; 0: it has none yet.
    """

    id: str
    kind: RequestKind
    title: str
    question: str
    since: str
    options: tuple[Option, ...]
    task_id: str = ""
    until: str = ""
    expires: str = "it is given up"
    page: str = ""
    target: str = ""
    others: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    number: int = 0

    @property
    def takes_words(self) -> bool:
        """Whether whoever works on it is told what a person knows."""
        return any(option.takes == "context" for option in self.options)

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that it is about."""
        return tuple(filter(None, (self.task_id, *self.others)))

    @property
    def key(self) -> str:
        """What tells it from every other, and from itself where it asks something else by now."""
        text = "\0".join((self.kind, self.id, self.since, self.question))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        said = asdict(self)
        said["asked"], said["answers"] = said.pop("question"), said.pop("options")
        return said


def yes_or_no(
    id_: str, yes: str, no: str, more: str = "", *others: Option, reason: bool = True
) -> tuple[Option, ...]:
    """The options of most requests: a yes, a yes with words where that is one, others, and a no.

    Args:
        id_: by which it is answered.
        yes, no: what they mean; more: what a yes with words does, or "".
        others: further ones.
        reason: a no says why.

    Example:
        >>> for one in yes_or_no("a b", "go on", "give up"):
        ...     print(one.command)
        loki approve 'a b'
        loki reject 'a b' --note "why"
    """
    word = shlex.quote(id_)
    with_words = (Option(more, f'loki approve {word} --context "…"'),) if more else ()
    return (
        Option(yes, f"loki approve {word}"),
        *with_words,
        *others,
        Option(no, f"loki reject {word}" + (' --note "why"' if reason else "")),
    )


def id_of(kind: RequestKind, *words: str) -> str:
    """A short id for what has none of its own: the same for the same words.

    Example:
        >>> id_of("approval", "t", "the text reads well")
        'approval-63560a'
    """
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return f"{kind}-{hashlib.sha256(text).hexdigest()[:6]}"
