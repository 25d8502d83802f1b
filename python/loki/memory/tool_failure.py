"""The record of an agent's tool call that failed: what was called, what failed in it.

Appended to ``.loki/logs/tool-calls.jsonl``; `loki.memory.recall` knows them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loki.base.tokens import clip
from loki.recognition.failure import Failure

if TYPE_CHECKING:
    from loki.memory.store import Store

LOG = "logs/tool-calls.jsonl"
"""Name of the log in a store."""

MOST_TESTS, MOST_FRAMES = 20, 20
"""Failing tests and frames that are kept of a failure, the first and the innermost. Chosen."""

EXCERPT_TOKENS = 500
"""Tokens of an excerpt that are kept. Chosen, not measured."""

MESSAGE = 2_000
"""Characters of a message that are kept. Chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """An agent's tool call that failed.

    Attributes:
        at: when it had failed, ISO 8601 UTC.
        tool: its name.
        call: the call in one line.
        failure: what failed.
        tried: what was changed since the failure before, in the words of those calls.
        session: of the agent, or "".
        agent: its name.
        task: what it works on, or "".
        exit_code: of the command, or None.
    """

    at: str
    tool: str
    call: str
    failure: Failure
    tried: str = ""
    session: str = ""
    agent: str = ""
    task: str = ""
    exit_code: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; what is not known is left out."""
        data = {name: getattr(self, name) for name in self.__slots__}
        data["failure"] = bounded(self.failure).to_dict()
        return {name: value for name, value in data.items() if value not in ("", None)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ToolFailure:
        """The record that `to_dict` gave; fields of a newer version are left out.

        Raises:
            ValueError: it is no record of a tool call.
        """
        try:
            known = {name: data[name] for name in cls.__slots__ if name in data}
            known["failure"] = Failure.from_dict(data["failure"])
            known |= {name: str(data[name]) for name in ("at", "tool", "call")}
            return cls(**known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"found no record of a tool call ({error!r})") from None


def bounded(failure: Failure) -> Failure:
    """A failure without what would make its record long; it is the same failure still."""
    return replace(
        failure,
        message=failure.message[:MESSAGE],
        tests=failure.tests[:MOST_TESTS],
        frames=failure.frames[-MOST_FRAMES:],
        excerpt=clip(failure.excerpt, EXCERPT_TOKENS),
        matches=failure.matches[:3],
    )


class ToolFailures:
    """The failed tool calls that a workspace remembers.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, record: ToolFailure) -> None:
        """Keep one; what can be told again need not be waited for."""
        self._store.append(LOG, record.to_dict(), durable=False)

    def __iter__(self) -> Iterator[ToolFailure]:
        """All of them, oldest first; a record that cannot be read is skipped."""
        for record in self._store.scan(LOG):
            try:
                yield ToolFailure.from_dict(record)
            except ValueError as error:
                logger.warning("%s: skipped a record: %s", LOG, error)
