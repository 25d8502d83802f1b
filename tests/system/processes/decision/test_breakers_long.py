"""A file of many breakers: an outcome costs what it costs alone, none is lost, and others see the truth soon: with processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from benchmarks.breakers_kept import kept

FAILING = """
import sys, loki
breaker = loki.Breakers(sys.argv[1], threshold=100_000, window="24h")["x"]
number = 0
while True:
    breaker.guard().failure("down")
    number += 1
    sys.stdout.write(f"{number}\\n"); sys.stdout.flush()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a project with a hundred breakers."""
    path = tmp_path / "state" / "circuit-breakers.json"
    loki.Breakers(path)["first"].guard().failure("down")
    entry = json.loads(path.read_text("utf-8"))["first"]
    path.write_text(json.dumps({f"api/{number}": entry for number in range(100)}), "utf-8")
    return path


def said(path: Path, name: str = "x") -> Any:
    return json.loads(path.read_text("utf-8")).get(name)


def count(path: Path) -> int:
    """What another process knows."""
    return loki.Breakers(path, threshold=100_000, window="24h")["x"].snapshot().failure_count


def test_no_outcome_is_lost_when_its_writer_is_killed(path: Path) -> None:
    """Whatever was acknowledged is known to who comes next, and is in the file once he has ended."""
    for killed in range(4):
        before = count(path)
        words = [sys.executable, "-c", FAILING, str(path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as one:
            assert one.stdout is not None
            acknowledged = 0
            while acknowledged < 5 + 3 * killed:
                acknowledged = int(one.stdout.readline())
            os.kill(one.pid, signal.SIGKILL)
            last = one.stdout.read().split("\n")[:-1]
        acknowledged = int(last[-1]) if last else acknowledged
        assert before + acknowledged <= count(path) <= before + acknowledged + 1
    told = count(path)
    look = "import sys, loki; loki.Breakers(sys.argv[1], threshold=10**5, window='24h')['x'].snapshot()"
    subprocess.run([sys.executable, "-c", look, str(path)], check=True)
    assert said(path)["failure_count"] == told


def test_processes_in_a_hurry_lose_no_outcome(tmp_path: Path) -> None:
    row = kept(tmp_path, processes=4, outcomes=40, breakers=100, load=1)
    assert (row["kept"], row["made"]) == (160, 160)
