"""What a monitor knows of an agent's session, and the rules by which it counts: values, and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loki.memory.sign import DEFAULT_RULES, Seen, Sighting, SignRules


@dataclass(frozen=True, slots=True)
class Look:
    """The calls that showed a failure, since something was tried.

    Attributes:
        change: how many changes there had been.
        keys: of the calls.
        calls: what they ran, for telling which checks cover it.
        extents: by call, the fewest lines of its output that told of failures; see
            `loki.decision.extent`.
        passes: the most tests that passed beside it.
        touched: something was changed that it may come of: of one that was there before the first
            change, a file that it names.
        names: stems of the files that it names.
    """

    change: int
    keys: tuple[str, ...]
    calls: tuple[tuple[str, ...], ...] = ()
    extents: Mapping[str, int] = field(default_factory=dict)
    passes: int = 0
    touched: bool = True
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Again:
    """A call that failed, and how often it was made without any change.

    Attributes:
        key: of the call.
        said: what it said: a hash.
        change: how many changes there had been.
        count: how often it failed so.
    """

    key: str
    said: str
    change: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Going:
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
class MonitorState:
    """All that is known of an agent's session.

    Attributes:
        seen: failures of it, as signs have them.
        looks: by fingerprint, who showed them.
        again: calls that failed, the newest last.
        change: changes so far.
        tried: what was changed since a failure was counted.
        unverified: something was changed since a check passed that checks can read.
        untested: the same since tests passed.
        ran: since then something else ran well: a program, a script.
        failing: the last check failed.
        refused: hashes of claims that were refused.
        turn: hash of the turn in which an end was refused last, or "".
        ends: how many were refused in it.
        background: checks that go on, begun since something was changed that checks can read.
    """

    seen: Seen = field(default_factory=Seen)
    looks: Mapping[str, Look] = field(default_factory=dict)
    again: tuple[Again, ...] = ()
    change: int = 0
    tried: tuple[str, ...] = ()
    unverified: bool = False
    untested: bool = False
    ran: bool = False
    failing: bool = False
    refused: tuple[str, ...] = ()
    turn: str = ""
    ends: int = 0
    background: tuple[Going, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**self.head(), "sightings": [one.to_dict() for one in self.seen.sightings]}

    def head(self) -> dict[str, Any]:
        """The same without the sightings, which have a line of their own (`Sighting.line`)."""
        return {
            "version": 1,
            "recent": list(self.seen.recent),
            "looks": {
                name: {
                    "change": k.change,
                    "keys": list(k.keys),
                    "calls": list(map(list, k.calls)),
                    "extents": dict(k.extents),
                    "passes": k.passes,
                    "touched": k.touched,
                    "names": sorted(k.names),
                }
                for name, k in self.looks.items()
            },
            "again": [[a.key, a.said, a.change, a.count] for a in self.again],
            "change": self.change,
            "tried": list(self.tried),
            "unverified": self.unverified,
            "untested": self.untested,
            "ran": self.ran,
            "failing": self.failing,
            "refused": list(self.refused),
            "turn": self.turn,
            "ends": self.ends,
            "background": [
                [one.task, one.tool, one.command, one.runs_tests] for one in self.background
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], rules: SignRules = DEFAULT_RULES) -> MonitorState:
        """What `to_dict` gave.

        Raises:
            ValueError: it is something else.
        """
        try:
            sightings = tuple(Sighting.from_dict(one, rules) for one in data["sightings"])
            looks = {
                str(name): Look(
                    int(one["change"]),
                    tuple(map(str, one["keys"])),
                    tuple(tuple(map(str, call)) for call in one["calls"]),
                    {str(key): int(number) for key, number in one["extents"].items()},
                    int(one.get("passes", 0)),
                    bool(one.get("touched", True)),
                    frozenset(map(str, one.get("names", ()))),
                )
                for name, one in data["looks"].items()
            }
            return cls(
                Seen(sightings, tuple(map(str, data["recent"]))),
                looks,
                tuple(Again(str(k), str(s), int(c), int(n)) for k, s, c, n in data["again"]),
                int(data["change"]),
                tuple(map(str, data["tried"])),
                bool(data["unverified"]),
                bool(data["untested"]),
                bool(data["ran"]),
                bool(data["failing"]),
                tuple(map(str, data["refused"])),
                str(data.get("turn", "")),
                int(data.get("ends", 0)),
                tuple(
                    Going(str(task), str(tool), str(command), bool(tests))
                    for task, tool, command, tests in data.get("background", ())
                ),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class MonitorRules:
    """What counts.

    Attributes:
        signs: what arms a sign.
        stop: sightings of the same failure at which an agent is stuck.
    """

    signs: SignRules = DEFAULT_RULES
    stop: int = 4

    @classmethod
    def of(cls, signs: SignRules, retries: int) -> MonitorRules:
        """The rules of a configuration.

        Args:
            signs: its ``[signs]``.
            retries: its ``[loop] max_retries``: attempts after the first.
        """
        return cls(signs, retries + 1)

    def stop_for(self, threshold: int) -> int:
        """Sightings at which an agent is stuck; a nudge has always come before."""
        return max(self.stop, threshold + 1)
