"""Model calls of others' clients: outages are retried and counted, everything else passes untouched."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import loki
from loki import Monitor
from loki.testing import ManualClock

NAME = "api/openai/gpt-5"


class APIStatusError(Exception):
    """As the official clients raise it."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"Error code: {status}")
        self.status_code, self.body = status, None
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


class Wrapped(Exception):
    """As a framework wraps it."""


class GraphInterrupt(Exception):
    """How a framework steers its agent."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def monitor(tmp_path: Path, clock: ManualClock) -> Monitor:
    return Monitor(tmp_path, clock=clock)


class Model:
    """A function that raises what it is given, one after the other, and answers then."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self, question: str = "", *, suffix: str = "!") -> str:
        self.calls += 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return question + suffix

    async def ask(self, question: str = "", *, suffix: str = "!") -> str:
        return self(question, suffix=suffix)


def both(monitor: Monitor, model: Model, *, is_async: bool, **how: Any) -> str:
    if is_async:
        return asyncio.run(monitor.acall(NAME, model.ask, "Hello", **how))
    return monitor.call(NAME, model, "Hello", **how)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_arguments_go_in_and_the_answer_comes_out(monitor: Monitor, is_async: bool) -> None:
    assert both(monitor, Model(), is_async=is_async, suffix="?") == "Hello?"


def test_none_is_an_answer(monitor: Monitor) -> None:
    assert monitor.call(NAME, lambda: None) is None


def test_an_outage_is_retried_after_a_wait(
    monitor: Monitor, clock: ManualClock, is_async: bool
) -> None:
    model = Model(APIStatusError(503), ConnectionResetError("reset"))
    began = clock.monotonic()
    assert both(monitor, model, is_async=is_async) == "Hello!"
    assert model.calls == 3
    assert 12 < clock.monotonic() - began < 18  # 5 s and 10 s, jittered


def test_the_service_says_how_long_to_wait(monitor: Monitor, clock: ManualClock) -> None:
    model = Model(APIStatusError(429, **{"retry-after": "60"}))
    began = clock.monotonic()
    assert both(monitor, model, is_async=False) == "Hello!"
    assert clock.monotonic() - began >= 60


def test_a_wrapped_outage_is_one(monitor: Monitor) -> None:
    wrapped = Wrapped("model failed")
    wrapped.__cause__ = APIStatusError(529)
    assert both(monitor, Model(wrapped), is_async=False) == "Hello!"


def test_a_spent_retry_raises_the_original(tmp_path: Path, is_async: bool) -> None:
    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki/config.toml").write_text("[loop]\ninfrastructure_retries = 1\n", "utf-8")
    monitor = Monitor(tmp_path, clock=ManualClock())
    last = APIStatusError(503)
    with pytest.raises(APIStatusError) as caught:
        both(monitor, Model(APIStatusError(503), last), is_async=is_async)
    assert caught.value is last


def test_the_breaker_opens_and_nobody_is_asked_any_more(monitor: Monitor, is_async: bool) -> None:
    monitor.wait = 0
    model = Model(*(APIStatusError(503) for _ in range(9)))
    with pytest.raises(loki.BreakerOpen) as caught:
        both(monitor, model, is_async=is_async)
    assert model.calls == 3
    assert isinstance(caught.value.__cause__, APIStatusError)
    with pytest.raises(loki.BreakerOpen):
        both(monitor, model, is_async=is_async)
    assert model.calls == 3


def test_it_waits_until_the_breaker_lets_it_out(
    monitor: Monitor, clock: ManualClock, is_async: bool
) -> None:
    """Nobody has to ask again: 3 failures, a pause of 7.5 s, a probe that fails, one of 8.9 s, an answer."""
    began = clock.monotonic()
    model = Model(*(APIStatusError(503) for _ in range(4)))
    assert both(monitor, model, is_async=is_async) == "Hello!"
    assert model.calls == 5
    assert clock.monotonic() - began == pytest.approx(15 + 7.5 + 8.9, abs=2)


def test_it_waits_no_longer_than_it_is_told(tmp_path: Path, clock: ManualClock) -> None:
    monitor = Monitor(tmp_path, clock=clock, wait="1m")
    began, model = clock.monotonic(), Model(*(APIStatusError(503) for _ in range(99)))
    with pytest.raises(loki.BreakerOpen):
        both(monitor, model, is_async=False)
    assert 45 < clock.monotonic() - began <= 60


def test_breakers_take_arguments(tmp_path: Path, clock: ManualClock) -> None:
    monitor = Monitor(tmp_path, clock=clock, wait=0, breakers={"threshold": 2})
    model = Model(*(APIStatusError(503) for _ in range(9)))
    with pytest.raises(loki.BreakerOpen):
        both(monitor, model, is_async=False)
    assert model.calls == 2


@pytest.mark.parametrize(
    "error",
    [
        GraphInterrupt("asks a person"),
        ValueError("your own bug"),
        FileNotFoundError("no such file"),
        APIStatusError(400),
        APIStatusError(401),
        loki.AgentStuck("stuck"),
        StopIteration("x"),
    ],
    ids=lambda error: f"{type(error).__name__} {error}",
)
def test_every_other_exception_passes_untouched(monitor: Monitor, error: Exception) -> None:
    model = Model(error)
    with pytest.raises(type(error)) as caught:
        both(monitor, model, is_async=False)
    assert caught.value is error
    assert model.calls == 1
    assert monitor.workspace.breakers()[NAME].snapshot().failure_count == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_what_ends_a_program_ends_it(monitor: Monitor, error: BaseException) -> None:
    with pytest.raises(type(error)):
        both(monitor, Model(error), is_async=False)


def test_an_untouched_exception_has_no_frames_of_a_chain_as_its_context(monitor: Monitor) -> None:
    with pytest.raises(ValueError, match="bug") as caught:
        both(monitor, Model(ValueError("bug")), is_async=False)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_cancelling_ends_a_call_at_once(monitor: Monitor) -> None:
    began = threading.Event()

    async def never() -> None:
        began.set()
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(monitor.acall(NAME, never))
        while not began.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert monitor.workspace.breakers()[NAME].snapshot().failure_count == 0


def test_calls_are_recorded(monitor: Monitor, tmp_path: Path) -> None:
    both(monitor, Model(APIStatusError(503)), is_async=False)
    text = (tmp_path / ".loki/logs/calls.jsonl").read_text("utf-8")
    assert '"provider": "openai"' in text.replace('":"', '": "')
    assert text.count("\n") == 1
