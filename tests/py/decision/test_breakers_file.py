"""Files of breakers as people, other programs and accidents leave them."""

from __future__ import annotations

import itertools
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki.decision.breakers_file import SharedFile
from loki.testing import ManualClock
from support.disk import MEMORY

# The example of the resilience documents, and a moment in it.
EXAMPLE: dict[str, dict[str, Any]] = {
    "api/claude": {
        "state": "CLOSED",
        "failure_count": 0,
        "success_count": 0,
        "last_failure_time": None,
        "last_state_change": "2025-01-20T10:30:00Z",
        "cooldown_until": None,
        "failure_window_start": None,
    },
    "api/openai": {
        "state": "OPEN",
        "failure_count": 3,
        "success_count": 0,
        "last_failure_time": "2025-01-20T10:35:42Z",
        "last_state_change": "2025-01-20T10:35:42Z",
        "cooldown_until": "2025-01-20T10:40:42Z",
        "failure_window_start": "2025-01-20T10:34:50Z",
    },
    "api/gemini": {
        "state": "HALF_OPEN",
        "failure_count": 0,
        "success_count": 1,
        "last_failure_time": "2025-01-20T10:25:00Z",
        "last_state_change": "2025-01-20T10:30:00Z",
        "cooldown_until": None,
        "failure_window_start": None,
    },
}
NOW = datetime(2025, 1, 20, 10, 36, tzinfo=timezone.utc)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "circuit-breakers.json"


def started(path: Path) -> loki.Breakers:
    return loki.Breakers(path, clock=ManualClock(NOW))


def test_the_example_of_the_documents(path: Path) -> None:
    """Read as it is meant; and what we write has its fields, for others to read."""
    path.write_text(json.dumps(EXAMPLE), "utf-8")
    breakers = started(path)
    assert list(breakers) == ["api/claude", "api/gemini", "api/openai"]
    assert [s.state for s in breakers.snapshot().values()] == ["CLOSED", "HALF_OPEN", "OPEN"]
    assert breakers["api/openai"].snapshot().retry_after == 282
    probe = breakers["api/gemini"].try_acquire()
    assert probe is not None
    assert probe.is_probe
    probe.success()
    written = json.loads(path.read_text("utf-8"))
    assert list(written) == list(EXAMPLE)
    assert {name: written[name] for name in ("api/claude", "api/openai")} == {
        name: EXAMPLE[name] for name in ("api/claude", "api/openai")
    }
    assert list(written["api/gemini"])[:7] == list(EXAMPLE["api/gemini"])
    assert written["api/gemini"]["success_count"] == 2


def test_what_others_add_stays(path: Path) -> None:
    """Fields and entries that we do not know, in their places."""
    theirs = {"x": {"note": "since Monday", **EXAMPLE["api/claude"], "weight": {"a": [1.5]}}}
    path.write_text(json.dumps({"$schema": "v1", **theirs}), "utf-8")
    started(path)["x"].open()
    written = json.loads(path.read_text("utf-8"))
    assert written["$schema"] == "v1"
    assert written["x"]["note"] == "since Monday"
    assert written["x"]["weight"] == {"a": [1.5]}
    assert written["x"]["state"] == "OPEN"


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        (b"", "no whole JSON document"),
        (json.dumps(EXAMPLE).encode()[:200], "no whole JSON document"),
        (b"\x00" * 4096, "no whole JSON document"),
        (b"[]", "expected an object"),
        (b"null", "expected an object"),
        (b'{"x": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        (b'{"\xff": 1}', "no whole JSON document"),
    ],
)
def test_what_cannot_be_read_is_set_aside(
    path: Path, caplog: pytest.LogCaptureFixture, content: bytes, flaw: str
) -> None:
    """Never deleted, with one warning in all processes together; all start closed."""
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with started(path).guard("x"):
                pass
    assert [flaw in r.message for r in caplog.records] == [True]
    assert caplog.records[0].message.endswith(
        "set aside as circuit-breakers.json.corrupt-1, starting closed"
    )
    assert path.with_name("circuit-breakers.json.corrupt-1").read_bytes() == content
    assert json.loads(path.read_text("utf-8"))["x"]["state"] == "CLOSED"


def test_what_is_set_aside_does_not_replace_what_was(path: Path) -> None:
    """A second accident gets a second name."""
    for number in range(1, 4):
        path.write_text(f"accident {number}")
        started(path)["x"].open()
    for number in range(1, 4):
        kept = path.with_name(f"circuit-breakers.json.corrupt-{number}")
        assert kept.read_text() == f"accident {number}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "AJAR"},
        {"failure_count": "three"},
        {"failure_count": -1},
        {"cooldown_until": 1737369642},
        {"last_failure_time": "yesterday"},
        {"success_count": [1]},
    ],
)
def test_one_wrong_entry_spoils_no_other(
    path: Path, caplog: pytest.LogCaptureFixture, wrong: dict[str, Any]
) -> None:
    """It starts closed, and a copy is kept; the rest stays as it is."""
    broken = {**EXAMPLE["api/openai"], **wrong}
    content = json.dumps({**EXAMPLE, "x": broken})
    path.write_text(content, "utf-8")
    with caplog.at_level(logging.WARNING):
        breakers = started(path)
        assert breakers["x"].try_acquire() is not None
        assert breakers["api/openai"].try_acquire() is None
    (field,) = wrong
    assert [f"x: {field} is" in r.message for r in caplog.records] == [True]
    aside = path.with_name("circuit-breakers.json.corrupt-1")
    assert aside.read_text("utf-8") == content
    written = json.loads(path.read_text("utf-8"))
    assert written["api/openai"] == EXAMPLE["api/openai"]
    assert written["x"]["state"] == "CLOSED"


