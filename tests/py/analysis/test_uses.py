"""What became of strategies, from tables: as `loki.memory.strategy_use` says of the records themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.history import make
from loki import analysis
from loki.analysis.tables import Tables
from loki.memory.attempt import Attempt
from loki.memory.history import log_name
from loki.workspace import Workspace


def by_the_records(root: Path) -> list[tuple[object, ...]]:
    """What `loki report` adds up."""
    return [
        (one.task, one.execution, use.attempt, use.pattern, use.strategy, use.cured)
        for one, _ in Workspace(root).executions()
        for use in one.uses
    ]


def by_the_table(tables: Tables) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in tables.strategies.to_pylist()]


def test_every_use_is_that_of_the_records(tmp_path: Path) -> None:
    make(tmp_path, 300)
    found = by_the_table(analysis.history(tmp_path))
    assert sorted(map(str, found)) == sorted(map(str, by_the_records(tmp_path)))
    assert {row[-1] for row in found} == {True, False, None}


@pytest.mark.parametrize("end", ["", '{"attempt": 9, "timest'])
def test_failures_alike_are_told_by_their_sites(tmp_path: Path, end: str) -> None:
    """Two texts of one failure have fingerprints of their own; an old record has none of today's."""
    said = ["alpha", "beta"]
    from loki import recognize

    lines = []
    for number, word in enumerate((*said, *said), 1):
        failure = recognize(f"src/{word}.ts(7,5): error TS2339: Property '{word}' is not there.")
        lines.append(
            Attempt(
                number,
                "2026-04-04T10:15:30.000Z",
                "",
                "failed",
                failure=failure.to_dict(),
                fingerprint=failure.fingerprint,
                recognizer_version=failure.recognizer_version,
                strategy_used="auto_fix" if number < 4 else None,
                pattern_matched=failure.pattern_id,
            )
        )
    lines[2] = replace(lines[2], recognizer_version=0, fingerprint="old")
    log = tmp_path / ".loki" / log_name("t")
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in lines) + end, "utf-8")
    found = by_the_table(analysis.history(tmp_path))
    assert found == by_the_records(tmp_path)
    assert len(found) == 3


def test_a_look_at_the_tables_does_not_wait_for_it(tmp_path: Path) -> None:
    make(tmp_path, 5)
    tables = analysis.history(tmp_path)
    assert "strategies: not read yet" in repr(tables)
    rows = tables.strategies.num_rows
    assert f"strategies: {rows}," in repr(tables)
