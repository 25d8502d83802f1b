"""The table ``attempts``, from what the logs of all tasks say."""

from __future__ import annotations

from collections.abc import Sequence

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
    column = by_name(raw.table)
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


def by_name(table: pa.Table) -> dict[str, pa.Array]:
    """The columns of a table, each in one piece."""
    return dict(zip(table.column_names, map(whole, table.columns), strict=True))
