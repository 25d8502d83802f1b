"""Failed tool calls are kept, read again whatever stands between them, and recalled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki import Failure, Monitor, ToolCall, recognize
from loki.memory.tool_failure import LOG, ToolFailure, ToolFailures, recall_calls
from loki.stores.file_store import FileStore

SAID = "FAILED test_login.py::test_redirect - KeyError: 'next'"
CHECK = ToolCall("Bash", {"command": "pytest -q"})


def record(said: str = SAID, session: str = "s") -> ToolFailure:
    at = "2026-04-04T10:00:00.000Z"
    return ToolFailure(at, "Bash", "pytest -q", recognize(said), session=session, agent="a")


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    calls = ToolFailures(FileStore(tmp_path))
    calls.add(record())
    assert list(calls) == [record().__class__.from_dict(record().to_dict())]


def test_what_cannot_be_read_is_skipped(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    calls = ToolFailures(store)
    odd_ones: list[dict[str, Any]] = [
        {},
        {"failure": 3},
        {"at": 1, "failure": {}},
        {"mended": 7},
        {"mended": [{}]},
    ]
    for odd in odd_ones:
        store.append(LOG, odd)
    calls.add(record())
    with (tmp_path / LOG).open("ab") as log:
        log.write(b'{"at": "2026-')  # torn
    assert [one.call for one in calls] == ["pytest -q"]


def test_a_huge_failure_is_kept_small(tmp_path: Path) -> None:
    failure = Failure.of("x" * 10**6, tests=[f"t.py::test_{n}" for n in range(10**4)])
    calls = ToolFailures(FileStore(tmp_path))
    calls.add(ToolFailure("", "Bash", "make", failure))
    assert (tmp_path / LOG).stat().st_size < 30_000


def test_the_same_failure_is_recalled_with_what_helped(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, agent="codex")
    monitor.after(CHECK, SAID, exit_code=1)
    monitor.after(ToolCall("Edit", {"file_path": "login.py", "new_string": "url"}), "ok")
    monitor.after(CHECK, "1 passed", exit_code=0)
    calls = ToolFailures(monitor.workspace.store)
    (earlier,) = recall_calls(calls, recognize(SAID))
    assert earlier.place == "a tool call of codex"
    assert earlier.solution == "Edit login.py: url"
    assert recall_calls(calls, recognize("ValueError: bad date in app.py")) == []
    assert recall_calls(calls, recognize("Killed")) == []


def test_the_log_is_cut_back_once_it_is_far_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest stay; nothing goes before the log is twice as long as it may be."""
    monkeypatch.setattr("loki.memory.tool_failure.RECORDS", 5)
    calls = ToolFailures(FileStore(tmp_path))
    for number in range(8):
        calls.add(record(session=f"s{number}"))
    calls.mended("2026-04-04T10:00:00.000Z", [], "", "s")
    assert [one.session for one in calls] == [f"s{number}" for number in range(8)]
    for number in range(8, 12):
        calls.add(record(session=f"s{number}"))
    calls.mended("2026-04-04T10:00:00.000Z", [], "", "s")
    assert [one.session for one in calls] == ["s8", "s9", "s10", "s11"]
