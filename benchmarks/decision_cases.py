"""The cases of `benchmarks.decision`, as data: what is measured, against whom, what loki aims at."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.delay_families import DELAY, DELAY_NATIVE
from benchmarks.floors import EMPTY, FLOORS
from benchmarks.job import Case, Family

PEERS = ("tenacity", "stamina", "backoff")
"""Packages whose versions the report names."""

FAMILIES: dict[str, Family] = {
    "floors": Family("calls", FLOORS, lambda _, __: 1.0),
    "delay": DELAY,
    "delay in C++": DELAY_NATIVE,
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


def cases(quick: bool) -> list[Case]:
    """All cases; of a smoke run fewer calls."""
    if not quick:
        return list(ROWS)
    return [replace(case, parameters={**case.parameters, "calls": _FEW}) for case in ROWS]
