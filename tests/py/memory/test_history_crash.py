"""One history, real processes: killed while they append, and several of them at once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from loki.memory.attempt import Attempt, History
from loki.stores.file_store import FileStore


def numbers(folder: Path) -> list[int]:
    return [one.attempt for one in History(FileStore(folder), "t").attempts()]


@pytest.mark.parametrize("cut", [1, 2, 30, 5000])
def test_a_torn_line_is_told_once_and_nothing_is_glued_to_it(
    tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever the crash cut the last line: before, behind, and with the next append."""
    store = FileStore(tmp_path)
    history = History(store, "t")
    log = tmp_path / "tasks" / "t" / "attempts.jsonl"
    for number in (1, 2):
        history.append(Attempt(number, "2026-04-04T10:15:30.000Z", "x" * 5000, "failed"))
    log.write_bytes(log.read_bytes()[:-cut])
    whole = [1, 2] if cut == 1 else [1]  # where only its line feed is missing, the record is there
    with caplog.at_level(logging.WARNING):
        assert [a.attempt for a in history.attempts()] == whole
        assert [a.attempt for a in history.attempts()] == whole
        assert caplog.text.count("torn by a crash") == (cut != 1)
        history.append(Attempt(3, "2026-04-04T10:16:30.000Z", "next", "success"))
        assert [a.attempt for a in history.attempts()] == [*whole, 3]
        assert [a.attempt for a in History(FileStore(tmp_path), "t").attempts()] == [*whole, 3]


@pytest.mark.parametrize("damage", [b"\0" * 4096, b'{"attempt": 9, "act', b"[" * 100_000, b"\n\n"])
def test_damage_in_the_middle_spoils_no_other_line(tmp_path: Path, damage: bytes) -> None:
    history = History(FileStore(tmp_path), "t")
    history.append(Attempt(1, "2026-04-04T10:15:30.000Z", "one", "failed"))
    with (tmp_path / "tasks" / "t" / "attempts.jsonl").open("ab") as log:
        log.write(damage)
    history.append(Attempt(2, "2026-04-04T10:16:30.000Z", "two", "success"))
    assert numbers(tmp_path) == [1, 2]
