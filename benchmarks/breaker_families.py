"""Circuit breakers around work that does nothing.

What a rival did is part of its answer: calls that came through, and calls that were refused.
"""

from __future__ import annotations

from typing import Any

from benchmarks.floors import FLOORS, count, native
from benchmarks.job import Data, Family, Job

CIRCUITBREAKER = "circuitbreaker, not thread-safe"
PURGATORY = "purgatory, not thread-safe"

Parameters = dict[str, Any]


class Tally:
    """The body: counts how often it was called."""

    calls = 0

    def __call__(self) -> None:
        """Work that is as good as none."""
        self.calls += 1


def same(mine: list[int], other: list[int]) -> float:
    """Whether as many calls came through, and as many were refused."""
    return float(mine == other)


def came_and_refused(came: int, refused: int) -> list[int]:
    """The answer."""
    return [came, refused]


def _calling(protected: Any, calls: int, body: Tally) -> Job:
    """Each run calls a protected function so often."""

    def run() -> int:
        body.calls = 0
        for _ in range(calls):
            protected()
        return body.calls

    return Job(run, calls, lambda came: came_and_refused(came, calls - came), calls)


# --- closed: permits, a decorator, `with` ---------------------------------------------------------


def _permits_loki(parameters: Parameters, _: Data) -> Job:
    import loki

    breaker, calls = loki.Breaker(), count(parameters)

    def run() -> int:
        granted = 0
        try_acquire = breaker.try_acquire
        for _ in range(calls):
            permit = try_acquire()
            if permit is not None:
                permit.success()
                granted += 1
        return granted

    return Job(run, calls, lambda came: came_and_refused(came, calls - came), calls)


PERMITS = Family("calls", {"loki": _permits_loki, **FLOORS}, same)


def _decorated_loki(parameters: Parameters, _: Data) -> Job:
    import loki

    body = Tally()
    return _calling(loki.Breaker().protect(body.__call__), count(parameters), body)


def _decorated_pybreaker(parameters: Parameters, _: Data) -> Job:
    import pybreaker

    body = Tally()
    breaker = pybreaker.CircuitBreaker(fail_max=3, reset_timeout=300)
    return _calling(breaker(body.__call__), count(parameters), body)


def _decorated_circuitbreaker(parameters: Parameters, _: Data) -> Job:
    import circuitbreaker

    body = Tally()
    breaker = circuitbreaker.CircuitBreaker(3, 300, name="bench")
    return _calling(breaker(body.__call__), count(parameters), body)


def _decorated_purgatory(parameters: Parameters, _: Data) -> Job:
    import purgatory

    body = Tally()
    factory = purgatory.SyncCircuitBreakerFactory(3, 300)
    return _calling(factory("bench")(body.__call__), count(parameters), body)


def _bare(parameters: Parameters, _: Data) -> Job:
    body = Tally()
    return _calling(body.__call__, count(parameters), body)


DECORATED = Family(
    "calls",
    {
        "loki": _decorated_loki,
        "the body alone": _bare,
        "pybreaker": _decorated_pybreaker,
        CIRCUITBREAKER: _decorated_circuitbreaker,
        PURGATORY: _decorated_purgatory,
    },
    same,
)


def _guarding(context: Any, calls: int) -> Job:
    """Each run enters what `context` makes so often."""

    def run() -> int:
        came = 0
        for _ in range(calls):
            with context():
                came += 1
        return came

    return Job(run, calls, lambda came: came_and_refused(came, calls - came), calls)


def _guarded_loki(parameters: Parameters, _: Data) -> Job:
    import loki

    return _guarding(loki.Breaker().guard, count(parameters))


def _guarded_pybreaker(parameters: Parameters, _: Data) -> Job:
    import pybreaker

    breaker = pybreaker.CircuitBreaker(fail_max=3, reset_timeout=300)
    return _guarding(breaker.calling, count(parameters))


