"""The cases of `benchmarks.decision`, as data: what is measured, against whom, what loki aims at."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.breaker_families import (
    CIRCUITBREAKER,
    CLOSED_NATIVE,
    DECORATED,
    GUARDED,
    PERMITS,
    PURGATORY,
    RAISED,
    REFUSED,
)
from benchmarks.breaker_files import BARE, SHARED_FILE
from benchmarks.breaker_sharing import ASYNC, ONE_THREAD, THREADS
from benchmarks.delay_families import DELAY, DELAY_NATIVE
from benchmarks.floors import EMPTY, FLOORS
from benchmarks.job import Case, Family

PEERS = (
    "tenacity",
    "stamina",
    "backoff",
    "pybreaker",
    "circuitbreaker",
    "purgatory",
    "aiobreaker",
)
"""Packages whose versions the report names."""

FAMILIES: dict[str, Family] = {
    "floors": Family("calls", FLOORS, lambda _, __: 1.0),
    "delay": DELAY,
    "delay in C++": DELAY_NATIVE,
    "permits": PERMITS,
    "decorator": DECORATED,
    "guard": GUARDED,
    "refused": REFUSED,
    "raised": RAISED,
    "asyncio": ASYNC,
    "threads": THREADS,
    "closed in C++": CLOSED_NATIVE,
    "shared file": SHARED_FILE,
}

_MANY, _FEW = 200_000, 20_000
_IN_C = 2_000_000
_LEAST = "backoff's full jitter begins at 0, below its own base; `same answer` is what lies in [base, cap]."

ROWS = (
    Case("floors", "floors", {"calls": _MANY}, note="What nobody can go below."),
    Case(
        "one delay",
        "delay",
        {"calls": _MANY},
        ((EMPTY, 1 / 3), ("tenacity", 1.0), ("stamina", 1.0), ("backoff", 1.0)),
        least=0,
        note=_LEAST,
    ),
    Case(
        "one delay, arguments by name",
        "delay",
        {"calls": _MANY, "by_name": True},
        ((EMPTY, 1 / 3),),
        least=0,
        rivals=("loki", EMPTY),
    ),
    *(
        Case(
            f"one delay in C++, {mode}",
            "delay in C++",
            {"calls": _IN_C, "mode": mode},
            limit=limit,
        )
        for mode, limit in (
            ("proportional", 30e-9),
            ("full", 30e-9),
            ("equal", 30e-9),
            ("decorrelated", None),
        )
    ),
)

_SYNC = ("pybreaker", CIRCUITBREAKER, PURGATORY)
_AIMED = "The aim is for the fastest peer that threads can share; it is held against all of them."


def _aims(factor: float, rivals: tuple[str, ...] = _SYNC) -> tuple[tuple[str, float], ...]:
    return tuple((rival, factor) for rival in rivals)


BREAKERS = (
    Case("breaker: permit and success", "permits", {"calls": _MANY}, ((EMPTY, 1 / 5),)),
    Case("breaker: decorator", "decorator", {"calls": _MANY}, _aims(1.0), note=_AIMED),
    Case("breaker: with guard", "guard", {"calls": _MANY}, _aims(1 / 1.5), note=_AIMED),
    Case("breaker: refused by try_acquire", "refused", {"calls": _MANY}, _aims(5.0)),
    Case("breaker: refused by exception", "raised", {"calls": _MANY}, _aims(1.0)),
    Case(
        "breaker: asyncio guard",
        "asyncio",
        {"calls": _MANY},
        _aims(2.0, ("aiobreaker", "purgatory", "circuitbreaker")),
    ),
    Case(
        "breaker: two threads",
        "threads",
        {"calls": _MANY},
        ((ONE_THREAD, 0.7),),
        note="The ratio to one thread is the share of its throughput that two keep together.",
    ),
    Case("breaker: closed, in C++", "closed in C++", {"calls": _IN_C}, limit=50e-9),
    Case(
        "breakers: one failure in a shared file",
        "shared file",
        {"calls": 50, "breakers": 1},
        ((BARE, 1 / 2),),
        note="On the disk before it is answered. Most of the time is the disk's.",
    ),
)

SERIES = (
    *(
        Case(
            "breaker: permit and success, by threads",
            "threads",
            {"calls": _MANY, "threads": threads},
            rivals=("loki", "pybreaker"),
            series=("threads", threads),
        )
        for threads in (1, 2, 4, 8)
    ),
    *(
        Case(
            "breakers: one failure in a shared file, by breakers in it",
            "shared file",
            {"calls": 50, "breakers": breakers},
            series=("breakers", breakers),
        )
        for breakers in (1, 10, 100, 1000)
    ),
)


def cases(quick: bool) -> list[Case]:
    """All cases; of a smoke run fewer calls."""
    if not quick:
        return [*ROWS, *BREAKERS, *SERIES]
    return [
        replace(case, parameters={**case.parameters, "calls": min(_FEW, case.parameters["calls"])})
        for case in (*ROWS, *BREAKERS, *SERIES)
    ]
