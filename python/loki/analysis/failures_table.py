"""The table ``failures``: all that was seen to fail, in attempts, in agents' tool calls and in tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import of_arrays, of_rows, whole
from loki.analysis.attempt_log import RawAttempts
from loki.analysis.attempts_table import by_name, first, named
from loki.memory.suites.suite_run import SuiteRun
from loki.memory.tool_failure import ToolFailure
from loki.recognition.failure import Failure

OWN = (
    *("fingerprint", "signature", "tool", "language", "error_type", "error_code", "message"),
    *("path", "line", "column", "extension", "tests", "exit_code"),
)
"""What the table has of a failure itself."""

OF_THE_MATCH = ("pattern", "kind", "confidence", "band", "strategy")
"""And of its best match."""


IN_SHORT = ("fingerprint", "signature", "pattern", "kind", "message", "path", "line")
"""What other tables have of a failure."""


def failures(
    raw: RawAttempts,
    tasks: Sequence[str],
    calls: Iterable[ToolFailure] = (),
    runs: Iterable[SuiteRun] = (),
) -> pa.Table:
    """The table of all failures, by time.

    Args:
        raw: the attempts, as they were read; tasks: ids of the tasks, by their numbers.
        calls: agents' tool calls that failed; runs: of the project's tests.
    """
    others = of_rows(
        "failures", (*map(_of_call, calls), *(row for run in runs for row in _of_run(run)))
    )
    table = pa.concat_tables([of_attempts(raw, tasks), others])
    return with_sightings(table.unify_dictionaries().combine_chunks())


def of_attempts(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The failures of all attempts, in the order of `attempts`; ``sighting`` is not counted yet."""
    failed = pc.struct_field(whole(raw.table["failure"]), "message").is_valid()
    table, numbers = raw.table.filter(failed), raw.tasks.filter(failed)
    column = by_name(table)
    failure = column["failure"]
    best = first(pc.struct_field(failure, "matches"))
    return of_arrays(
        "failures",
        {
            **{name: pc.struct_field(failure, name) for name in OWN},
            **{name: pc.struct_field(best, name) for name in OF_THE_MATCH},
            **{name: column[name] for name in ("execution", "attempt", "timestamp")},
            "source": pa.repeat(pa.scalar("attempt"), len(numbers)),
            "task": named(numbers, tasks),
            "infrastructure": column["infrastructure"],
        },
    )


def with_sightings(table: pa.Table) -> pa.Table:
    """Failures by time, each with how often its fingerprint was seen by then."""
    table = table.take(pc.sort_indices(table, [("timestamp", "ascending")]))
    seen: dict[Any, int] = {}
    counted = []
    for code in table["fingerprint"].unify_dictionaries().combine_chunks().indices.to_pylist():
        seen[code] = number = seen.get(code, 0) + 1
        counted.append(None if code is None else number)
    place = table.schema.get_field_index("sighting")
    return table.set_column(place, table.schema.field(place), pa.array(counted, pa.int64()))


def of_failure(failure: Failure) -> dict[str, Any]:
    """What the table has of a failure, wherever it was seen."""
    match = failure.match
    return {
        **{name: getattr(failure, name) for name in OWN},
        **({name: getattr(match, name) for name in OF_THE_MATCH} if match else {}),
        "infrastructure": match is not None and match.is_infrastructure,
    }


def in_short(failure: Failure) -> dict[str, Any]:
    """What other tables have of a failure."""
    all_of_it = of_failure(failure)
    return {name: all_of_it.get(name) for name in IN_SHORT}


def _of_call(call: ToolFailure) -> Mapping[str, Any]:
    own = {"source": "tool call", "task": call.task or None, "timestamp": call.at}
    exit_code = call.failure.exit_code if call.exit_code is None else call.exit_code
    return {**of_failure(call.failure), **own, "exit_code": exit_code}


def _of_run(run: SuiteRun) -> Iterator[Mapping[str, Any]]:
    for one in (*run.reruns, *run.failures):
        yield {
            **of_failure(one.failure),
            "source": "test",
            "timestamp": one.started_at or run.started_at,
            "tests": one.failure.tests or (one.test,),
        }
