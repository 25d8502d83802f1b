"""Hedging: off unless asked for; the first answer wins, both calls are on record."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from loki.action.agent_protocol import Answer, Request
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import LLMError, StoreError
from loki.base.tokens import TokenUsage
from loki.decision.price import Price, Prices
from loki.testing import ManualClock
from support.llm import Kept, ScriptedLLM, answer, error, request

PRICES = {"a": Price(1, 1), "b": Price(1, 1)}


class World:
    """Two models; time passes when the first one says so."""

    def __init__(self, mode: str) -> None:
        self.mode, self.clock, self.calls = mode, ManualClock(), Kept()
        self.done = threading.Event()

    def slow(self, asked: Request) -> Answer:
        """Does not answer before it is told to stop."""
        self.clock.advance("31s")
        assert asked.cancelled.wait(60)
        raise LLMError("stopped", "cancelled", usage=TokenUsage(40, 2))

    def ask(self, *models: ScriptedLLM, hedge: Any = "30s", asked: Request | None = None) -> Answer:
        llm = ResilientLLM(*models, clock=self.clock, calls=self.calls, hedge=hedge, prices=PRICES)
        if self.mode == "async":
            return asyncio.run(llm.acomplete(asked or request()))
        return llm.complete(asked or request())

    def records(self, count: int) -> dict[str, str]:
        """Outcomes by model, once there are so many: in a thread, who loses ends by itself."""
        assert self.calls.wait_for(count)
        assert len(self.calls.all) == count
        return {call.model: call.outcome for call in self.calls.all}


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


class FullDisk(Prices):
    """What a call costs cannot be told: something breaks while its outcome is taken down."""

    def cost(self, model: str, usage: TokenUsage) -> float | None:  # noqa: ARG002
        raise StoreError("the disk is full")


def test_an_outcome_that_cannot_be_taken_down_is_told(world: World) -> None:
    """Nobody waits for ever for what a dead thread would say."""
    a, b = ScriptedLLM("a", [answer()], world.clock), ScriptedLLM("b", [], world.clock)
    llm = ResilientLLM(a, b, clock=world.clock, hedge="30s", prices=FullDisk())

    def ask() -> Answer:
        if world.mode == "async":
            return asyncio.run(llm.acomplete(request()))
        return llm.complete(request())

    with pytest.raises(StoreError, match="full"):
        run_in_time(ask)


def run_in_time(ask: Callable[[], Answer]) -> Answer:
    """In a thread that the test does not wait for, so that a hang is a failure."""
    found: Future[Answer] = Future()

    def work() -> None:
        try:
            found.set_result(ask())
        except BaseException as problem:
            found.set_exception(problem)

    threading.Thread(target=work, daemon=True).start()
    return found.result(10)


def test_it_is_off_unless_asked_for(world: World) -> None:
    def late(_: Request) -> Answer:
        world.clock.advance("1h")
        return answer("late")

    a, b = ScriptedLLM("a", [late], world.clock), ScriptedLLM("b", [], world.clock)
    assert world.ask(a, b, hedge=None).text == "late"
    assert not b.asked


def test_the_second_answers_first(world: World) -> None:
    a = ScriptedLLM("a", [world.slow], world.clock)
    b = ScriptedLLM("b", [answer("quick", 10, 1)], world.clock)
    found = world.ask(a, b)
    assert (found.text, found.usage.total) == ("quick", 11)
    assert (a.asked, b.asked) == ([0], [31])
    assert world.records(2) == {"a": "cancelled", "b": "ok"}
    took = {call.model: call.usage.total for call in world.calls.all}
    assert took["b"] == 11
    # What a cancelled task took, nobody tells, unless it ended by itself before it was cancelled.
    assert took["a"] in ({42} if world.mode == "sync" else {0, 42})


def test_the_first_answers_in_time(world: World) -> None:
    a, b = ScriptedLLM("a", [answer("quick")], world.clock), ScriptedLLM("b", [], world.clock)
    assert world.ask(a, b).text == "quick"
    assert not b.asked
    assert world.records(1) == {"a": "ok"}
    world.clock.advance("1h")
    assert not b.asked, "the alarm is off"


def test_the_first_still_wins_where_it_is_first(world: World) -> None:
    asked_second = threading.Event()

    def first(_: Request) -> Answer:
        world.clock.advance("31s")
        assert asked_second.wait(60)
        return answer("first")

    def second(asked: Request) -> Answer:
        asked_second.set()
        assert asked.cancelled.wait(60)
        raise error("cancelled")

    a, b = ScriptedLLM("a", [first], world.clock), ScriptedLLM("b", [second], world.clock)
    assert world.ask(a, b).text == "first"
    assert world.records(2) == {"a": "ok", "b": "cancelled"}


def test_a_failed_first_waits_for_the_second(world: World) -> None:
    asked_second = threading.Event()

    def first(_: Request) -> Answer:
        world.clock.advance("31s")
        assert asked_second.wait(60)
        raise error("quota")

    def second(_: Request) -> Answer:
        asked_second.set()
        return answer("second")

    a, b = ScriptedLLM("a", [first], world.clock), ScriptedLLM("b", [second], world.clock)
    assert world.ask(a, b).text == "second"
    assert set(world.records(2)) == {"a", "b"}


def test_where_both_fail_the_chain_goes_on(world: World) -> None:
    asked_second = threading.Event()

    def first(_: Request) -> Answer:
        world.clock.advance("31s")
        assert asked_second.wait(60)
        raise error("quota")

    def second(_: Request) -> Answer:
        asked_second.set()
        raise error("server")

    a = ScriptedLLM("a", [first], world.clock)
    b = ScriptedLLM("b", [second, answer("after all")], world.clock)
    assert world.ask(a, b).text == "after all"
    assert world.calls.wait_for(3)
    outcomes = [call.outcome for call in world.calls.all if call.model == "b"]
    assert sorted(outcomes) == ["error", "ok"], "written as each ends"


def test_no_hedge_goes_to_an_open_breaker(world: World) -> None:
    def first(_: Request) -> Answer:
        world.clock.advance("31s")
        return answer("slow")

    a, b = ScriptedLLM("a", [first], world.clock), ScriptedLLM("b", [], world.clock)
    llm = ResilientLLM(a, b, clock=world.clock, calls=world.calls, hedge="30s", prices=PRICES)
    llm.ways.breakers[b.breaker].isolate()  # it would cool down in 31 s
    found = (
        asyncio.run(llm.acomplete(request())) if world.mode == "async" else llm.complete(request())
    )
    assert found.text == "slow"
    assert not b.asked


def test_a_stopped_run_stops_both(world: World) -> None:
    asked = request()
    both = threading.Barrier(2, action=asked.cancelled.set, timeout=60)

    def first(mine: Request) -> Answer:
        world.clock.advance("31s")
        both.wait()
        assert mine.cancelled.wait(60)
        raise error("cancelled")

    def second(mine: Request) -> Answer:
        both.wait()
        assert mine.cancelled.wait(60)
        raise error("cancelled")

    a, b = ScriptedLLM("a", [first], world.clock), ScriptedLLM("b", [second], world.clock)
    with pytest.raises(LLMError, match="stopped"):
        world.ask(a, b, asked=asked)
    assert world.records(2) == {"a": "cancelled", "b": "cancelled"}
