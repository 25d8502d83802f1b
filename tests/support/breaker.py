"""What the tests of circuit breakers share."""

from __future__ import annotations

from loki.decision.breaker import Breaker, Permit
from loki.testing import ManualClock


class Outage(Exception):
    """What the other side raises while it is down."""


def acquired(breaker: Breaker) -> Permit:
    permit = breaker.try_acquire()
    assert permit is not None
    return permit


def trip(breaker: Breaker) -> None:
    while permit := breaker.try_acquire():
        permit.failure(Outage("down"))


def half_open(breaker: Breaker, clock: ManualClock) -> None:
    trip(breaker)
    clock.advance("300s")
    breaker.expire()


def state(breaker: Breaker) -> str:
    return breaker.snapshot().state
