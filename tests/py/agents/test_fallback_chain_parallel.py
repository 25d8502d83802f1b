"""Threads and tasks: calls in parallel after an outage, and cancellation."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from loki.action.agent_protocol import Answer, Request
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import LLMError
from loki.decision.backoff import Backoff
from loki.testing import ManualClock
from support.llm import Kept, ScriptedLLM, answer, error, request

PLAIN = Backoff("5s", cap="5m", jitter=0)


class StoppedClock(ManualClock):
    """A clock that stands still while somebody waits; the wait ends when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Event()

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        self.waits.append(seconds)
        self.waiting.set()
        assert cancelled.wait(60)


def test_calls_in_parallel_ramp_up_after_an_outage() -> None:
    """However many ask: after the outage two go out at a time, and the others as those are done."""
    clock = StoppedClock()
    inside: queue.Queue[None] = queue.Queue()
    go = threading.Semaphore(0)

    def work(_: Request) -> Answer:
        inside.put(None)
        assert go.acquire(timeout=60)
        return answer()

    a = ScriptedLLM("a", [*[answer()] * 3, *[work] * 8], clock)
    llm = ResilientLLM(a, clock=clock, backoff=PLAIN, parallel=4)
    llm.ways.breakers[a.breaker].open()
    clock.advance("5m")
    for _ in range(3):
        llm.complete(request())
        clock.advance("10s")
    limiter = llm.ways.limiters[a.breaker]
    assert limiter.capacity == 2, "closed again, at 50 %"
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(llm.complete, request()) for _ in range(8)]
        for _ in range(4):
            for _ in range(2):
                inside.get(timeout=60)
            assert limiter.in_use == 2
            assert inside.empty(), "no third one goes out"
            for _ in range(2):
                go.release()
        assert all(answer.result(10).text == "done" for answer in answers)


def test_a_failure_while_capacity_grows_begins_anew() -> None:
    clock = ManualClock()
    a = ScriptedLLM("a", [*[answer()] * 4, error("quota"), error(), answer()], clock)
    llm = ResilientLLM(a, clock=clock, backoff=Backoff("1s", cap="5m", jitter=0), parallel=4)
    llm.ways.breakers[a.breaker].open()
    clock.advance("5m")
    for _ in range(3):
        llm.complete(request())
        clock.advance("10s")
    limiter = llm.ways.limiters[a.breaker]
    clock.advance("60s")
    assert limiter.capacity == 3
    llm.complete(request())
    with pytest.raises(LLMError):
        llm.complete(request())
    assert limiter.capacity == 3, "a spent quota says nothing of the service"
    llm.complete(request())
    assert limiter.capacity == 2


def test_cancelling_the_task_ends_a_wait_at_once() -> None:
    clock, calls, asked = StoppedClock(), Kept(), request()
    a = ScriptedLLM("a", [error()] * 3)
    llm = ResilientLLM(a, clock=clock, calls=calls)

    async def main() -> None:
        task = asyncio.ensure_future(llm.acomplete(asked))
        assert await asyncio.to_thread(clock.waiting.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    waits = [one for one in threading.enumerate() if one.name == "loki-wait"]
    for one in waits:
        one.join(60)
        assert not one.is_alive(), "nobody waits any more"
    assert (len(a.asked), calls.told) == (1, [("a", "error", 1)])


def test_cancelling_the_task_ends_a_call_in_a_thread() -> None:
    started = threading.Event()

    def work(asked: Request) -> Answer:
        started.set()
        assert asked.cancelled.wait(60), "the adapter is told"
        raise error("cancelled")

    calls, asked = Kept(), request()
    llm = ResilientLLM(ScriptedLLM("a", [work]), calls=calls)

    async def main() -> None:
        task = asyncio.ensure_future(llm.acomplete(asked))
        assert await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not asked.cancelled.is_set(), "the request is the caller's"
    assert calls.told == [("a", "cancelled", 1)]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_stopped_run_waits_for_no_place(mode: str) -> None:
    """All places are taken by calls that do not end."""
    began, end = threading.Event(), threading.Event()

    def work(_: Request) -> Answer:
        began.set()
        assert end.wait(30)
        return answer()

    llm, calls = ScriptedLLM("a", [work]), Kept()
    resilient = ResilientLLM(llm, calls=calls, parallel=1)
    asked = request()

    def ask() -> Answer:
        if mode == "async":
            return asyncio.run(resilient.acomplete(asked))
        return resilient.complete(asked)

    with ThreadPoolExecutor(2) as threads:
        try:
            first = threads.submit(resilient.complete, request())
            assert began.wait(60)
            second = threads.submit(ask)
            limiter = resilient.ways.limiters[llm.breaker]
            while not (limiter.waiting or second.done()):
                end.wait(0.001)
            asked.cancelled.set()
            with pytest.raises(LLMError, match="stopped"):
                second.result(10)
            assert (limiter.waiting, limiter.in_use) == (0, 1)
        finally:
            end.set()
        assert first.result(10).text == "done"
    assert len(llm.asked) == 1
