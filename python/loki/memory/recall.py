"""Was a failure seen before, in attempts and in tool calls of agents, and what became of it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.recognition.similarity import same_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loki.memory.attempt import Attempt
    from loki.memory.tool_failure import ToolFailure
    from loki.recognition.failure import Failure


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
