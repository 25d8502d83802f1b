"""Reflections: a short note after each failed attempt, for the attempts after it.

An agent that can says what it thinks went wrong; else the note is made of the facts. Pure;
`Reflections` joins it with a store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loki.base import codec
from loki.base.documents import readable
from loki.memory.quote import one_line
from loki.memory.store import Store

SHOWN = 3
"""Reflections that a briefing shows, the last ones."""

PART_LENGTH = 300
"""Characters kept of each part of a reflection. Chosen, not measured."""

FACTS = "facts"
"""Author of a reflection that nobody wrote."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """What is to be learned from a failed attempt; what is left empty is filled in from the facts.

    Attributes:
        why: what likely went wrong.
        instead: what to try instead.
        tried: what was tried.
        happened: what came of it.
        attempt: number of the attempt, 1 or more; loki fills it in.
        by: who reflected: an agent's name, ``caller`` or ``facts``; loki fills it in.
        timestamp: when, ISO 8601 UTC; loki fills it in.
        tokens, cost: what it took to reflect, cost in US dollars, where known; not kept with it.

    Example:
        >>> Reflection(why="the mock hides the error", instead="run it without the mock").instead
        'run it without the mock'
    """

    why: str = ""
    instead: str = ""
    tried: str = ""
    happened: str = ""
    attempt: int = 0
    by: str = ""
    timestamp: str = ""
    tokens: int | None = None
    cost: float | None = None

    def on(self, facts: Reflection, by: str) -> Reflection:
        """This reflection of ``by``'s, with the facts where it says nothing."""
        return Reflection(
            self.why or facts.why,
            self.instead or facts.instead,
            self.tried or facts.tried,
            self.happened or facts.happened,
            facts.attempt,
            by,
            facts.timestamp,
        )

    def kept(self) -> Reflection:
        """As it is kept: each part one line that is not too long."""
        parts = ("why", "instead", "tried", "happened", "by")
        lines: dict[str, Any] = {name: one_line(getattr(self, name), PART_LENGTH) for name in parts}
        return replace(self, **lines)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {name: getattr(self, name) for name in _KEPT}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reflection:
        """What `to_dict` gave.

        Raises:
            ValueError: it names no attempt, or a part is no text.
        """
        known = {name: data[name] for name in _KEPT if data.get(name) is not None}
        return codec.parse(cls, {"attempt": "not said", **known}, "reflection")


_KEPT = ("attempt", "timestamp", "by", "tried", "happened", "why", "instead")


def as_reflection(answer: object) -> Reflection:
    """What an agent answered, as a reflection: text says why.

    Raises:
        TypeError: it is neither a reflection nor text, or it is empty.
    """
    if isinstance(answer, str) and answer.strip():
        return Reflection(why=answer)
    if isinstance(answer, Reflection) and any((answer.why, answer.instead, answer.tried)):
        return answer
    what = "nothing" if not answer or isinstance(answer, Reflection) else type(answer).__name__
    raise TypeError(f"the agent reflected with {what}; expected text or a loki.Reflection")


class Reflections:
    """The reflections of a task, the last few in memory.

    Args:
        store: where they are kept.
        task: id of the task.
    """

    def __init__(self, store: Store, task: str) -> None:
        self._store = store
        self._log = f"tasks/{task}/reflections.jsonl"
        self._last: list[Reflection] | None = None

    def add(self, reflection: Reflection) -> None:
        """Keep a reflection; on the same attempt as before it replaces what was said then."""
        kept = reflection.kept()
        last = self._read()
        # What the facts say can be told again from the attempts: no disk need be waited for.
        self._store.append(self._log, kept.to_dict(), durable=kept.by != FACTS)
        self._last = [*(r for r in last if r.attempt != kept.attempt), kept][-SHOWN:]

    def last(self) -> Sequence[Reflection]:
        """Those on the last three attempts that have one, oldest first."""
        return tuple(self._read())

    def _read(self) -> list[Reflection]:
        if self._last is None:
            records = self._store.records(self._log)
            found = {one.attempt: one for one in readable(self._log, records, Reflection.from_dict)}
            self._last = [found[number] for number in sorted(found)[-SHOWN:]]
        return self._last
