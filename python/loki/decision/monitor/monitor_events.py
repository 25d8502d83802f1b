"""What a monitor is told, and what it says: events and reactions; see
`loki.decision.monitor.monitor_policy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from loki.base.error import AgentStuck
from loki.decision.monitor.monitor_state import MonitorState
from loki.decision.monitor.output_outcome import Outcome
from loki.decision.monitor.tool_call import Known
from loki.recognition.failure import Failure

Kind: TypeAlias = Literal["none", "nudge", "refuse", "stop"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is to be done about a call, or about an end.

    Attributes:
        kind: ``none``; ``nudge``: ``text`` belongs into what the model sees next; ``refuse``: the call,
            or the end, is not to be; ``stop``: the agent is stuck.
        text: what the agent is told, "" where there is nothing to say.
        reason: the rule that says so: ``repeat``, ``same-call``, ``same-output``,
            ``same-change``, ``same-error``, ``broken``, ``time-out``, ``breaker``, ``claim``.
        failure, count: what came back, or None; how often it was seen.
    """

    kind: Kind = "none"
    text: str = ""
    reason: str = ""
    failure: Failure | None = None
    count: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return self.kind != "none"

    def raise_if_stop(self) -> None:
        """Raise where the agent must stop.

        Raises:
            AgentStuck: it is stuck.
        """
        if self.kind == "stop":
            raise AgentStuck(self.text, self.failure, self.count, self.reason)


NOTHING = Reaction()
NOTHING_SAID = Outcome()


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passed:
    """A call went well.

    Attributes:
        call: the call.
        outcome: what its output says.
    """

    call: Known
    outcome: Outcome = NOTHING_SAID


@dataclass(frozen=True, slots=True)
class Failed:
    """A call failed.

    Attributes:
        call: the call.
        failure: what failed first in it.
        extent: how many lines of its output told of failures; see
        `loki.decision.monitor.output_outcome.extent`.
        outcome: what its output says.
    """

    call: Known
    failure: Failure
    extent: int = 0
    outcome: Outcome = NOTHING_SAID


@dataclass(frozen=True, slots=True)
class Started:
    """A call goes on in the background.

    Attributes:
        call: the call.
        tool: the name of its tool.
        task: how the agent will name it once it has ended; "": how it ends is never told.
    """

    call: Known
    tool: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """What went on in the background has ended."""

    task: str


@dataclass(frozen=True, slots=True)
class FailuresReset:
    """A person has spoken to an agent that was told to stop."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The agent says that it is done.

    Attributes:
        message: its last words.
        turn: what it works on since a person has spoken, or "": it has no name for it.
        running: tasks in the background that are known to go on; None: nobody knows.
    """

    message: str
    turn: str = ""
    running: frozenset[str] | None = None


MonitorEvent: TypeAlias = Passed | Failed | Started | Finished | FailuresReset | Ended
Step: TypeAlias = tuple[MonitorState, Reaction]
