"""What one rival does in one case: the shape that runner and families share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """One rival, made ready.

    Attributes:
        run: the work; what it returns goes to `answer`.
        amount: how much work that is, in the family's unit.
        items: how many calls of loki that is; a case's `limit` is for one.
        answer: what it returned as plain data that can be compared; not on the clock.
        timed: `run` returns (seconds, the processor's seconds, answer), as it makes its data between;
            it runs once.
    """

    run: Callable[[], Any]
    amount: int
    answer: Callable[[Any], Any] = lambda returned: returned
    items: int = 1
    timed: bool = False


@dataclass(frozen=True)
class Family:
    """Cases of one kind.

    Attributes:
        unit: of the amount: "bytes", or what is counted.
        rivals: by name, what makes the job from a case's parameters and the data.
        agree: share of equal answers, 0 to 1, of the reference's and a rival's answer. It is not asked
            for one that answers None: a yardstick.
        reference: the rival whose answer the others are held against.
        waits: most of the time is the disk's, so that waiting says nothing about other processes.
    """

    unit: str
    rivals: dict[str, Callable[[dict[str, Any], Data], Job]]
    agree: Callable[[Any, Any], float]
    reference: str = "loki"
    waits: bool = False


@dataclass(frozen=True)
class Case:
    """One measurement as data.

    Attributes:
        name: of the case.
        family: whose rivals do it.
        parameters: what they get.
        targets: (rival, factor): so many times as fast as that rival loki should be.
        limit: the seconds that one call of loki should stay below, where that is the target.
        least: the share of equal answers below which nobody's figure counts.
        rivals: who takes part; all of the family if empty.
        note: what a reader of the figures should know.
        series: the plot that it is a point of, and where it stands on its axis; else a row.
    """

    name: str
    family: str
    parameters: dict[str, Any] = field(default_factory=dict)
    targets: tuple[tuple[str, float], ...] = ()
    limit: float | None = None
    least: float = 0.99
    rivals: tuple[str, ...] = ()
    note: str = ""
    series: tuple[str, int] | None = None


@dataclass(frozen=True)
class Data:
    """The folder that all processes of one run read."""

    folder: Path

    def keep(self, name: str, value: Any) -> None:
        """Writes one of the texts' lists."""
        (self.folder / f"{name}.json").write_text(json.dumps(value), "utf-8")

    def _read(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text("utf-8"))

    @cached_property
    def logs(self) -> list[str]:
        """Whole logs as they came."""
        found: list[str] = self._read("logs")
        return found

    @cached_property
    def texts(self) -> list[str]:
        """A failure text of about 2 KB per log."""
        found: list[str] = self._read("texts")
        return found

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the logs, cleaned."""
        found: list[str] = self._read("lines")
        return found
