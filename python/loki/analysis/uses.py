"""The table ``strategies``: every strategy that was used, and whether it mended its failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import of_arrays
from loki.analysis.attempt_log import RawAttempts
from loki.analysis.attempts import by_name, named
from loki.memory.attempt import Attempt, CheckRecord
from loki.memory.strategy_use import uses

_OWN = (
    *("attempt", "timestamp", "result", "execution", "infrastructure", "phase", "fingerprint"),
    *("pattern_matched", "strategy_used", "error", "recognizer_version"),
)
"""What of an attempt tells what became of a strategy, besides its failure, checks and gates."""


def strategies(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The table of all strategies used, task by task, as `loki.memory.strategy_use` judges them.

    Args:
        raw: the attempts, as they were read.
        tasks: ids of the tasks, by their numbers.
    """
    found = [
        (task, execution, use)
        for task, execution, attempts in _executions(raw)
        for use in uses(attempts)
    ]
    every = [use for _, _, use in found]
    return of_arrays(
        "strategies",
        {
            "task": named(pa.array([task for task, _, _ in found], pa.int32()), tasks),
            "execution": pa.array([execution for _, execution, _ in found], pa.int64()),
            "attempt": pa.array([use.attempt for use in every], pa.int64()),
            "pattern": pa.array([use.pattern for use in every], pa.string()),
            "strategy": pa.array([use.strategy for use in every], pa.string()),
            "mended": pa.array([use.cured for use in every], pa.bool_()),
        },
    )


def _executions(raw: RawAttempts) -> Iterator[tuple[int, int, list[Attempt]]]:
    """The tasks and executions in which a strategy was used, with their attempts in order."""
    used = pc.unique(raw.tasks.filter(raw.table["strategy_used"].is_valid().combine_chunks()))
    here = pc.is_in(raw.tasks, used)
    table, numbers = raw.table.filter(here), raw.tasks.filter(here).to_pylist()
    column = by_name(table.select((*_OWN, "failure", "checks", "validation")))
    failures, gates = column["failure"], pc.struct_field(column["validation"], "gates")
    own = zip(*(column[name].to_pylist() for name in _OWN), strict=True)
    rest = zip(_checks(column["checks"]), gates.to_pylist(), strict=True)
    made = (
        (
            number,
            Attempt(
                **dict(zip(_OWN, values, strict=True)),
                action="",
                failure=_Failure(failures, row),
                checks=checks,
                validation={"gates": ran},
            ),
        )
        for row, (number, values, (checks, ran)) in enumerate(zip(numbers, own, rest, strict=True))
    )
    for task, of_it in groupby(made, key=lambda pair: pair[0]):
        by_execution: dict[int, list[Attempt]] = {}
        for _, attempt in of_it:
            by_execution.setdefault(attempt.execution, []).append(attempt)
        for execution in sorted(by_execution):
            yield task, execution, by_execution[execution]


class _Failure(Mapping[str, Any]):
    """A failure's own fields, taken out of Arrow when somebody asks: most are told by fingerprints."""

    __slots__ = ("_column", "_kept", "_row")

    def __init__(self, column: pa.Array, row: int) -> None:
        self._column, self._row = column, row
        self._kept: dict[str, Any] | None = None

    def _fields(self) -> dict[str, Any]:
        if self._kept is None:
            said = self._column[self._row].as_py() or {}
            self._kept = {name: value for name, value in said.items() if value is not None}
            if matches := self._kept.get("matches"):
                self._kept["matches"] = [{**match, "coverage": 0.0} for match in matches[:1]]
        return self._kept

    def __getitem__(self, name: str) -> Any:
        return self._fields()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())


def _checks(lists: pa.Array) -> Iterator[tuple[CheckRecord, ...]]:
    """The checks of each attempt: name, and whether it passed."""
    each = lists.flatten()
    names = pc.struct_field(each, "name").to_pylist()
    passed = pc.struct_field(each, "passed").to_pylist()
    begin = 0
    for length in pc.list_value_length(lists).to_pylist():
        end = begin + (length or 0)
        yield tuple(
            CheckRecord(names[n], "", "", passed=passed[n], exit_code=None, duration_ms=0)
            for n in range(begin, end)
        )
        begin = end
