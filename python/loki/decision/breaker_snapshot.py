"""What is told of a circuit breaker: its states, a change, its counts, all of it at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki.base.html import html_card
from loki.base.time import isoformat

if TYPE_CHECKING:
    from datetime import datetime

CircuitState = Literal["CLOSED", "OPEN", "HALF_OPEN"]
STATES: tuple[CircuitState, ...] = ("CLOSED", "OPEN", "HALF_OPEN")
"""By the core's numbers."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of state.

    Attributes:
        name: the breaker's.
        before: the state that it left.
        after: the state that it entered.
        at: when, in UTC.
    """

    name: str
    before: CircuitState
    after: CircuitState
    at: datetime


class BreakerCounts(NamedTuple):
    """What a breaker has seen since it was made; nothing resets it."""

    granted: int
    refused: int
    successes: int
    failures: int
    ignored: int
    late: int
    """Outcomes of an earlier time, or of a probe out of its lease."""
    transitions: int


@dataclass(frozen=True, slots=True)
class BreakerSnapshot:
    """A breaker at one instant.

    Attributes:
        name: the breaker's.
        state: ``CLOSED``, ``OPEN`` or ``HALF_OPEN``; OPEN also when the cooldown is over and no
            call has come yet.
        is_isolated: open until somebody closes it.
        is_probing: a probe is in flight.
        failure_count: failures that count now; while OPEN those that tripped it.
        success_count: successful probes in a row.
        trips: how often in a row it tripped, without having been closed between.
        generation: counts its transitions, and what was done to it by hand; of two looks with the same,
            nothing of that came between. Times may differ by microseconds from look to look.
        last_failure_time: in UTC, like all times; None since it was last closed.
        last_state_change: None where there was none.
        cooldown_until: None unless OPEN with an end.
        failure_window_start: the oldest failure that counts.
        retry_after: seconds until the next call may be let through; 0.0: now; None: isolated.
        last_error: of the last failure that counted.
        counts: calls and outcomes so far.
    """

    name: str
    state: CircuitState
    is_isolated: bool
    is_probing: bool
    failure_count: int
    success_count: int
    trips: int
    generation: int
    last_failure_time: datetime | None
    last_state_change: datetime | None
    cooldown_until: datetime | None
    failure_window_start: datetime | None
    retry_after: float | None
    last_error: str
    counts: BreakerCounts

    def _repr_html_(self) -> str:
        return breaker_html(self)


def breaker_html(shown: BreakerSnapshot) -> str:
    """What Jupyter shows of a breaker."""
    counts, wait = shown.counts, shown.retry_after
    isolated = ", isolated" if shown.is_isolated else ""
    is_closed = shown.state == "CLOSED"
    return html_card(
        f"Breaker {shown.name}: {shown.state}{isolated}",
        [
            ("next call", None if is_closed or wait is None else f"in {wait:.1f} s"),
            ("failures that count", shown.failure_count),
            ("successful probes", shown.success_count if shown.state == "HALF_OPEN" else None),
            ("tripped in a row", shown.trips or None),
            ("changed", shown.last_state_change and isoformat(shown.last_state_change)),
            ("calls", f"{counts.granted} let through, {counts.refused} refused"),
            ("outcomes", f"{counts.successes} successes, {counts.failures} failures"),
            ("last error", shown.last_error),
        ],
    )
