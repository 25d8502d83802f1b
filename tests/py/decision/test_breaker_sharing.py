"""One breaker, many threads, tasks and listeners."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import loki
from loki.decision.breaker import Breaker, Transition
from loki.testing import ManualClock

THREADS = 8


def in_threads(work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, number) for number in range(THREADS)]:
            done.result()


def opened(clock: ManualClock) -> Breaker:
    """A breaker whose cooldown has just ended."""
    breaker = Breaker(clock=clock)
    breaker.open()
    clock.advance(300)
    return breaker


# --- threads --------------------------------------------------------------------------------------


def test_no_failure_is_lost() -> None:
    breaker = Breaker(threshold=10**6, window="1h")

    def fail(_: int) -> None:
        for _ in range(500):
            permit = breaker.try_acquire()
            assert permit is not None
            permit.failure()

    in_threads(fail)
    assert breaker.snapshot().failure_count == THREADS * 500


def test_one_probe_however_many_ask() -> None:
    breaker = opened(ManualClock())
    barrier = threading.Barrier(THREADS)
    permits: list[object] = []

    def ask(_: int) -> None:
        barrier.wait()
        permits.append(breaker.try_acquire())

    in_threads(ask)
    assert len([permit for permit in permits if permit is not None]) == 1


def test_a_permit_reported_by_many_counts_once() -> None:
    breaker = Breaker(threshold=10**6)
    for _ in range(50):
        permit = breaker.try_acquire()
        assert permit is not None
        in_threads(lambda _, permit=permit: permit.failure())  # type: ignore[misc]
    assert breaker.snapshot().failure_count == 50


# --- asyncio --------------------------------------------------------------------------------------


def test_async_with_reports_like_with() -> None:
    breaker = Breaker(threshold=2, clock=ManualClock())

    async def main() -> None:
        async with breaker.guard() as permit:
            assert not permit.is_probe
        for _ in range(2):
            with pytest.raises(OSError, match="down"):
                async with breaker.guard():
                    await asyncio.sleep(0)
                    raise OSError("down")
        with pytest.raises(loki.BreakerOpen):
            async with breaker.guard():
                raise AssertionError("refused calls do not go out")

    asyncio.run(main())
    counts = breaker.snapshot().counts
    assert (counts.successes, counts.failures, counts.refused) == (1, 2, 1)


def test_a_cancelled_probe_frees_its_slot() -> None:
    clock = ManualClock()
    breaker = opened(clock)

    async def main() -> None:
        entered = asyncio.Event()

        async def probe() -> None:
            async with breaker.guard() as permit:
                assert permit.is_probe
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(probe())
        await entered.wait()
        clock.advance(10)
        assert breaker.try_acquire() is None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        seen = breaker.snapshot()
        assert (seen.state, seen.is_probing, seen.counts.ignored) == ("HALF_OPEN", False, 1)
        assert breaker.try_acquire() is not None

    asyncio.run(main())


def test_a_coroutine_function_stays_one() -> None:
    breaker = Breaker(threshold=1, clock=ManualClock(), counts_result=lambda text: text == "busy")

    @breaker.protect
    async def ask(answer: str) -> str:
        """Asks."""
        await asyncio.sleep(0)
        return answer

    class Client:
        async def __call__(self, answer: str) -> str:
            return answer

    assert inspect.iscoroutinefunction(ask)
    assert asyncio.run(ask("fine")) == "fine"
    assert asyncio.run(breaker.protect(Client())("fine")) == "fine"
    assert breaker.snapshot().counts.successes == 2
    assert asyncio.run(ask("busy")) == "busy"
    with pytest.raises(loki.BreakerOpen):
        asyncio.run(ask("fine"))


def test_of_many_tasks_one_probes() -> None:
    breaker = opened(ManualClock())

    async def main() -> list[object]:
        async def ask() -> None:
            async with breaker.guard():
                await asyncio.sleep(0)

        return list(await asyncio.gather(*(ask() for _ in range(50)), return_exceptions=True))

    results = asyncio.run(main())
    assert results.count(None) == 1
    assert sum(isinstance(result, loki.BreakerOpen) for result in results) == 49


# --- listeners ------------------------------------------------------------------------------------


def test_listeners_hear_each_change_in_order() -> None:
    clock = ManualClock()
    breaker = Breaker(threshold=1, recovery_threshold=1, clock=clock, name="api")
    heard: list[Transition] = []
    breaker.listen(heard.append)
    with pytest.raises(OSError, match="down"), breaker.guard():
        raise OSError("down")
    opened_at = clock.now()
    clock.advance(300)
    with breaker.guard():
        assert [change.after for change in heard] == ["OPEN", "HALF_OPEN"]
    assert heard[0] == Transition("api", "CLOSED", "OPEN", opened_at)
    assert heard[-1] == Transition("api", "HALF_OPEN", "CLOSED", clock.now())


def test_a_listener_may_use_the_breaker() -> None:
    breaker = Breaker(clock=ManualClock())
    heard: list[str] = []

    @breaker.listen
    def close_again(change: Transition) -> None:
        heard.append(f"{change.before} -> {change.after}, is {breaker.snapshot().state}")
        if change.after == "OPEN":
            breaker.close()

    breaker.open()
    assert heard == ["CLOSED -> OPEN, is OPEN", "OPEN -> CLOSED, is CLOSED"]


def test_a_listener_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    breaker = Breaker(threshold=1, clock=ManualClock(), name="api")
    heard: list[Transition] = []

    @breaker.listen
    def broken(_change: Transition) -> None:
        raise LookupError("oops")

    breaker.listen(heard.append)
    with pytest.raises(OSError, match="down"), breaker.guard():
        raise OSError("down")
    assert len(heard) == 1
    assert "a listener of the breaker api raised" in caplog.text
    assert "oops" in caplog.text


def test_the_order_holds_in_many_threads() -> None:
    """Each change begins where the last one that was heard of ended, and none is missing."""
    breaker = Breaker(threshold=1)
    heard: list[Transition] = []
    breaker.listen(heard.append)

    def trip_and_close(number: int) -> None:
        for _ in range(200):
            if permit := breaker.try_acquire():
                permit.failure()
            if number % 2:
                breaker.close()
            else:
                breaker.reset()

    in_threads(trip_and_close)
    assert len(heard) == breaker.snapshot().counts.transitions
    assert len(heard) >= 2 * 200
    assert all(a.after == b.before for a, b in itertools.pairwise(heard))


# --- lifetimes ------------------------------------------------------------------------------------


def test_a_breaker_that_was_not_made_says_so() -> None:
    """Not a crash: whoever shows local variables after an error in __init__ asks for its text."""

    class Early(Breaker):
        def __init__(self) -> None:
            self.open()
            super().__init__()

    unmade = Breaker.__new__(Breaker)
    for use in (unmade.try_acquire, unmade.guard, unmade.reset, lambda: repr(unmade), Early):
        with pytest.raises(RuntimeError, match="__init__ has not run"):
            use()
    with pytest.raises(ValueError, match="threshold") as raised:
        Breaker(threshold=0)
    frames = [entry.frame.f_locals for entry in raised.traceback]
    with pytest.raises(RuntimeError, match="or raised"):
        repr(frames[-2]["self"])
