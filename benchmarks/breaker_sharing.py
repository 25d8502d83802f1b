"""Breakers that tasks of an event loop, or threads, share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.breaker_families import Parameters, came_and_refused, same
from benchmarks.floors import count
from benchmarks.job import Data, Family, Job


async def _nothing() -> None:
    pass


def _awaiting(work: Callable[[int], Awaitable[int]], calls: int) -> Job:
    """Each run is one event loop with one task; what starts it is spread over all calls."""

    async def all_of_it() -> int:
        return await work(calls)

    return Job(
        lambda: asyncio.run(all_of_it()),
        calls,
        lambda came: came_and_refused(came, calls - came),
        calls,
    )


def _async_loki(parameters: Parameters, _: Data) -> Job:
    import loki

    guard = loki.Breaker().guard

    async def work(calls: int) -> int:
        came = 0
        for _ in range(calls):
            async with guard():
                await _nothing()
                came += 1
        return came

    return _awaiting(work, count(parameters))


def _async_decorated(parameters: Parameters, _: Data) -> Job:
    import loki

    protected = loki.Breaker().protect(_nothing)

    async def work(calls: int) -> int:
        came = 0
        for _ in range(calls):
            await protected()
            came += 1
        return came

    return _awaiting(work, count(parameters))


def _async_bare(parameters: Parameters, _: Data) -> Job:
    async def work(calls: int) -> int:
        came = 0
        for _ in range(calls):
            await _nothing()
            came += 1
        return came

    return _awaiting(work, count(parameters))


def _async_aiobreaker(parameters: Parameters, _: Data) -> Job:
    from datetime import timedelta

    import aiobreaker

    breaker = aiobreaker.CircuitBreaker(fail_max=3, timeout_duration=timedelta(seconds=300))

    async def work(calls: int) -> int:
        came = 0
        for _ in range(calls):
            await breaker.call_async(_nothing)
            came += 1
        return came

    return _awaiting(work, count(parameters))


def _async_purgatory(parameters: Parameters, _: Data) -> Job:
    import purgatory

    factory = purgatory.AsyncCircuitBreakerFactory(3, 300)

    async def work(calls: int) -> int:
        came = 0
        for _ in range(calls):
            async with await factory.get_breaker("bench"):
                await _nothing()
                came += 1
        return came

    return _awaiting(work, count(parameters))


def _async_circuitbreaker(parameters: Parameters, _: Data) -> Job:
    import circuitbreaker

    protected = circuitbreaker.CircuitBreaker(3, 300, name="bench")(_nothing)

    async def work(calls: int) -> int:
        came = 0
        for _ in range(calls):
            await protected()
            came += 1
        return came

    return _awaiting(work, count(parameters))


ASYNC = Family(
    "calls",
    {
        "loki": _async_loki,
        "loki, decorated": _async_decorated,
        "the body alone": _async_bare,
        "aiobreaker": _async_aiobreaker,
        "purgatory": _async_purgatory,
        "circuitbreaker": _async_circuitbreaker,
    },
    same,
)


def _threads(call: Callable[[int], int], number: int, parameters: Parameters) -> Job:
    """Calls divided among threads that begin together; only their work is on the clock.

    Args:
        call: makes so many calls.
        number: of threads, where the case does not say.
        parameters: the case's.
    """
    number, calls = parameters.get("threads", number), count(parameters)

    def run() -> tuple[float, float, int]:
        came: list[int] = []
        ready = threading.Barrier(number + 1)

        def work() -> None:
            ready.wait()
            came.append(call(calls // number))

        threads = [threading.Thread(target=work) for _ in range(number)]
        for thread in threads:
            thread.start()
        ready.wait()
        begin, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin, time.process_time() - cpu, sum(came)

    def best() -> tuple[float, float, int]:
        return min(run() for _ in range(5))

    return Job(best, calls, lambda came: came_and_refused(came, calls - came), calls, timed=True)


def _permits(breaker: Any, calls: int) -> int:
    came = 0
    try_acquire = breaker.try_acquire
    for _ in range(calls):
        permit = try_acquire()
        if permit is not None:
            permit.success()
            came += 1
    return came


def _threads_loki(number: int) -> Callable[[Parameters, Data], Job]:
    def ready(parameters: Parameters, _: Data) -> Job:
        import loki

        breaker = loki.Breaker()
        return _threads(lambda calls: _permits(breaker, calls), number, parameters)

    return ready


def _threads_pybreaker(number: int) -> Callable[[Parameters, Data], Job]:
    def ready(parameters: Parameters, _: Data) -> Job:
        import pybreaker

        breaker = pybreaker.CircuitBreaker(fail_max=3, reset_timeout=300)

        def call(calls: int) -> int:
            for _ in range(calls):
                breaker.call(int)
            return calls

        return _threads(call, number, parameters)

    return ready


ONE_THREAD = "loki, one thread"
THREADS = Family(
    "calls",
    {
        "loki": _threads_loki(2),
        ONE_THREAD: _threads_loki(1),
        "pybreaker": _threads_pybreaker(2),
        "pybreaker, one thread": _threads_pybreaker(1),
    },
    same,
)
