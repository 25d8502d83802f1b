"""Tool calls of agents that failed, and whether a failure was seen before.

A record of each is appended to ``.loki/logs/tool-calls.jsonl``: what was called, what failed in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loki.base import codec
from loki.base.codec import kept
from loki.base.documents import readable, trimmed
from loki.base.tokens import clip_to_tokens
from loki.memory.store import Store
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure

if TYPE_CHECKING:
    from loki.memory.attempt import Attempt


LOG = "logs/tool-calls.jsonl"
"""Name of the log in a store."""

MOST_TESTS, MOST_FRAMES = 20, 20
"""Failing tests and frames that are kept of a failure, the first and the innermost. Chosen."""

EXCERPT_TOKENS = 500
"""Tokens of an excerpt that are kept. Chosen, not measured."""

MESSAGE = 2_000
"""Characters of a message that are kept, and of each failing test's name. Chosen, not measured."""

RECORDS, TEXT = 10_000, 20_000_000
"""Records and characters that the log is cut back to, the newest, once it is twice as long. Chosen."""


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
        solution: what was changed before the same check passed, where it has; kept as a record of
            its own.
    """

    at: str
    tool: str
    call: str
    failure: Failure
    tried: str = kept(default="", omit=True)
    session: str = kept(default="", omit=True)
    agent: str = kept(default="", omit=True)
    task: str = kept(default="", omit=True)
    exit_code: int | None = kept(default=None, omit=True)
    solution: str = kept(default="", omit=True)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; what is not known is left out."""
        return {**codec.fields_of(self), "failure": bounded(self.failure).to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ToolFailure:
        """The record that `to_dict` gave; fields of a newer version are left out.

        Raises:
            ValueError: it is no record of a tool call.
        """
        return codec.parse(cls, data, "record of a tool call")


def bounded(failure: Failure) -> Failure:
    """A failure without what would make its record long; it is the same failure still."""
    return replace(
        failure,
        message=failure.message[:MESSAGE],
        normalized=failure.normalized[:MESSAGE],
        tests=tuple(test[:MESSAGE] for test in failure.tests[:MOST_TESTS]),
        frames=failure.frames[-MOST_FRAMES:],
        excerpt=clip_to_tokens(failure.excerpt, EXCERPT_TOKENS),
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

    def mended(self, at: str, fingerprints: Sequence[str], solution: str, session: str) -> None:
        """Keep that a check has passed which had shown failures.

        Args:
            at: when, ISO 8601 UTC.
            fingerprints: of those failures.
            solution: what was changed before it passed.
            session: of the agent, or "".
        """
        record = {"at": at, "mended": list(fingerprints), "solution": solution, "session": session}
        self._store.append(LOG, record, durable=False)
        self._trim()

    def _trim(self) -> None:
        """Cut the log back, where it has become far too long: whoever adds to it then may be left out."""
        log = self._store.read(LOG) or ""
        if len(log) > 2 * TEXT or log.count("\n") > 2 * RECORDS:
            self._store.update(LOG, lambda text: trimmed(text, RECORDS, TEXT), durable=False)

    def __iter__(self) -> Iterator[ToolFailure]:
        """All of them, oldest first, with what mended them; a record that cannot be read is skipped."""
        found: list[ToolFailure] = []
        for record in self._store.scan(LOG):
            if "mended" in record:
                _solve(found, record)
            else:
                found += readable(LOG, [record], ToolFailure.from_dict)
        yield from found


def _solve(found: list[ToolFailure], record: Mapping[str, Any]) -> None:
    """Tell the failures of a session that they are mended, and by what."""
    mended, session = record.get("mended"), record.get("session")
    solution = str(record.get("solution") or "")
    for index in range(len(found) - 1, -1, -1):
        one = found[index]
        if one.session != session or one.solution or not solution:
            continue
        if isinstance(mended, list) and one.failure.fingerprint in mended:
            found[index] = replace(one, solution=solution)


# --- Was a failure seen before, and what became of it? ----------------------------------------------


@dataclass(frozen=True, slots=True)
class EarlierFailure:
    """An attempt, or an agent's tool call, that failed the same way.

    Attributes:
        task: its task; of a tool call "" where it is not known.
        attempt: its number in the task; 0 for a tool call.
        timestamp: when it began, ISO 8601 UTC.
        result: how it ended; an attempt that failed so has not succeeded.
        action: what was tried in it, in the agent's words.
        strategy: the strategy chosen in answer to the failure, or None.
        solved_by: number of the task's attempt that succeeded later, or None.
        solution: what that attempt did, or what was changed before the check passed; None.
        call: of a tool call, what was called; else "".
        agent: who called it, or "".
    """

    task: str
    attempt: int
    timestamp: str
    result: str
    action: str
    strategy: str | None
    solved_by: int | None
    solution: str | None
    call: str = ""
    agent: str = ""

    @property
    def place(self) -> str:
        """Where it was: ``fix-login attempt 2``, or ``a tool call of claude-code``."""
        if self.attempt:
            return f"{self.task} attempt {self.attempt}"
        return f"a tool call of {self.agent}{f' for {self.task}' if self.task else ''}"


def recall(
    histories: Iterable[tuple[str, Sequence[Attempt]]], failure: Failure
) -> list[EarlierFailure]:
    """The attempts that failed the same way, oldest first.

    Args:
        histories: ids of tasks, each with its attempts in order.
        failure: what is asked for; of an unspecific one nothing is said, for it is like any other.
    """
    found: list[EarlierFailure] = []
    if not failure.is_specific:
        return found
    for task, attempts in histories:
        for index, attempt in enumerate(attempts):
            earlier = attempt.recognized()
            if earlier is None or not same_failure(earlier, failure):
                continue
            cure = next((a for a in attempts[index + 1 :] if a.result == "success"), None)
            found.append(
                EarlierFailure(
                    task,
                    attempt.attempt,
                    attempt.timestamp,
                    attempt.result,
                    " ".join(attempt.action.split()),
                    attempt.strategy_used,
                    cure.attempt if cure else None,
                    " ".join(cure.action.split()) if cure else None,
                )
            )
    return sorted(found, key=lambda one: one.timestamp)


def recall_calls(calls: Iterable[ToolFailure], failure: Failure) -> list[EarlierFailure]:
    """The tool calls that failed the same way, oldest first.

    Args:
        calls: those that are kept.
        failure: what is asked for; of an unspecific one nothing is said.
    """
    if not failure.is_specific:
        return []
    return [
        EarlierFailure(
            one.task,
            0,
            one.at,
            "failed",
            " ".join(one.tried.split()),
            None,
            None,
            " ".join(one.solution.split()) or None,
            one.call,
            one.agent,
        )
        for one in calls
        if same_failure(one.failure, failure)
    ]
