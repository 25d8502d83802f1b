"""The table ``strategies``: every strategy that was used, and whether it mended its failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import listed, of_arrays
from loki.analysis.attempt_log import RawAttempts
from loki.analysis.attempts_table import by_name, first, named
from loki.memory.attempt import Attempt, CheckRecord
from loki.memory.strategy_use import uses

_OWN = (
    *("attempt", "timestamp", "result", "execution", "infrastructure", "phase", "fingerprint"),
    *("pattern_matched", "strategy_used", "error", "recognizer_version"),
)
"""What of an attempt tells what became of a strategy, besides its failure, checks and gates."""

_OF_THE_FAILURE = (
    *("message", "error_type", "error_code", "path", "tests", "frames", "normalized"),
    *("fingerprint", "recognizer_version"),
)
"""What of a failure, besides its best match, tells whether another one is the same."""


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
    gates = listed(pc.struct_field(column["validation"], "gates"))
    own = zip(*(column[name].to_pylist() for name in _OWN), strict=True)
    rest = zip(_failures(column["failure"]), _checks(column["checks"]), gates, strict=True)
    made = (
        (
            number,
            Attempt(
                **dict(zip(_OWN, values, strict=True)),
                action="",
                failure=failure,
                checks=checks,
                validation={"gates": ran},
            ),
        )
        for number, values, (failure, checks, ran) in zip(numbers, own, rest, strict=True)
    )
    for task, of_it in groupby(made, key=lambda pair: pair[0]):
        by_execution: dict[int, list[Attempt]] = {}
        for _, attempt in of_it:
            by_execution.setdefault(attempt.execution, []).append(attempt)
        for execution in sorted(by_execution):
            yield task, execution, by_execution[execution]


def _failures(column: pa.Array) -> Iterator[dict[str, Any]]:
    """The fields of each failure that are not null; none where nothing failed."""
    best = listed(first(pc.struct_field(column, "matches")))
    own = zip(*(listed(pc.struct_field(column, name)) for name in _OF_THE_FAILURE), strict=True)
    for values, match in zip(own, best, strict=True):
        said = zip(_OF_THE_FAILURE, values, strict=True)
        failure = {name: value for name, value in said if value is not None}
        if match is not None:
            failure["matches"] = [{**match, "coverage": 0.0}]
        yield failure


def _checks(lists: pa.Array) -> Iterator[tuple[CheckRecord, ...]]:
    """The checks of each attempt: name, and whether it passed."""
    each = lists.flatten()
    names, passed = (pc.struct_field(each, name).to_pylist() for name in ("name", "passed"))
    pairs = list(zip(names, passed, strict=True))
    made = {
        (name, passed): CheckRecord(name, "", "", passed=passed, exit_code=None, duration_ms=0)
        for name, passed in set(pairs)
    }
    records = map(made.__getitem__, pairs)
    for size in pc.list_value_length(lists).to_pylist():
        yield tuple(islice(records, size or 0))