def test_a_file_that_is_removed_forgives_all(path: Path) -> None:
    """As a person may do; what was under way then counts nothing."""
    clock = ManualClock()
    breaker = loki.Breakers(path, clock=clock, threshold=1)["x"]
    early = breaker.guard()
    breaker.open()
    path.unlink()
    clock.advance(1)
    with breaker.guard():
        pass
    early.failure("too late")
    assert breaker.snapshot().state == "CLOSED"


def test_a_breaker_that_is_closed_by_hand_is_closed(path: Path) -> None:
    """With an editor, as the documents' users do: their fields win over ours."""
    clock = ManualClock(NOW)
    breaker = loki.Breakers(path, clock=clock)["x"]
    breaker.isolate()
    written = json.loads(path.read_text("utf-8"))
    written["x"] |= {"state": "CLOSED", "failure_count": 0, "cooldown_until": None}
    path.write_text(json.dumps(written), "utf-8")
    clock.advance(1)
    with breaker.guard():
        pass
    assert breaker.snapshot().is_isolated is False


def locks(path: Path) -> set[str]:
    return {f"{path.name}.lock", f"{path.name}-next.lock"}


def test_files_are_private_and_secrets_masked(path: Path) -> None:
    """0600; an error's keys are not written."""
    breaker = started(path)["x"]
    breaker.guard().failure("401: sk-ant-api03-" + "a" * 95)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "sk-ant" not in path.read_text("utf-8")
    assert set(os.listdir(path.parent)) == {path.name, *locks(path)}


def test_any_name_and_any_error_can_be_kept(path: Path) -> None:
    """Unicode, line feeds, quotes, lone surrogates."""
    for name in ("api/é", 'a "b"\n', "x" * 1000, ""):
        breaker = started(path)[name]
        breaker.guard().failure("broken \udcff \x00 \n")
        assert started(path)[name].snapshot().failure_count == 1


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_left_alone(
    path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None]
) -> None:
    """Nobody waits for a pipe's other end; it goes on in memory."""
    make(path)
    breaker = started(path)["x"]
    breaker.open()
    assert breaker.try_acquire() is None
    assert [r.message[:17] for r in caplog.records] == ["Could not persist"]
    assert not path.is_file()


def test_what_a_killed_writer_left_is_removed(path: Path) -> None:
    """By the next one; other files' beginnings are not ours."""
    for name in (f".loki-{path.name}-0123456789abcdef.tmp", ".loki-another.tmp"):
        path.with_name(name).write_text("half a fi")
    started(path)["x"].open()
    assert set(os.listdir(path.parent)) == {".loki-another.tmp", path.name, *locks(path)}


def test_many_breakers_are_read_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one after the other."""
    path.write_text(json.dumps({str(number): EXAMPLE["api/claude"] for number in range(50)}))
    breakers = started(path)
    read, reads = SharedFile.read, itertools.count()
    monkeypatch.setattr(SharedFile, "read", lambda file: (next(reads), read(file))[1])
    assert len(breakers.snapshot()) == 50
    assert next(reads) < 5


FIELDS = st.dictionaries(
    st.sampled_from(
        [*EXAMPLE["api/claude"], "failure_times", "generation", "probe", "clock", "trips", "other"]
    ),
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-5, 2**64 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text('ab"\n', max_size=5),
            st.sampled_from(
                ["CLOSED", "open", "half-open", "2025-01-20T10:35:42Z", "2026-01-20T10:35:42+02:00"]
            ),
        ),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner),
        max_leaves=5,
    ),
)


ENTRIES = st.builds(dict.__or__, st.sampled_from([{}, *EXAMPLE.values()]), FIELDS)


@given(entry=ENTRIES, other=ENTRIES, calls=st.lists(st.sampled_from(["acquire", "fail", "open"])))
def test_any_entry_can_be_used(
    entry: dict[str, Any], other: dict[str, Any], calls: list[str]
) -> None:
    """Whatever an entry says: nothing raises, no wait is over a cooldown, other entries stay."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "circuit-breakers.json"
        path.write_text(json.dumps({"x": entry, "y": other}), "utf-8")
        breaker = started(path)["x"]
        for call in calls:
            if call == "open":
                breaker.open()
            elif (permit := breaker.try_acquire()) is not None and call == "fail":
                permit.failure("no answer")
        assert json.loads(path.read_text("utf-8"))["y"] == other
        wait = breaker.snapshot().retry_after
        assert wait is None or 0 <= wait <= 300
