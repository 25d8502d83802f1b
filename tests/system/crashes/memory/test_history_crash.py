"""One history, real processes: killed while they append, and several of them at once: with processes that are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from loki.memory.attempt import History
from loki.stores.file_store import FileStore

WRITER = """
import sys
from pathlib import Path
from loki.memory.attempt import Attempt
from loki.memory.attempt import History
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
