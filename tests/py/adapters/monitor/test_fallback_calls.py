"""One call of a model whose members others ask in turn: each through its breaker, once; the whole waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.adapters.monitor.breaker_call import FallbackCalls
from loki.base.error import BreakerOpen
from loki.decision.breaker import CALLS
from loki.testing import ManualClock

A, B = "api/a/large", "api/b/small"


class Status(Exception):
    """What a client raises."""

    def __init__(self, code: int, wait: int | None = None) -> None:
        super().__init__(f"status {code}")
        self.status_code = code
        self.headers = {} if wait is None else {"retry-after": str(wait)}


class Service:
    """Raises what it is given, one after the other, and answers then; counts its calls."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> str:
        self.calls += 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return "Hi"


def whole(calls: FallbackCalls, **services: Service) -> Callable[[], str]:
    """A framework's model: one after the other, whatever they raise; at the end the first error."""

    def ask() -> str:
        errors: list[Exception] = []
        for name, service in services.items():
            try:
                return calls.member({"a": A, "b": B}[name], service)
            except Exception as error:
                errors.append(error)
        raise errors[0]

    return ask


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def monitor(tmp_path: Path, clock: ManualClock) -> loki.Monitor:
    return loki.Monitor(tmp_path, clock=clock)


def asked(monitor: loki.Monitor, **services: Service) -> str:
    calls = monitor.fallback_calls()
    return calls.whole(whole(calls, **services))


def test_a_member_that_fails_is_left_at_once(monitor: loki.Monitor, clock: ManualClock) -> None:
    a, b = Service(Status(503)), Service()
    began = clock.monotonic()
    assert asked(monitor, a=a, b=b) == "Hi"
    assert (a.calls, b.calls, clock.monotonic() - began) == (1, 1, 0)
    counts = [monitor._ways.breakers[name].snapshot().counts for name in (A, B)]
    assert [(one.failures, one.successes) for one in counts] == [(1, 0), (0, 1)]


def test_the_whole_waits_as_long_as_the_first_member_asks_for(
    monitor: loki.Monitor, clock: ManualClock
) -> None:
    a, b = Service(Status(429, 40)), Service(Status(429, 30))
    began = clock.monotonic()
    assert asked(monitor, a=a, b=b) == "Hi"
    assert 30 <= clock.monotonic() - began < 40
    assert (a.calls + b.calls) == 3


def test_what_no_wait_mends_comes_out_untouched(monitor: loki.Monitor) -> None:
    refused = Status(401)
    with pytest.raises(Status) as error:
        asked(monitor, a=Service(refused), b=Service(Status(404)))
    assert error.value is refused
    assert error.value.__context__ is None


def test_a_bug_ends_it_though_another_member_was_down(monitor: loki.Monitor) -> None:
    """The framework did not ask on: what it raised is the last thing that came of a member."""
    calls = monitor.fallback_calls()
    a, bug = Service(Status(503)), KeyError("bug")

    def ask() -> str:
        with pytest.raises(Status):
            calls.member(A, a)
        return calls.member(B, Service(bug))

    with pytest.raises(KeyError) as error:
        calls.whole(ask)
    assert error.value is bug
    assert a.calls == 1


def test_all_open_breakers_are_an_open_breaker(tmp_path: Path, clock: ManualClock) -> None:
    """Of the one that lets calls out first."""
    monitor = loki.Monitor(tmp_path, clock=clock, wait=0)
    a, b = Service(*[Status(503)] * 9), Service(*[Status(503)] * 9)
    with pytest.raises(BreakerOpen) as error:
        asked(monitor, a=a, b=b)
    assert (a.calls, b.calls) == (3, 3)
    assert error.value.name == A
    assert error.value.retry_after == pytest.approx(CALLS["cooldown"], abs=0.1)
    with pytest.raises(BreakerOpen):
        asked(monitor, a=a, b=b)
    assert (a.calls, b.calls) == (3, 3)


def test_the_same_without_blocking(monitor: loki.Monitor, clock: ManualClock) -> None:
    calls, a, b = monitor.fallback_calls(), Service(Status(503), Status(503)), Service(Status(503))

    async def ask() -> str:
        async def of(service: Service) -> str:
            return service()

        try:
            return await calls.amember(A, lambda: of(a))
        except Status:
            return await calls.amember(B, lambda: of(b))

    began = clock.monotonic()
    assert asyncio.run(calls.awhole(ask)) == "Hi"
    assert (a.calls, b.calls) == (2, 2)
    assert clock.monotonic() > began


def test_what_passes_breakers_of_its_own_is_asked_as_it_is(monitor: loki.Monitor) -> None:
    service: Any = Service(Status(503))
    with pytest.raises(Status):
        monitor.call("", service)
    assert service.calls == 1
