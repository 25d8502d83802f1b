"""The clock that ``LOKI_NOW`` sets for whole commands; what it does by itself is in test_testing."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

import loki
from loki.base.manual_clock import VARIABLE, ManualClock, clock_of
from loki.base.time import SystemClock


def test_without_the_variable_it_is_the_machines() -> None:
    assert isinstance(clock_of({}), SystemClock)
    assert isinstance(clock_of({VARIABLE: ""}), SystemClock)


@pytest.mark.parametrize(
    "said", ["2026-04-04T10:00:00Z", "2026-04-04T12:00:00+02:00", "2026-04-04T10:00:00"]
)
def test_it_starts_where_it_is_told(said: str) -> None:
    clock = clock_of({VARIABLE: said})
    assert isinstance(clock, ManualClock)
    assert clock.now() == datetime(2026, 4, 4, 10, tzinfo=timezone.utc)


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(loki.UsageError, match="LOKI_NOW is 'soon': expected a moment"):
        clock_of({VARIABLE: "soon"})


def test_a_workspace_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2030-01-01T00:00:00Z")
    assert loki.Workspace(tmp_path).clock.now().year == 2030
    own = ManualClock()
    assert loki.Workspace(tmp_path, clock=own).clock is own


def test_files_that_are_being_written_survive_a_clock_far_ahead(tmp_path: Path) -> None:
    """What is left half written is told by the machine's time, which files are stamped with."""
    workspace = loki.Workspace(tmp_path, clock=ManualClock(datetime(2100, 1, 1)))
    workspace.store.write("state/x.json", "{}")
    half = tmp_path / ".loki" / ".loki-0123.tmp"
    half.write_text("half")
    with workspace.exclusive():
        assert half.exists()
