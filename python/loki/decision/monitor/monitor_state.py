"""What a monitor knows of an agent's session, what it is told and what it says: values, and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from loki.base import codec
from loki.base.error import AgentStuck
from loki.decision.monitor.tool_call import Known
from loki.decision.monitor.tool_result import Outcome
from loki.memory.sign import DEFAULT_RULES, Seen, Sighting, SignRules
from loki.recognition.failure import Failure

FIRST, LATER, UNTOUCHED = 2, 3, 4
"""Sightings of the same failure at which it is named: told by a harness of its own, by a command that the
agent chose, and where nothing that it names was changed. Measured on runs of real agents: at the second
one of their own commands most are about to get on; see ``docs/monitor.md``."""

STOP = 6
"""Times that the very same call failed the very same way, with nothing new between, at which an agent is
stuck; of a failure that comes back after changes twice as often. Measured:
no run that ended well came so far."""


VERSION = 2
"""Of a session's file; one of another version is begun anew."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The calls that showed a failure, since something was tried.

    Attributes:
        change: how many changes there had been.
        keys: of the calls.
        calls: what they ran, for telling which checks cover it.
        extents: by call, the fewest lines of its output that told of failures; see
            `loki.decision.monitor.tool_result`.
        passes: the most tests that passed beside it.
        names: stems of the files that it names.
        numbers: what its message counts.
        is_old: it was seen while the agent's changes were taken back: it is not theirs.
        told: the agent has been told of it.
    """

    change: int
    keys: tuple[str, ...]
    calls: tuple[tuple[str, ...], ...] = ()
    extents: Mapping[str, int] = field(default_factory=dict)
    passes: int = 0
    names: frozenset[str] = frozenset()
    numbers: str = ""
    is_old: bool = False
    told: bool = False


class Repetition(NamedTuple):
    """Something that came again: a call with its result, an output, a change, an error of a tool.

    Attributes:
        key: what: a rule and a call.
        said: what it said: a hash.
        at: when, as the rule counts that.
        times: how often.
    """

    key: str
    said: str
    at: int
    times: int = 1


class MadeChange(NamedTuple):
    """A change that could mend a failure.

    Attributes:
        number: the how many-th change.
        file: its file's name without folders, or "": nobody knows.
        stem: that without what makes it one of tests.
        is_test: it is one of tests.
    """

    number: int
    file: str = ""
    stem: str = ""
    is_test: bool = False


class RunningCall(NamedTuple):
    """A check that goes on in the background.

    Attributes:
        task: how its agent names it.
        tool, command: what was called.
        runs_tests: it checks by tests.
    """

    task: str
    tool: str
    command: str
    runs_tests: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a session's checks have shown, for holding claims against it.

    Attributes:
        edits: changes of files that checks read.
        tests: the `edits` at which tests were run last; -1: never.
        failed: how many failed in that run; 0: none.
        named: names of those.
        command: of that run.
        passed: the `edits` at which tests passed last; -1: never.
        ran: the `edits` at which anything ran well last; -1: never.
        broken: the last check that is none of tests failed.
    """

    edits: int = 0
    tests: int = -1
    failed: int = 0
    named: tuple[str, ...] = ()
    command: str = ""
    passed: int = -1
    ran: int = -1
    broken: bool = False


@dataclass(frozen=True, slots=True)
class MonitorState:
    """All that is known of an agent's session.

    Attributes:
        seen: failures of it, as signs have them.
        looks: by fingerprint, who showed them.
        again: what came again, the newest last.
        done: hashes of what was done that may have changed something, the newest last.
        moved: how often something new was done.
        change: changes so far that could mend a failure.
        made: those, the newest last.
        tried: what was changed since a failure was counted.
        stashed: the agent's changes are taken back for now.
        evidence: what checks have shown.
        refused: hashes of claims that were refused.
        turn: hash of the turn in which an end was refused last, or "".
        ends: how many were refused in it.
        background: checks that go on, begun since something was changed that checks can read.
    """

    seen: Seen = field(default_factory=Seen)
    looks: Mapping[str, Inspection] = field(default_factory=dict)
    again: tuple[Repetition, ...] = ()
    done: tuple[str, ...] = ()
    moved: int = 0
    change: int = 0
    made: tuple[MadeChange, ...] = ()
    tried: tuple[str, ...] = ()
    stashed: bool = False
    evidence: Evidence = field(default_factory=Evidence)
    refused: tuple[str, ...] = ()
    turn: str = ""
    ends: int = 0
    background: tuple[RunningCall, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**self.head(), "sightings": [one.to_dict() for one in self.seen.sightings]}

    def head(self) -> dict[str, Any]:
        """The same without the sightings, which have a line of their own (`Sighting.line`)."""
        data = codec.fields_of(replace(self, seen=Seen()))
        del data["seen"]
        return {"version": VERSION, "recent": list(self.seen.recent), **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], rules: SignRules = DEFAULT_RULES) -> MonitorState:
        """What `to_dict` gave.

        Raises:
            ValueError: it is something else, or of another version.
        """
        try:
            if data["version"] != VERSION:
                raise ValueError(f"found version {data['version']!r}, expected {VERSION}")
            sightings = tuple(Sighting.from_dict(one, rules) for one in data["sightings"])
            seen = Seen(sightings, tuple(map(str, data["recent"])))
            return replace(codec.parse(cls, data), seen=seen)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class MonitorRules:
    """What counts.

    Attributes:
        signs: what arms a sign.
        stop: times that the very same call fails the very same way at which an agent is stuck.
    """

    signs: SignRules = DEFAULT_RULES
    stop: int = STOP

    @property
    def far(self) -> int:
        """Times that something else comes again at which an agent is stuck."""
        return 2 * self.stop

    @classmethod
    def of(cls, signs: SignRules, retries: int) -> MonitorRules:
        """The rules of a configuration.

        Args:
            signs: its ``[signs]``.
            retries: its ``[loop] max_retries``, attempts after the first: who allows more than
                `STOP` of those is stopped later.
        """
        return cls(signs, max(STOP, retries + 1))


# --- Events and reactions -----------------------------------------------------------------------------

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
        `loki.decision.monitor.tool_result.extent`.
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
        task: how the agent will name it once it has ended; "": how it ends is never told.
    """

    call: Known
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
