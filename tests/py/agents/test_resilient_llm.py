"""A resilient model: waits, breakers, the next model, budgets, records; sync and async alike."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Answer, Request
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import AllRefused, BreakerOpen, LLMError
from loki.base.tokens import TokenUsage
from loki.decision.backoff import Backoff
from loki.decision.budget import Budget
from loki.decision.price import Price
from loki.testing import ManualClock
from support.llm import AsyncLLM, Kept, ScriptedLLM, answer, error, request

PLAIN = Backoff("5s", cap="5m", jitter=0)
PRICES = {"a": Price(1, 10), "b": Price(0.1, 1)}


OF_THE_DOCUMENTS = {
    "threshold": 3,
    "window": 60,
    "cooldown": 300,
    "cooldown_multiplier": 1,
    "cooldown_cap": "24h",
    "half_open_interval": 10,
    "recovery_threshold": 3,
}


class World:
    """Two models, a clock, and what was recorded."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.clock = ManualClock()
        self.calls = Kept()

    def llm(self, *models: ScriptedLLM, **more: Any) -> ResilientLLM:
        wrapped: list[Any] = [AsyncLLM(m) if "coroutine" in self.mode else m for m in models]
        given = {"backoff": PLAIN, "prices": PRICES, "calls": self.calls, "clock": self.clock}
        if not {"breakers", "breaker", "ways", "wait"} & set(more):
            given |= {"breaker": OF_THE_DOCUMENTS, "wait": 0}
        return ResilientLLM(*wrapped, **{**given, **more})

    def model(self, name: str, *lines: Any) -> ScriptedLLM:
        return ScriptedLLM(name, lines, self.clock)

    def ask(self, llm: ResilientLLM, asked: Request | None = None) -> Answer:
        question = asked or request()
        if self.mode.startswith("async"):
            return asyncio.run(llm.acomplete(question))
        return llm.complete(question)


