"""The table in ``docs/design/breaker.md`` is what the code does, cell by cell."""

from __future__ import annotations

from collections.abc import Callable

from loki.decision.breaker import Breaker, Permit
from loki.testing import ManualClock
from support.breaker import trip
from support.paths import ROOT

PAGE = ROOT / "docs/design/breaker.md"
STATES = ("CLOSED", "OPEN", "HALF_OPEN")
NOWHERE = "—"
"""A cell that cannot happen: in this state there is no such permit."""


class Scene:
    """A breaker in one of its states, with what an event may need."""

    def __init__(self, state: str) -> None:
        self.clock = ManualClock()
        self.breaker = Breaker(threshold=2, recovery_threshold=2, clock=self.clock)
        self.early = self.breaker.try_acquire()
        self.breaker.reset()
        self.permit: Permit | None = None
        if state == "CLOSED":
            self.permit = self.breaker.try_acquire()
            return
        trip(self.breaker)
        if state == "HALF_OPEN":
            self.clock.advance(300)
            self.permit = self.breaker.try_acquire()

    def call(self, seconds: int = 0) -> str:
        """One more call, this much later."""
        self.clock.advance(seconds)
        permit = self.breaker.try_acquire()
        if permit is None:
            return "refused"
        kind = "a probe" if permit.is_probe else "granted"
        permit.ignore()
        return kind

    def between_probes(self, seconds: int) -> str:
        assert self.permit is not None
        self.permit.ignore()
        return self.call(seconds)

    def report(self, outcome: str, permit: Permit | None = None) -> str:
        """Whether an outcome counted."""
        permit = permit or self.permit
        if permit is None:
            return NOWHERE
        before = self.breaker.snapshot().counts
        getattr(permit, outcome)()
        return "void" if self.breaker.snapshot().counts.late > before.late else "counts"

    def second(self, outcome: str) -> str:
        """The outcome that makes two of the kind."""
        if self.permit is None:
            return NOWHERE
        getattr(self.permit, outcome)()
        self.clock.advance(10)
        return self.report(outcome, self.breaker.try_acquire())

    def overdue(self) -> str:
        self.clock.advance(600)
        return self.report("success")

    def ignore(self) -> str:
        if self.permit is None:
            return NOWHERE
        was_probing = self.breaker.snapshot().is_probing
        self.permit.ignore()
        is_free = was_probing and not self.breaker.snapshot().is_probing
        return "its slot is free" if is_free else "nothing"

    def by_hand(self, name: str) -> str:
        getattr(self.breaker, name)()
        return "isolated" if self.breaker.snapshot().is_isolated else "done"


EVENTS: dict[str, Callable[[Scene], str]] = {
    "a call": Scene.call,
    "a call when the cooldown is over": lambda scene: scene.call(300),
    "a call between two probes, too early": lambda scene: scene.between_probes(9),
    "a call between two probes, in time": lambda scene: scene.between_probes(10),
    "a success": lambda scene: scene.report("success"),
    "the success that makes `recovery_threshold`": lambda scene: scene.second("success"),
    "a failure": lambda scene: scene.report("failure"),
    "the failure that makes `threshold`": lambda scene: scene.second("failure"),
    "an outcome after `probe_lease`": Scene.overdue,
    "an outcome of an earlier generation": lambda scene: scene.report("failure", scene.early),
    "`ignore()`, or the permit is dropped": Scene.ignore,
    "`open()`": lambda scene: scene.by_hand("open"),
    "`isolate()`": lambda scene: scene.by_hand("isolate"),
    "`close()`": lambda scene: scene.by_hand("close"),
    "`reset()`": lambda scene: scene.by_hand("reset"),
}

SENSELESS = {
    ("a call between two probes, too early", "CLOSED"),
    ("a call between two probes, too early", "OPEN"),
    ("a call between two probes, in time", "CLOSED"),
    ("a call between two probes, in time", "OPEN"),
    ("the failure that makes `threshold`", "HALF_OPEN"),
}


def cell(event: str, state: str) -> str:
    if (event, state) in SENSELESS:
        return NOWHERE
    scene = Scene(state)
    assert scene.breaker.snapshot().state == state
    what = EVENTS[event](scene)
    after = scene.breaker.snapshot().state
    return what if after == state else f"{what} → **{after}**"


def table() -> str:
    rows = [f"| event | {' | '.join(STATES)} |", "|---|---|---|---|"]
    rows += [f"| {event} | {' | '.join(cell(event, s) for s in STATES)} |" for event in EVENTS]
    return "\n".join(rows)


def test_the_table_of_the_page_is_what_the_code_does() -> None:
    assert table() in PAGE.read_text("utf-8"), f"expected in {PAGE}:\n{table()}"
