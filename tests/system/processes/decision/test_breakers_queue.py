"""Processes that wait for each other: each has his turn, and what could not be written is written later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import loki
from benchmarks.breakers_kept import kept
from loki.base import locks
from loki.decision import breakers_file
from loki.testing import ManualClock

HELD = """
import sys, loki
from loki.base import locks
from loki.decision import breakers_file
breakers_file.LOCK_TIMEOUT = 0.01
breaker = loki.Breakers(sys.argv[1], threshold=100)["x"]
with locks.hold(sys.argv[1]):
    for _ in range(7):
        breaker.guard().failure("down")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / "circuit-breakers.json"


def failures(path: Path) -> int:
    return int(json.loads(path.read_text("utf-8"))["x"]["failure_count"])


def test_what_could_not_be_written_is_written_soon(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next call that looks at the file, not only by the next failure."""
    clock = ManualClock()
    breaker = loki.Breakers(path, clock=clock, threshold=100)["x"]
    monkeypatch.setattr(breakers_file, "LOCK_TIMEOUT", 0.01)
    with locks.hold(path):
        for _ in range(3):
            breaker.guard().failure("down")
    assert not path.exists()
    other = loki.Breakers(path, clock=clock, threshold=100)["x"]
    other.guard().failure("down")
    clock.advance("6s")
    breaker.guard().success()
    assert failures(path) == 4


def test_what_could_not_be_written_is_written_at_the_end(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HELD, str(path)], check=True, capture_output=True)
    assert b"Could not persist" in done.stderr
    assert failures(path) == 7


def test_processes_in_a_hurry_lose_no_outcome(tmp_path: Path) -> None:
    """Each has his turn, though all come again at once; other breakers are in the file, too."""
    row = kept(tmp_path, processes=4, outcomes=40, breakers=20, load=2)
    assert (row["kept"], row["made"]) == (160, 160)