@pytest.fixture(params=["sync", "sync coroutine", "async", "async coroutine"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_it_is_asked_again_after_a_wait(world: World) -> None:
    a = world.model("a", error(), error("connection"), answer())
    found = world.ask(world.llm(a))
    assert found.text == "done"
    assert a.asked == [0, 5, 15]
    assert world.calls.told == [("a", "ok", 3)]
    assert world.calls.all[0].latency_ms == 15_000


def test_a_wait_is_told_before_it_begins(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "loki")
    world.ask(world.llm(world.model("a", error(), error("rate_limit", retry_after=42.0), answer())))
    told = [record.getMessage() for record in caplog.records if "waiting" in record.getMessage()]
    assert len(told) == 2
    assert "waiting 5.0 s, then" in told[0]
    assert "waiting 42.0 s, then" in told[1]
    assert "is asked again (retry 2 of 5) error=" in told[1]


def test_the_service_says_how_long(world: World) -> None:
    a = world.model("a", error("rate_limit", retry_after=42.0), answer())
    world.ask(world.llm(a))
    assert a.asked == [0, 42]


def test_the_open_breaker_drops_the_other_retries(world: World) -> None:
    a, b = world.model("a", *[error()] * 9), world.model("b")
    llm = world.llm(a, b)
    assert world.ask(llm).text == "done"
    assert a.asked == [0, 5, 15], "the third failure within a minute opens it"
    assert b.asked == [15]
    for _ in range(5):
        world.ask(llm)
    assert len(a.asked) == 3, "no call goes out on an open breaker"
    assert world.calls.told[:4] == [
        ("a", "error", 3),
        ("b", "ok", 1),
        ("a", "refused", 0),
        ("b", "ok", 1),
    ]


def test_the_first_call_after_the_cooldown_probes_the_preferred_one(world: World) -> None:
    a, b = world.model("a", *[error()] * 3), world.model("b")
    llm = world.llm(a, b)
    world.ask(llm)
    world.clock.advance("5m")
    world.ask(llm)
    assert (len(a.asked), len(b.asked)) == (4, 1)
    world.ask(llm)
    assert (len(a.asked), len(b.asked)) == (4, 2), "between two probes the other one works"
    for _ in range(2):
        world.clock.advance("10s")
        world.ask(llm)
    for _ in range(3):
        world.ask(llm)
    assert (len(a.asked), len(b.asked)) == (9, 2), "three probes close it: work is back"


@pytest.mark.parametrize("kind", ["quota", "authentication", "permission", "not_found", "too_long"])
def test_what_asking_again_does_not_mend_goes_on_at_once(world: World, kind: Any) -> None:
    a, b = world.model("a", *[error(kind)] * 9), world.model("b")
    llm = world.llm(a, b)
    for _ in range(5):
        world.ask(llm)
    assert world.clock.waits == []
    assert len(a.asked) == 5, "and is no outage: its breaker stays closed"


def test_nobody_is_left(world: World) -> None:
    a, b = world.model("a", error("quota")), world.model("b", error("authentication"))
    with pytest.raises(LLMError, match="example/a: it is quota; example/b: it is auth") as raised:
        world.ask(world.llm(a, b))
    assert raised.value.gave_up
    assert not raised.value.retryable
    assert raised.value.kind == "quota"


def test_all_breakers_are_open(world: World) -> None:
    a, b = world.model("a", *[error()] * 9), world.model("b", *[error("server")] * 9)
    llm = world.llm(a, b)
    with pytest.raises(BreakerOpen) as raised:
        world.ask(llm)
    assert isinstance(raised.value, AllRefused)
    assert raised.value.calls == 6
    # a opened at 15 s, b at 30 s.
    assert (raised.value.name, raised.value.retry_after) == ("api/example/a", 300)
    with pytest.raises(BreakerOpen) as again:
        world.ask(llm)
    assert (again.value.name, again.value.retry_after) == ("api/example/a", 285)
    assert "overloaded" in again.value.last_error
    assert len(a.asked) + len(b.asked) == 6


def test_between_probes_is_said(world: World) -> None:
    a = world.model("a", *[error()] * 3)
    llm = world.llm(a)
    with pytest.raises(BreakerOpen):
        world.ask(llm)
    world.clock.advance("5m")
    world.ask(llm)
    with pytest.raises(BreakerOpen) as raised:
        world.ask(llm)
    assert (raised.value.between_probes, raised.value.retry_after) == (True, 10)


def test_the_refusal_can_be_pickled() -> None:
    refusal = AllRefused(
        "api/x", 5.0, 1.0, "down", between_probes=True, calls=3, tokens=7, cost=0.5
    )
    again = pickle.loads(pickle.dumps(refusal))
    assert (again.name, again.calls, again.tokens, again.cost) == ("api/x", 3, 7, 0.5)
    assert again.between_probes


def test_a_long_wait_is_not_waited_for(world: World) -> None:
    a, b = world.model("a", *[error("rate_limit", retry_after=3600.0)] * 2), world.model("b")
    world.ask(world.llm(a, b))
    assert (a.asked, b.asked, world.clock.waits) == ([0], [0], [])
    with pytest.raises(BreakerOpen) as raised:
        world.ask(world.llm(a))
    assert raised.value.retry_after == 3600


def test_a_service_that_asks_for_a_long_wait_is_left_alone_until_then(world: World) -> None:
    """By everyone who asks there; it is the first again afterwards."""
    failed = error("rate_limit", retry_after=3600.0)
    a, b = world.model("a", failed, answer("back")), world.model("b")
    llm = world.llm(a, b)
    for _ in range(3):
        assert world.ask(llm).text == "done"
        world.clock.advance("10m")
    alone = ResilientLLM(a, ways=llm.ways)
    with pytest.raises(AllRefused, match="it is rate_limit") as refused:
        world.ask(alone)
    assert (refused.value.calls, refused.value.retry_after) == (0, 1800)
    world.clock.advance("30m")
    assert world.ask(llm).text == "back"
    assert (a.asked, len(b.asked)) == ([0, 3600], 3)


def test_the_retry_budget_is_for_all_together(world: World) -> None:
    a = world.model("a", *[error("server")] * 99)
    breakers = loki.Breaker(threshold=1000, name="a", clock=world.clock)
    llm = world.llm(a, breakers={a.breaker: breakers}, backoff=Backoff(0, jitter=0))
    llm.ways.retry_budgets[a.breaker] = loki.RetryBudget(0.5, 0, 3, world.clock)
    for _ in range(10):
        with pytest.raises(LLMError):
            world.ask(llm)
    assert len(a.asked) <= 10 + 3 + 5


def test_a_budget_counts_failed_calls(world: World) -> None:
    took = TokenUsage(400, 0)
    a = world.model("a", *[error("malformed", usage=took)] * 9)
    llm = world.llm(a, budget=Budget(tokens=1000), breakers={a.breaker: _never_opens(world)})
    with pytest.raises(LLMError, match="the budget of 1,000 tokens is spent") as raised:
        world.ask(llm)
    assert (raised.value.kind, len(a.asked)) == ("budget", 3)
    assert raised.value.tokens == 1200
    assert world.calls.told == [("a", "error", 3)]
    with pytest.raises(LLMError, match="budget"):
        world.ask(llm)
    assert len(a.asked) == 3


def _never_opens(world: World) -> loki.Breaker:
    return loki.Breaker(threshold=1000, name="a", clock=world.clock)


def test_what_is_left_of_a_request_counts(world: World) -> None:
    a = world.model("a", *[error("malformed", usage=TokenUsage(400))] * 9)
    with pytest.raises(LLMError, match="budget of 500 tokens"):
        world.ask(world.llm(a), request(left=Budget(tokens=500)))
    assert len(a.asked) == 2
    late = world.model("b", *[error()] * 9)
    with pytest.raises(BreakerOpen, match="another 10 s"):
        world.ask(world.llm(late), request(left=Budget(seconds=12)))
    assert late.asked[-1] - late.asked[0] == 5, "a wait of 10 s would leave nothing"


def test_the_warning_comes_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "loki")
    llm = world.llm(world.model("a", *[answer(input=90)] * 9), budget=Budget(tokens=1000))
    for _ in range(9):
        world.ask(llm)
    assert [r.getMessage() for r in caplog.records] == [
        "[closed-loop] budget=tokens 800 of 1,000 tokens are spent"
    ]


def test_costs_add_up(world: World) -> None:
    failed = error("malformed", usage=TokenUsage(1000, 100))
    a, b = world.model("a", failed, failed, error("quota")), world.model("b", answer("x", 2000, 50))
    found = world.ask(world.llm(a, b))
    assert found.usage == TokenUsage(4000, 250)
    first, second = 2 * (1000 * 1 + 100 * 10) / 1e6, (2000 * 0.1 + 50) / 1e6
    assert found.cost == pytest.approx(first + second)
    assert [call.cost for call in world.calls.all] == pytest.approx([first, second])


def test_what_the_provider_says_of_the_cost_is_believed(world: World) -> None:
    a = world.model("a", Answer("x", usage=TokenUsage(10**6), cost=0.25))
    assert world.ask(world.llm(a)).cost == 0.25


@pytest.mark.parametrize("cost", [-100.0, float("nan"), float("inf")])
def test_a_cost_that_cannot_be_is_reckoned(world: World, cost: float) -> None:
    """A negative one would give the budget back, and one that is no number would never spend it."""
    line = Answer("done", usage=TokenUsage(1_000_000, 0), cost=cost)
    assert world.ask(world.llm(world.model("a", line))).cost == 1


@pytest.mark.parametrize("model", ["a", "gpt-5"])  # by a price of one's own, and by the others'
def test_tokens_that_cannot_be_are_none(world: World, model: str) -> None:
    """The answer counts, and no budget gets anything back."""
    line = Answer("done", usage=TokenUsage(10, -5_000_000, -3, 10**400))
    found = world.ask(world.llm(world.model(model, line)))
    assert (found.text, found.usage) == ("done", TokenUsage(10))
    assert found.cost == pytest.approx(1e-5, rel=0.5)


def test_a_price_that_is_not_known_is_none(world: World) -> None:
    found = world.ask(world.llm(world.model("house", answer())))
    assert found.cost is None
    assert world.calls.all[0].cost is None


def test_a_record_says_what_happened(world: World) -> None:
    failed = error("server", status=503, request_id="req_1")
    a, b = world.model("a", *[failed] * 3), world.model("b", Answer("x", model="b-2026"))
    world.ask(world.llm(a, b), request(task="t-1"))
    first, second = world.calls.all
    assert (first.status, first.error_kind, first.request_id) == (503, "server", "req_1")
    assert (first.task, first.breaker) == ("t-1", "api/example/a")
    assert (second.response_model, second.error, second.latency_ms) == ("b-2026", "", 0)


def test_the_run_is_stopped_in_a_wait(world: World) -> None:
    asked = request()

    def stop(_: Request) -> Answer:
        asked.cancelled.set()
        raise error()

    with pytest.raises(LLMError, match="stopped") as raised:
        world.ask(world.llm(world.model("a", stop, answer())), asked)
    assert raised.value.kind == "cancelled"
    assert world.clock.monotonic() == 0
    assert world.calls.told == [("a", "cancelled", 1)]


def test_a_question_that_is_not_worth_a_wait(world: World) -> None:
    a = world.model("a", error(), error())
    with pytest.raises(LLMError, match="overloaded"):
        world.ask(world.llm(a), request(retries=0))
    assert (a.asked, world.clock.waits) == ([0], [])


def test_ctrl_c_is_passed_on() -> None:
    world = World("sync")  # an event loop has its own way with it
    llm = world.llm(world.model("a", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        world.ask(llm)
    assert world.calls.told == [("a", "cancelled", 1)]
    assert world.ask(llm).text == "done"


def test_less_work_where_the_whole_does_not_fit(world: World) -> None:
    a, b = world.model("a", *[error("too_long")] * 2), world.model("b", error("authentication"))
    smaller = request("less", simpler=lambda: request("least"))
    found = world.ask(world.llm(a, b), request("all", simpler=lambda: smaller))
    assert [r.messages[0].text for r in a.requests] == ["all", "less", "least"]
    assert found.work == "minimal"
    assert [call.work for call in world.calls.all] == ["full", "full", "simpler", "minimal"]


def test_what_is_no_models_error(world: World) -> None:
    a, b = world.model("a", TypeError("no such argument")), world.model("b")
    assert world.ask(world.llm(a, b)).text == "done"
    assert world.calls.all[0].error_kind == "TypeError"
    with pytest.raises(loki.AgentError, match="TypeError: no such argument") as raised:
        world.ask(world.llm(world.model("a", TypeError("no such argument"))))
    assert raised.value.gave_up


def test_what_the_caller_raises_is_no_outage(world: World) -> None:
    """Whoever hears the answer failed: nobody is asked again, and no breaker counts it."""

    def heard(_: str) -> None:
        raise BrokenPipeError("nobody reads")

    def speaks(asked: Request) -> Answer:
        assert asked.on_text is not None
        asked.on_text("Hello")
        return answer()

    a, b = world.model("a", speaks), world.model("b")
    llm = world.llm(a, b)
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        world.ask(llm, request(on_text=heard))
    assert (a.asked, b.asked) == ([0], [])
    assert llm.ways.breakers[a.breaker].snapshot().failure_count == 0


def test_one_model_at_two_places(world: World) -> None:
    """Each says what it said itself."""
    one, other = world.model("a", error("quota")), world.model("a", error("authentication"))
    other.breaker = "api/elsewhere/a"
    with pytest.raises(LLMError, match="it is quota.*it is authentication"):
        world.ask(world.llm(one, other))


def _breakers(world: World, *models: ScriptedLLM) -> dict[str, loki.Breaker]:
    return {model.breaker: _never_opens(world) for model in models}


def test_waits_grow_and_each_model_has_five_retries(world: World) -> None:
    a, b = world.model("a", *[error()] * 9), world.model("b", *[error("server")] * 9)
    with pytest.raises(LLMError, match="overloaded.*server"):
        world.ask(world.llm(a, b, breakers=_breakers(world, a, b)))
    assert world.clock.waits == [5, 10, 20, 40, 80] * 2
    assert (len(a.asked), len(b.asked)) == (6, 6)


def test_the_longer_of_wait_and_hint_is_waited(world: World) -> None:
    a = world.model("a", error(retry_after=1.0), error(retry_after=300.0), answer())
    world.ask(world.llm(a, breakers=_breakers(world, a)))
    assert world.clock.waits == [5, 300]


def test_a_spent_retry_budget_leaves_it_to_the_next(world: World) -> None:
    a, b = world.model("a", *[error()] * 9), world.model("b")
    llm = world.llm(a, b, breakers=_breakers(world, a, b))
    llm.ways.retry_budgets[a.breaker] = loki.RetryBudget(0, 0, 1, world.clock)
    assert world.ask(llm).text == "done"
    assert (a.asked, b.asked) == ([0, 5], [5])


def test_a_breaker_that_only_a_person_closes_is_no_reason_to_come_back(world: World) -> None:
    closed = BreakerOpen("api/example/a", None, 0.0, "a person opened it")
    a, b = world.model("a", *[closed] * 2), world.model("b", error("authentication"))
    with pytest.raises(LLMError, match="it is authentication"):
        world.ask(world.llm(a, b))
    with pytest.raises(AllRefused, match="a person opened it") as raised:
        world.ask(world.llm(a))
    assert raised.value.retry_after is None


def test_less_is_asked_of_those_whom_it_helps_without_retries(world: World) -> None:
    """Not of who cannot be asked, nor of who failed at the whole for another reason."""
    down, key = world.model("a", *[error("timeout")] * 9), world.model("b", error("authentication"))
    long, odd = (
        world.model("c", *[error("too_long")] * 9),
        world.model("d", *[error("timeout")] * 9),
    )
    least = request("less", simpler=lambda: request("least"))
    llm = world.llm(down, key, long, odd, breakers={**_breakers(world, key, long, odd),
                    down.breaker: loki.Breaker(threshold=3, window=60, clock=world.clock)})  # fmt: skip
    with pytest.raises(BreakerOpen):
        world.ask(llm, request("all", simpler=lambda: least))
    asked = {m.model: [r.messages[0].text for r in m.requests] for m in (down, key, long, odd)}
    assert asked == {
        "a": ["all"] * 3,
        "b": ["all"],
        "c": ["all", "less", "least"],
        "d": [*["all"] * 6, "less", "least"],
    }


@pytest.mark.parametrize("models", [(), ("a", "a")])
def test_models_that_make_no_chain(models: tuple[str, ...]) -> None:
    with pytest.raises(loki.UsageError, match="expected one or more, each of them once"):
        ResilientLLM(*map(ScriptedLLM, models))