def _guarded_circuitbreaker(parameters: Parameters, _: Data) -> Job:
    """Its context manager counts outcomes only: it refuses nothing."""
    import circuitbreaker

    breaker = circuitbreaker.CircuitBreaker(3, 300, name="bench")
    return _guarding(lambda: breaker, count(parameters))


def _guarded_purgatory(parameters: Parameters, _: Data) -> Job:
    import purgatory

    factory = purgatory.SyncCircuitBreakerFactory(3, 300)
    return _guarding(lambda: factory.get_breaker("bench"), count(parameters))


GUARDED = Family(
    "calls",
    {
        "loki": _guarded_loki,
        "empty with": FLOORS["empty with"],
        "pybreaker": _guarded_pybreaker,
        CIRCUITBREAKER: _guarded_circuitbreaker,
        PURGATORY: _guarded_purgatory,
    },
    same,
)


# --- open: refusals -------------------------------------------------------------------------------


def _opened_loki() -> Any:
    import loki

    breaker = loki.Breaker(cooldown="1h")
    breaker.open()
    return breaker


def _refused_loki(parameters: Parameters, _: Data) -> Job:
    breaker, calls = _opened_loki(), count(parameters)

    def run() -> int:
        refused = 0
        try_acquire = breaker.try_acquire
        for _ in range(calls):
            refused += try_acquire() is None
        return refused

    return Job(run, calls, lambda refused: came_and_refused(calls - refused, refused), calls)


def _raising(protected: Any, error: type[BaseException], calls: int) -> Job:
    """Each run is refused so often, by exception."""

    def run() -> int:
        refused = 0
        for _ in range(calls):
            try:
                protected()
            except error:
                refused += 1
        return refused

    return Job(run, calls, lambda refused: came_and_refused(calls - refused, refused), calls)


def _raised_loki(parameters: Parameters, _: Data) -> Job:
    import loki

    return _raising(_opened_loki().protect(Tally().__call__), loki.BreakerOpen, count(parameters))


def _raised_pybreaker(parameters: Parameters, _: Data) -> Job:
    import pybreaker

    breaker = pybreaker.CircuitBreaker(fail_max=3, reset_timeout=3600)
    breaker.open()
    return _raising(breaker(Tally().__call__), pybreaker.CircuitBreakerError, count(parameters))


def _raised_circuitbreaker(parameters: Parameters, _: Data) -> Job:
    import circuitbreaker

    breaker = circuitbreaker.CircuitBreaker(1, 3600, name="bench")
    try:
        with breaker:
            raise OSError
    except OSError:
        pass
    error = circuitbreaker.CircuitBreakerError
    return _raising(breaker(Tally().__call__), error, count(parameters))


def _raised_purgatory(parameters: Parameters, _: Data) -> Job:
    import purgatory
    from purgatory.domain.model import OpenedState

    factory = purgatory.SyncCircuitBreakerFactory(1, 3600)
    try:
        with factory.get_breaker("bench"):
            raise OSError
    except OSError:
        pass
    return _raising(factory("bench")(Tally().__call__), OpenedState, count(parameters))


_RAISED = {
    "pybreaker": _raised_pybreaker,
    CIRCUITBREAKER: _raised_circuitbreaker,
    PURGATORY: _raised_purgatory,
}
REFUSED = Family("calls", {"loki": _refused_loki, **_RAISED}, same)
RAISED = Family(
    "calls",
    {"loki": _raised_loki, "raise and catch": FLOORS["raise and catch"], **_RAISED},
    same,
)


# --- without Python -------------------------------------------------------------------------------


def _closed_native(parameters: Parameters, _: Data) -> Job:
    check, calls = native().closed_checks, count(parameters)
    return Job(
        lambda: check(calls), calls, lambda came: came_and_refused(came, calls - came), calls
    )


CLOSED_NATIVE = Family("calls", {"loki": _closed_native}, same)
