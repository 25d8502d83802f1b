"""Attempts read quickly are what reading them record by record gives, whatever stands in the logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import loki
from loki import recognize
from loki.analysis import attempt_log
from loki.memory.attempt import Attempt, CheckRecord, History
from loki.stores.file_store import FileStore
from support.examples import examples

FAILURE = recognize("app/a.py:3:1: F401 [*] `os` imported but unused\nFound 1 error.\n")
RECORD = Attempt(
    1,
    "2026-04-04T10:15:30.000Z",
    "changed a.py",
    "failed",
    error="`os` imported but unused",
    failure=FAILURE.to_dict(),
    fingerprint=FAILURE.fingerprint,
    strategy_used="auto_fix",
    files_modified=("a.py", "ü.py"),
    checks=(CheckRecord("pytest", "test", "pytest", passed=False, exit_code=1, duration_ms=12),),
    validation={"passed": True, "skipped": False},
    decision={"action": "fix", "rule": 6},
    cost=0.5,
    tokens=100,
).to_dict()


def record(number: int, **fields: Any) -> dict[str, Any]:
    return {**RECORD, "attempt": number, **fields}


def line(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["", "2026-04-04", "\ud83d", "a\u2028b", [], {}, [None], [1, "a"], {"a": {}}]),
    st.sampled_from([{"passed": 1}, {"skipped": None}, {"action": 3}, {"matches": [{}, 1]}]),
    st.sampled_from([[{"name": "a"}], [{"duration_ms": 1.5}], [{"passed": "no"}], [None, {}]]),
    st.sampled_from([{"message": "m", "recognizer_version": 1}, {"message": 5}, {"message": "m"}]),
    st.sampled_from([{"matches": [{"confidence": float("nan")}], "recognizer_version": 1}]),
)
FIELDS = st.sampled_from([*attempt_log.RAW.names, "amends", "ends", "commands", "made_up"])
ATTEMPTS = st.builds(
    lambda number, fields, drop: {
        k: v for k, v in record(number, **fields).items() if k not in drop
    },
    st.integers(0, 4),
    st.dictionaries(FIELDS, VALUES, max_size=2),
    st.lists(FIELDS, max_size=1),
)
MARKS = st.one_of(
    st.builds(lambda n, s: {"amends": n, "strategy_used": s}, st.integers(0, 4), VALUES),
    st.builds(lambda n: {"ends": n, "at": "x", "outcome": {"status": "failed"}}, VALUES),
)
DAMAGE = st.sampled_from(
    [
        b"",
        b"   ",
        b"{",
        b'{"attempt":1}{"attempt":2}',
        b'{"attempt":1,"attempt":2}',
        b"[1]",
        b"null",
        b'{"attempt":1,"timestamp":"\xff"}',
        b"\x00",
        b"\xef\xbb\xbf" + line(record(1)),
        b"{} x",
        line(record(2)) + b"\r",
        line(record(3))[:200],
        line(record(3)) + line(record(4)),
    ]
)
LINES = st.one_of(
    st.integers(1, 4).map(record).map(line), ATTEMPTS.map(line), MARKS.map(line), DAMAGE
)
LOGS = st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(LINES, max_size=6),
    st.sampled_from([b"\n", b"", b"\n\n"]),
)


def both_ways(folder: Path, logs: list[bytes]) -> tuple[attempt_log.RawAttempts, pa.Table]:
    store = FileStore(folder)
    names = [f"t{i}" for i in range(len(logs))]
    for name, log in zip(names, logs, strict=True):
        path = folder / "tasks" / name / "attempts.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(log)
    quick = attempt_log.read(store, names)
    with mock.patch.object(attempt_log, "parsed", return_value=None):
        careful = attempt_log.read(store, names)
    assert quick.tasks.equals(careful.tasks)
    return quick, careful.table


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    logging.getLogger("loki").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("loki").setLevel(logging.NOTSET)


@hypothesis_settings(max_examples=examples(300))
@given(logs=st.lists(LOGS, min_size=1, max_size=3))
def test_both_ways_give_the_same_table(
    logs: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    quick, careful = both_ways(tmp_path_factory.mktemp("logs"), logs)
    assert quick.table.to_pylist() == careful.to_pylist()
    assert quick.table.schema == careful.schema


WHOLE = b"".join(
    line(one) + b"\n"
    for one in (record(1), {"amends": 1, "strategy_used": "escalate"}, record(2), {"ends": 1})
)
PIECES = st.sampled_from(
    [
        *(b"", b'"', b"\\", b"{", b"}", b"[]", b",", b":", b"\n", b" ", b"\t", b"\x00", b"\xff"),
        *(b"null", b"true", b"1e999", b"-0", b"NaN", b"\\ud83d", b"\\u0000"),
        *(b'"attempt":2,', b'"ends":null,'),
    ]
)


@hypothesis_settings(max_examples=examples(300))
@given(
    places=st.lists(
        st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 4), PIECES), min_size=1, max_size=4
    )
)
def test_both_ways_give_the_same_table_whatever_a_byte_becomes(
    places: list[tuple[int, int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = WHOLE
    for at, length, piece in places:
        log = log[:at] + piece + log[at + length :]
    quick, careful = both_ways(tmp_path_factory.mktemp("logs"), [log])
    assert quick.table.to_pylist() == careful.to_pylist()


@pytest.mark.parametrize(
    "member",
    [
        b'"made_up": ' + b"1" * 5000,
        b'"made_up": "\\ud83d"',
        b'"made_up": 1, "made_up": 2',
        b'"\\u0061ction": "another"',
        b'"action": null, "action": "another"',
        b'"action": "another", "action": null',
        b'"checks": [{"passed": true, "passed": false}]',
        b'"failure": {"message": "a", "message": null, "recognizer_version": 1}',
    ],
)
def test_both_ways_give_the_same_table_where_parsers_differ(tmp_path: Path, member: bytes) -> None:
    quick, careful = both_ways(tmp_path, [line(record(1))[:-1] + b", " + member + b"}\n"])
    assert quick.table.to_pylist() == careful.to_pylist()


def test_a_whole_log_is_read_quickly_amendments_and_ends_included(tmp_path: Path) -> None:
    whole = [record(1), {"amends": 1, "strategy_used": "escalate"}, record(2), {"ends": 1}]
    log = b"".join(line(one) + b"\n" for one in whole)
    with mock.patch.object(attempt_log, "_carefully") as carefully:
        (tmp_path / "tasks" / "a").mkdir(parents=True)
        (tmp_path / "tasks" / "a" / "attempts.jsonl").write_bytes(log)
        found = attempt_log.read(FileStore(tmp_path), ["a", "without-a-log"])
    assert not carefully.called
    assert found.table["strategy_used"].to_pylist() == ["escalate", "auto_fix"]


def test_what_loki_writes_is_read_quickly(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    history = History(store, "t")
    history.append(Attempt.from_dict(record(1, failure=None, checks=[], cost=None)))
    history.append(Attempt.from_dict(record(2)))
    history.amend(2, "dependency_check")
    history.end(1, {"status": "failed"}, title="t", at="2026-04-04T10:15:30.000Z")
    with mock.patch.object(attempt_log, "_carefully") as carefully:
        found = attempt_log.read(store, ["t"])
    assert not carefully.called
    assert found.table["cost"].to_pylist() == [None, 0.5]


def test_one_damaged_log_does_not_make_the_others_slow(tmp_path: Path) -> None:
    whole, torn = line(record(1)) + b"\n", line(record(1)) + b"\n" + line(record(2))[:40]
    quick, _ = both_ways(tmp_path, [whole, torn, whole])
    assert quick.tasks.to_pylist() == [0, 1, 2]
    with mock.patch.object(
        attempt_log, "_carefully", side_effect=attempt_log._carefully
    ) as carefully:
        attempt_log.read(FileStore(tmp_path), ["t0", "t1", "t2"])
    assert [call.args[1] for call in carefully.call_args_list] == [1]


def test_an_attempt_of_another_version_is_recognized_anew(tmp_path: Path) -> None:
    old = {**FAILURE.to_dict(), "recognizer_version": 0, "fingerprint": "0" * 32}
    quick, _ = both_ways(tmp_path, [line(record(1, failure=old)) + b"\n"])
    (row,) = quick.table.to_pylist()
    assert row["failure"]["fingerprint"] == FAILURE.fingerprint


def test_a_huge_field_and_deep_nesting_do_no_harm(tmp_path: Path) -> None:
    huge = record(1, action="x" * 5_000_000)
    deep = line(record(2))[:-1] + b',"made_up":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    quick, _ = both_ways(tmp_path, [line(huge) + b"\n", b'{"attempt":1}\n'])
    assert len(quick.table["action"][0].as_py()) == 5_000_000
    (tmp_path / "tasks/t1/attempts.jsonl").write_bytes(deep + b"\n")
    attempt_log.read(FileStore(tmp_path), ["t1"])


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "t" / "attempts.jsonl").mkdir(parents=True)
    with pytest.raises(loki.StoreError, match=r"could not read .*attempts.jsonl"):
        attempt_log.read(FileStore(tmp_path), ["t"])
