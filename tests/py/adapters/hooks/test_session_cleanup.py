"""What sessions leave behind is bounded."""

from __future__ import annotations

import os
from pathlib import Path

from loki.adapters.hooks import success_buffer
from loki.adapters.hooks.session_cleanup import MOST, remove_stale_sessions


def test_the_oldest_go(tmp_path: Path) -> None:
    for number in range(7):
        file = tmp_path / f"{number}"
        file.touch()
        os.utime(file, (number, number))
    (tmp_path / "folder").mkdir()
    remove_stale_sessions(str(tmp_path), 3)
    assert {one.name for one in tmp_path.iterdir()} == {"4", "5", "6", "folder"}
    remove_stale_sessions(str(tmp_path / "none"))


def test_calls_of_sessions_that_never_ended_are_bounded(tmp_path: Path) -> None:
    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki" / ".gitignore").touch()
    for number in range(MOST + 20):
        assert success_buffer.keep_success(str(tmp_path), f"s{number}", ("Edit", {}, "", "ok"))
    assert len(list((tmp_path / ".loki" / success_buffer.FOLDER).iterdir())) <= MOST
    assert success_buffer.take_successes(str(tmp_path), f"s{MOST + 19}") == [("Edit", {}, "", "ok")]
    assert success_buffer.take_successes(str(tmp_path), f"s{MOST + 19}") == []
