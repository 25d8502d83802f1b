"""The tables ``attempts`` and ``failures``, from what the logs of all tasks say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loki.analysis.arrow import of_arrays, whole
from loki.analysis.attempt_log import RawAttempts


def attempts(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The table of all attempts.

    Args:
        raw: as they were read.
        tasks: ids of the tasks, by their numbers.
    """
    column = _columns(raw.table)
    failure = column["failure"]
    best = first(pc.struct_field(failure, "matches"))
    validation = column["validation"]
    skipped = pc.fill_null(pc.struct_field(validation, "skipped"), False)
    passed = pc.struct_field(validation, "passed")
    return of_arrays(
        "attempts",
        {
            **{name: column[name] for name in column if name not in _NESTED},
            "task": named(raw.tasks, tasks),
            "kind": pc.struct_field(best, "kind"),
            "decision": pc.struct_field(column["decision"], "action"),
            "phase": unless_blank(column["phase"]),
            "agent": unless_blank(column["agent"]),
            "fingerprint": pc.coalesce(
                pc.struct_field(failure, "fingerprint"), column["fingerprint"]
            ),
            "signature": pc.coalesce(pc.struct_field(failure, "signature"), column["signature"]),
            "validation_passed": pc.if_else(skipped, pa.scalar(None, pa.bool_()), passed),
            "regressions": pc.struct_field(column["regression"], "regressions"),
        },
    )


_NESTED = frozenset({"failure", "decision", "validation", "regression"})


def failures(raw: RawAttempts, tasks: Sequence[str]) -> pa.Table:
    """The failures of all attempts, in the order of `attempts`; ``sighting`` is not counted yet."""
    failed = pc.struct_field(whole(raw.table["failure"]), "message").is_valid()
    table, numbers = raw.table.filter(failed), raw.tasks.filter(failed)
    column = _columns(table)
    failure = column["failure"]
    best = first(pc.struct_field(failure, "matches"))
    own = (
        *("fingerprint", "signature", "tool", "language", "error_type", "error_code", "message"),
        *("path", "line", "column", "extension", "tests", "exit_code"),
    )
    return of_arrays(
        "failures",
        {
            **{name: pc.struct_field(failure, name) for name in own},
            **{
                name: pc.struct_field(best, name)
                for name in ("pattern", "kind", "confidence", "band", "strategy")
            },
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


def named(numbers: pa.Array, names: Sequence[str]) -> pa.Array:
    """Numbers as categories of these names."""
    texts = pa.array([name.encode("utf-8", "replace").decode() for name in names], pa.string())
    return pa.DictionaryArray.from_arrays(numbers, texts)


def unless_blank(texts: pa.Array) -> pa.Array:
    """Texts, null for those that say nothing."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def first(lists: pa.Array) -> pa.Array:
    """The first entry of each list; null where there is none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    starts = lists.offsets.slice(0, len(lists))
    places = pc.if_else(pc.greater(lengths, 0), starts, pa.scalar(None, starts.type))
    return lists.values.take(places)


def _columns(table: pa.Table) -> dict[str, pa.Array]:
    return dict(zip(table.column_names, map(whole, table.columns), strict=True))
