"""How long to wait: one delay, after 1 to 20 failures in turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from benchmarks.floors import EMPTY, Rival, count, empty_pybind11, loop_over, native
from benchmarks.job import Data, Family, Job

BASE, CAP = 5.0, 300.0
FAILURES = range(1, 21)


def _loki(parameters: dict[str, Any], _: Data) -> Job:
    import loki

    delay = loki.Backoff(BASE, cap=CAP).delay
    if not parameters.get("by_name"):

        def run() -> None:
            for failures in given:
                delay(failures, "login test", 1)
    else:

        def run() -> None:
            for failures in given:
                delay(failures, key="login test", offset=1)

    calls = count(parameters)
    given = (list(FAILURES) * (calls // len(FAILURES) + 1))[:calls]
    schedule = [delay(n, "login test", 1) for n in FAILURES]
    return Job(run, calls, lambda _: schedule, calls)


def _tenacity(parameters: dict[str, Any], _: Data) -> Job:
    from tenacity import wait_exponential_jitter

    wait: Any = wait_exponential_jitter(multiplier=BASE, max=CAP, jitter=BASE / 10)
    states = [SimpleNamespace(attempt_number=n) for n in FAILURES]
    schedule = [wait(state) for state in states]
    return loop_over(wait, states, count(parameters), lambda _: schedule)


def _stamina(parameters: dict[str, Any], _: Data) -> Job:
    from stamina import _core

    calls = count(parameters)
    given = (list(FAILURES) * (calls // len(FAILURES) + 1))[:calls]

    def run() -> None:
        for failures in given:
            _core._compute_backoff(failures, CAP, BASE, 2, BASE / 10)

    schedule = [_core._compute_backoff(n, CAP, BASE, 2, BASE / 10) for n in FAILURES]
    return Job(run, calls, lambda _: schedule, calls)


def _backoff(parameters: dict[str, Any], _: Data) -> Job:
    """Its generator forgets which failure it is at, so that all but the first 20 are the cap."""
    import backoff

    waits = backoff.expo(base=2, factor=BASE, max_value=CAP)
    next(waits)
    calls = count(parameters)
    schedule = [backoff.full_jitter(next(waits)) for _ in FAILURES]

    def run() -> None:
        for _ in range(calls):
            backoff.full_jitter(next(waits))

    return Job(run, calls, lambda _: schedule, calls)


def _within(_: list[float], other: list[float]) -> float:
    """The share of delays in [base, cap], which is what all of them should agree on."""
    return sum(BASE <= delay <= CAP for delay in other) / len(other)


DELAY = Family(
    "calls",
    {
        "loki": _loki,
        EMPTY: empty_pybind11,
        "tenacity": _tenacity,
        "stamina": _stamina,
        "backoff": _backoff,
    },
    _within,
)


def _native(parameters: dict[str, Any], _: Data) -> Job:
    delays, calls = native().delays, count(parameters)
    return Job(lambda: delays(calls, parameters["mode"]), calls, lambda _: None, calls)


_NATIVE: dict[str, Rival] = {"loki": _native}
DELAY_NATIVE = Family("calls", _NATIVE, lambda _, __: 1.0)
