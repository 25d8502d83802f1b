"""Breakers in many processes: exact counts, one probe, `kill -9` at any moment, a disk that is full.

The processes are real. Where there is a file system in memory their files are there: what is told
from lost here is what a dead process leaves, not what a power cut does.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import loki
from loki.decision.breakers import SharedBreaker
from support.disk import MEMORY

PROBES = 16_000 if "LOKI_LARGE" in os.environ else 400
"""Outcomes that are all written; the large figure takes a minute."""


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder) / "state" / "circuit-breakers.json"


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def answers(processes: list[subprocess.Popen[str]]) -> list[str]:
    found = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return found


OUTCOMES = """
import sys, loki
path, outcomes, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
breaker = loki.Breakers(path, threshold=100_000, window="1h")["x"]
for number in range(outcomes):
    with breaker.guard() as permit:
        if number % every == 0:
            permit.failure(f"number {number}")
print(breaker.snapshot().counts.late)
"""


def test_eight_processes_lose_no_outcome(path: Path) -> None:
    """2,000 outcomes each, every twentieth a failure: the count is exact."""
    assert answers([run(OUTCOMES, path, 2000, 20) for _ in range(8)]) == ["0\n"] * 8
    written = json.loads(path.read_text("utf-8"))["x"]
    assert written["failure_count"] == len(written["failure_times"]) == 8 * 100
    breakers = loki.Breakers(path, threshold=100_000, window="1h")
    assert breakers["x"].snapshot().failure_count == 8 * 100


def test_threads_and_tasks_lose_none_either(path: Path) -> None:
    """Two objects, each with threads and an event loop at work at once."""
    several = [loki.Breakers(path, threshold=100_000, window="1h")["x"] for _ in range(2)]

    def in_thread(breaker: SharedBreaker) -> None:
        for _ in range(25):
            breaker.guard().failure("no answer")

    async def task(breaker: SharedBreaker) -> None:
        with suppress(OSError):
            async with breaker.guard():
                raise OSError("no answer")

    async def tasks(breaker: SharedBreaker) -> None:
        await asyncio.gather(*(task(breaker) for _ in range(25)))

    def in_loop(breaker: SharedBreaker) -> None:
        asyncio.run(tasks(breaker))

    threads = [
        threading.Thread(target=work, args=(breaker,))
        for work in (in_thread, in_thread, in_loop)
        for breaker in several
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [breaker.snapshot().failure_count for breaker in several] == [150, 150]
    assert [breaker.snapshot().counts.failures for breaker in several] == [75, 75]


PROBING = """
import os, sys, time, loki
path, wanted = sys.argv[1], int(sys.argv[2])
breaker = loki.Breakers(path, half_open_interval=0, recovery_threshold=wanted)["x"]
probes = 0
while (permit := breaker.try_acquire()) is None or permit.is_probe:
    if permit is None:
        time.sleep(0.001)
        continue
    alone = os.open(path + ".alone", os.O_CREAT | os.O_EXCL)  # fails where two are out
    os.close(alone)
    os.unlink(path + ".alone")
    permit.success()
    probes += 1
print(probes)
"""


def test_processes_have_one_probe_between_them(path: Path) -> None:
    """None is out beside another, none of their successes is lost, and all see it closed."""
    breakers = loki.Breakers(path, cooldown=0)
    breakers["x"].open()
    done = [int(line) for line in answers([run(PROBING, path, PROBES) for _ in range(8)])]
    assert sum(done) == PROBES
    written = json.loads(path.read_text("utf-8"))["x"]
    assert (written["state"], written["probe"]["number"]) == ("CLOSED", PROBES)
    log = path.parent.parent / "logs" / "circuit-recovery.log"
    assert log.read_text("utf-8").count("Circuit recovered: x") == 1


KILLED = """
import json, os, random, select, signal, sys, time, loki
path, kills = sys.argv[1], int(sys.argv[2])

def fork():
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        breaker = loki.Breakers(path, threshold=100_000, window="1h")["x"]
        for _ in range(8):
            breaker.guard().failure("no answer")
            os.write(writing, b"x")
        signal.pause()
    os.close(writing)
    return child, reading

loki.Breakers(path + ".warm")["x"].guard().failure("no answer")  # children import nothing
acknowledged = killed = 0
while killed < kills:
    pair = [fork(), fork()]
    for child, reading in pair:
        os.read(reading, 1)
        acknowledged += 1
        until = time.perf_counter() + random.random() * 0.004
        while time.perf_counter() < until:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
        while more := os.read(reading, 65536):
            acknowledged += len(more)
        os.close(reading)
        with open(path) as file:
            written = json.load(file)["x"]
        count = written["failure_count"]
        assert count == len(written["failure_times"])
        assert acknowledged <= count, (acknowledged, count)
        assert written["state"] == "CLOSED"
print(acknowledged, count, killed)
"""


def test_killed_200_times_nothing_acknowledged_is_lost(path: Path) -> None:
    """Two at a time, at random moments: after each the file is whole and has every failure told."""
    (line,) = answers([run(KILLED, path, 200)])
    acknowledged, count, killed = map(int, line.split())
    assert killed == 200
    assert acknowledged <= count <= acknowledged + killed
    assert not list(path.parent.glob("*.corrupt-*"))
    # Whoever comes next is not kept waiting by the dead.
    loki.Breakers(path)["x"].open()
    assert json.loads(path.read_text("utf-8"))["x"]["state"] == "OPEN"


FULL_DISK = """
import json, logging, resource, sys
import loki
from loki.testing import ManualClock
said = []
logging.getLogger("loki").addFilter(lambda record: said.append(record.getMessage()) or False)
path, clock = sys.argv[1], ManualClock()
breaker = loki.Breakers(path, clock=clock)["x"]
breaker.guard().failure("on disk")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # from here on every write fails
breaker.guard().failure("in memory")
clock.advance(5)
breaker.guard().failure("in memory")
assert breaker.snapshot().state == "OPEN"
assert json.load(open(path))["x"]["failure_count"] == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
clock.advance(300)
assert breaker.try_acquire().is_probe
assert json.load(open(path))["x"]["state"] == "HALF_OPEN"
print(len(said), said[0][:17])
"""


def test_a_full_disk_is_gone_on_without(path: Path) -> None:
    """In memory, with one warning; what was written stays; when there is room again it is written."""
    assert answers([run(FULL_DISK, path)]) == ["1 Could not persist\n"]
