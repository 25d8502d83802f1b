"""One history, real processes: killed while they append, and several of them at once."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from loki.memory.attempt import Attempt
from loki.memory.history import History
from loki.stores.file_store import FileStore

WRITER = """
import sys
from pathlib import Path
from loki.memory.attempt import Attempt
from loki.memory.history import History
from loki.stores.file_store import FileStore

folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
history = History(FileStore(folder), "t")
for number in range(first, last):
    history.append(Attempt(number, "2026-04-04T10:15:30.000Z", "x" * 5000, "failed"))
    print(number, flush=True)
"""


def writer(folder: Path, first: int, last: int) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", WRITER, str(folder), str(first), str(last)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE)


def numbers(folder: Path) -> list[int]:
    return [one.attempt for one in History(FileStore(folder), "t").attempts()]


def test_killed_at_any_moment_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    first = 1
    for kill_after in (1, 2, 3, 5, 8):
        work = writer(tmp_path, first, first + 10_000)
        assert work.stdout is not None
        said = [work.stdout.readline() for _ in range(kill_after)]
        work.kill()
        said += work.stdout.readlines()
        work.stdout.close()
        work.wait()
        acknowledged = [int(line) for line in said if line.endswith(b"\n")]
        there = numbers(tmp_path)
        assert set(acknowledged) <= set(there)
        assert there == list(range(1, there[-1] + 1)), "no gap, no other attempt spoilt"
        first = there[-1] + 1


def test_several_processes_append_to_one_history_and_none_loses_a_line(tmp_path: Path) -> None:
    works = [writer(tmp_path, first, first + 25) for first in (1, 101, 201, 301)]
    for work in works:
        work.communicate(timeout=60)
        assert work.returncode == 0
    expected = [n for first in (1, 101, 201, 301) for n in range(first, first + 25)]
    assert numbers(tmp_path) == expected


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
