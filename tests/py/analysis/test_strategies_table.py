"""What became of strategies, from tables: as `loki.memory.attempt_metrics` says of the records themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from benchmarks.history import make
from loki import Workspace, analysis, recognize
from loki.analysis.tables import Tables
from loki.memory.attempt import Attempt, CheckRecord, log_name
from loki.memory.attempt_metrics import PHASES, uses
from support.examples import examples


def by_the_records(root: Path) -> list[tuple[object, ...]]:
    """What `loki report` adds up."""
    return [
        (one.task, one.execution, use.attempt, use.pattern, use.strategy, use.cured)
        for one, _ in Workspace(root).executions()
        for use in one.uses
    ]


def by_the_table(tables: Tables) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in tables.strategies.to_pylist()]


def write(root: Path, records: Sequence[object], end: str = "") -> None:
    """The log of a task `t`."""
    log = root / ".loki" / log_name("t")
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps(one) + "\n" for one in records) + end, "utf-8")


def test_every_use_is_that_of_the_records(tmp_path: Path) -> None:
    make(tmp_path, 300)
    found = by_the_table(analysis.history(tmp_path))
    assert sorted(map(str, found)) == sorted(map(str, by_the_records(tmp_path)))
    assert {row[-1] for row in found} == {True, False, None}


@pytest.mark.parametrize("end", ["", '{"attempt": 9, "timest'])
def test_failures_alike_are_told_by_their_sites(tmp_path: Path, end: str) -> None:
    """Two texts of one failure have fingerprints of their own; an old record has none of today's."""
    said = ["alpha", "beta"]
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
    write(tmp_path, [one.to_dict() for one in lines], end)
    found = by_the_table(analysis.history(tmp_path))
    assert found == by_the_records(tmp_path)
    assert len(found) == 3


FAILURES = [
    recognize(text).to_dict()
    for text in (
        "src/alpha.ts(7,5): error TS2339: Property 'alpha' is not there.",
        "src/beta.ts(7,5): error TS2339: Property 'beta' is not there.",
        "FAILED tests/test_a.py::test_one - assert 1 == 2",
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nKeyError: 17',
        'Traceback (most recent call last):\n  File "a.py", line 3, in g\n    h()\nKeyError: 23',
    )
]
CHECKS = st.lists(
    st.builds(
        lambda name, passed: CheckRecord(
            name, "test", "make", passed=passed, exit_code=None, duration_ms=0
        ),
        st.sampled_from(["lint", "pytest"]),
        st.booleans(),
    ),
    max_size=2,
).map(tuple)
GATES = st.lists(st.sampled_from(["imports", "secrets"]), max_size=2)
ATTEMPTS = st.builds(
    lambda failure, **fields: replace(
        Attempt(1, "2026-04-04T10:15:30.000Z", "", **fields),
        failure=failure,
        fingerprint=failure and failure["fingerprint"],
        recognizer_version=failure and failure["recognizer_version"],
    ),
    st.none() | st.sampled_from(FAILURES),
    result=st.sampled_from(["failed", "failed", "failed", "success", "unverified"]),
    error=st.none() | st.just("boom"),
    strategy_used=st.none() | st.sampled_from(["auto_fix", "escalate"]),
    execution=st.integers(1, 2),
    phase=st.sampled_from(["", *PHASES]),
    infrastructure=st.sampled_from([False, False, False, True]),
    checks=CHECKS,
    validation=st.none() | st.builds(lambda gates: {"passed": False, "gates": gates}, GATES),
)


@hypothesis_settings(max_examples=examples(200))
@given(attempts=st.lists(ATTEMPTS, max_size=12))
def test_every_use_is_that_of_any_records(
    attempts: list[Attempt], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("uses")
    numbered = [replace(one, attempt=number) for number, one in enumerate(attempts, 1)]
    write(root, [one.to_dict() for one in numbered])
    records = [
        ("t", number, use.attempt, use.pattern, use.strategy, use.cured)
        for number in (1, 2)
        for use in uses(one for one in numbered if one.execution == number)
    ]
    assert by_the_table(analysis.history(root)) == records


def test_a_failure_whose_matches_are_not_there_does_no_harm(tmp_path: Path) -> None:
    lines = [
        Attempt(
            number,
            "2026-04-04T10:15:30.000Z",
            "",
            "failed",
            failure={**failure, "matches": [None]},
            fingerprint=failure["fingerprint"],
            recognizer_version=failure["recognizer_version"],
            strategy_used="auto_fix",
        ).to_dict()
        for number, failure in enumerate(FAILURES[:3], 1)
    ]
    write(tmp_path, lines)
    assert len(by_the_table(analysis.history(tmp_path))) == 3


def test_a_look_at_the_tables_does_not_wait_for_it(tmp_path: Path) -> None:
    make(tmp_path, 5)
    tables = analysis.history(tmp_path)
    assert "strategies: not read yet" in repr(tables)
    rows = tables.strategies.num_rows
    assert f"strategies: {rows}," in repr(tables)
