"""Calls through a service's bad days: what can be waited for is waited for, and few of them reach it."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import loki
from benchmarks.calls_simulated import outage
from loki.action.agent_protocol import Answer
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import LLMError
from loki.decision.breaker import CALLS
from loki.testing import ManualClock
from support.llm import ScriptedLLM, answer, error, request


def test_a_service_that_fails_now_and_then_is_no_outage() -> None:
    """Of 2,000 calls 4 % fail, 503 and 429, two of them in a row; no breaker opens, no call is lost."""
    clock = ManualClock()
    lines = [
        error("overloaded" if n % 50 else "rate_limit") if n % 25 < 1 else answer()
        for n in range(2000)
    ]
    lines[1001:1001] = [error(), answer(), error(), answer()]
    model = ScriptedLLM("a", lines, clock)
    llm = ResilientLLM(model, clock=clock)
    for _ in range(1900):
        assert llm.complete(request()).text == "done"
        clock.advance(0.5)
    assert llm.ways.breakers[model.breaker].snapshot().counts.transitions == 0


@pytest.mark.parametrize("lasts", [3, 9, 17, 31, 60, 100, 120, 123])
def test_an_outage_loses_nothing_and_is_asked_seldom(lasts: float) -> None:
    """Also a short one of a caller who is alone: its end is seen in one pause."""
    seen = outage(lasts)
    assert seen["lost"] == 0
    assert seen["dead"] <= 15
    assert seen["back"] <= CALLS["cooldown_cap"] + 0.8


def test_the_end_of_an_outage_is_seen_within_five_seconds_on_average() -> None:
    """With as many calls as are allowed; whatever moment it ends at: nobody knows it before."""
    random.seed(0)  # pauses are spread: the average of so many lies between 4.2 and 4.9 s
    seen = [outage(60 + number * 3.75) for number in range(48)]
    assert sum(one["back"] for one in seen) / len(seen) <= 5
    assert max(one["dead"] for one in seen if one["lasts"] <= 120) <= 15


def test_a_service_that_says_when_it_is_back_is_asked_then() -> None:
    seen = outage(120, tells=True)
    assert seen["lost"] == 0
    assert seen["dead"] <= 3
    assert seen["back"] <= 1


def test_whoever_does_not_wait_is_told_when() -> None:
    assert outage(120, wait=0)["lost"] > 5


def test_the_pause_is_as_long_as_the_service_asks() -> None:
    clock = ManualClock()
    model = ScriptedLLM(
        "a", [*[error()] * 2, error("rate_limit", retry_after=42.0), answer()], clock
    )
    ResilientLLM(model, clock=clock).complete(request())
    assert model.asked[-1] - model.asked[-2] == pytest.approx(42, abs=0.5)


def test_callers_in_parallel_wait_and_none_is_refused() -> None:
    """With real clocks: twenty threads, a service that is down for two thirds of a second."""
    lock, calls = threading.Lock(), [0, 0]
    over = threading.Event()

    class Model:
        provider, model, breaker = "example", "a", "api/example/a"

        def complete(self, _request: loki.Request) -> Answer:
            with lock:
                calls[over.is_set()] += 1
            if not over.is_set():
                raise LLMError("503", "overloaded")
            return Answer("done")

    fast = {"cooldown": 0.1, "cooldown_cap": 0.2, "half_open_interval": 0.02}
    llm = ResilientLLM(
        Model(), breaker=fast, wait=30, parallel=4, backoff=loki.Backoff("50ms", cap="50ms")
    )
    timer = threading.Timer(0.66, over.set)
    timer.start()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: llm.complete(request()).text, range(20)))
    assert answers == ["done"] * 20
    assert calls[0] <= 20


def test_the_preferred_one_is_left_in_peace_while_another_answers() -> None:
    clock = ManualClock()
    first = ScriptedLLM("a", [error()] * 99, clock)
    second = ScriptedLLM("b", [answer()] * 99, clock)
    llm = ResilientLLM(first, second, clock=clock)
    for _ in range(50):
        assert llm.complete(request()).text == "done"
        clock.advance(3.0)
    assert len(first.asked) <= 3 + 5


def test_the_numbers_of_the_documents_stay_what_they_are() -> None:
    clock = ManualClock()
    breaker = loki.Breaker(clock=clock)
    for _ in range(3):
        breaker.guard().failure("529")
    assert breaker.snapshot().retry_after == 300
    assert CALLS["failure_rate"] <= 1
