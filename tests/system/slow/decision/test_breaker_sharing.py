"""One breaker, many threads, tasks and listeners: what takes its time."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import loki
from loki.decision.breaker import Breaker, Transition
from loki.testing import ManualClock


def test_references_are_not_leaked() -> None:
    breaker = Breaker(threshold=10**6)
    shut = Breaker()
    shut.open()
    error = ValueError("no")

    @breaker.protect
    def call() -> None:
        raise error

    def use() -> None:
        for _ in range(100):
            breaker.try_acquire()
            assert shut.try_acquire() is None
            with pytest.raises(loki.BreakerOpen):
                shut.guard()
            with breaker.guard() as permit:
                permit.failure(error)
            with pytest.raises(ValueError, match="no"):
                call()
            error.__traceback__ = None

    use()
    gc.collect()
    before = [sys.getrefcount(thing) for thing in (breaker, shut, error)]
    use()
    gc.collect()
    assert [sys.getrefcount(thing) for thing in (breaker, shut, error)] == before


def test_rings_are_collected() -> None:
    """A clock that holds its breaker; a listener that holds a permit, which is then ignored."""

    class Watch(ManualClock):
        def __init__(self) -> None:
            super().__init__()
            self.breaker = Breaker(clock=self)

    class Client:
        def __init__(self) -> None:
            self.breaker = Breaker()
            self.breaker.listen(self.hear)
            self.permit = self.breaker.try_acquire()

        def hear(self, change: Transition) -> None:
            raise NotImplementedError

    for ring in (Watch, Client):
        gone = weakref.ref(ring())
        gc.collect()
        assert gone() is None
