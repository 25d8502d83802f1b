"""A run of an agent as it was recorded: what it called, what came of it, what it said at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from loki.decision.monitor.tool_call import ToolCall


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made, and what came of it.

    Attributes:
        call: the call.
        result: what it gave.
        ok: whether it went well; None: the record does not tell.
        exit_code: of its command, or None.
        place: where it stands: the number of a step from 0, or of a line of its file from 1.
    """

    call: ToolCall
    result: str
    ok: bool | None
    exit_code: int | None
    place: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The last words of a turn, and where they stand."""

    message: str
    place: int


Recorded: TypeAlias = "Made | Ends"


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a run that a person has labelled: steps from the first to the last of it."""

    first: int
    last: int
    label: Literal["stuck", "progress", "other"]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as it was recorded.

    Attributes:
        id: which it is.
        source: the file.
        unit: what a place counts: ``step`` or ``line``.
        events: calls and ends, in order.
        folder: where the agent worked, or "".
        agent: its name, or "".
        resolved: whether it did what it was to do; None: nobody knows.
        windows: labels, where there are any.
    """

    id: str
    source: str
    unit: str
    events: tuple[Recorded, ...]
    folder: str = ""
    agent: str = ""
    resolved: bool | None = None
    windows: tuple[Window, ...] = ()

    @property
    def calls(self) -> int:
        """How many calls it made."""
        return sum(isinstance(one, Made) for one in self.events)
