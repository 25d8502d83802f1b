"""Counts what becomes of outcomes that many processes tell at once: `python -m benchmarks.breakers_kept`.

Each process tells one shared breaker of failures as fast as it can, while others keep the machine busy.
Says how many of them the file has in the end, what one took by the clock, and the longest that one had
to wait. A breaker keeps the time of each failure, up to its threshold, and rewrites
all of them with each; so the last ones take longer than the first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "api/claude"

TELL = """
import sys, time, loki
path, outcomes, window = sys.argv[1], int(sys.argv[2]), sys.argv[3]
breaker = loki.Breakers(path, threshold=1_000_000, window=window)["api/claude"]
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
longest = 0.0
for number in range(outcomes):
    began = time.monotonic()
    breaker.guard().failure("down")
    longest = max(longest, time.monotonic() - began)
print(longest)
"""

BUSY = "while True: pass"


def main(words: list[str]) -> int:
    """Runs it once and prints a row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--outcomes", type=int, default=2000, help="of each process")
    parser.add_argument("--breakers", type=int, nargs="*", default=[1, 20], help="in the file")
    parser.add_argument("--load", type=int, default=15, help="processes that do nothing but work")
    parser.add_argument("--in", dest="where", default=".", help="folder on the disk to measure on")
    options = parser.parse_args(words)
    for breakers in options.breakers:
        with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=options.where) as name:
            row = kept(Path(name), options.processes, options.outcomes, breakers, options.load)
        sys.stdout.write(
            "{kept} of {made} kept; {breakers} breakers in the file, {processes} processes, load "
            "{load:.1f}: {seconds:.0f} s, {each:.1f} ms each, the longest {longest:.1f} s\n".format(
                **row
            )
        )
        sys.stdout.flush()
    return 0


def kept(folder: Path, processes: int, outcomes: int, breakers: int, load: int) -> dict[str, Any]:
    """What the file has of all outcomes in the end, and what it took."""
    from loki import Breakers

    path = folder / "state" / "circuit-breakers.json"
    for number in range(1, breakers):
        Breakers(path)[f"api/{number}"].guard().failure("down")
    with _busy(load):
        words = [sys.executable, "-c", TELL, str(path), str(outcomes), "24h"]
        tellers = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for one in tellers:
            assert one.stdout is not None
            one.stdout.readline()
        began = time.monotonic()
        for one in tellers:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        longest = max(float(one.communicate()[0]) for one in tellers)
        seconds, now = time.monotonic() - began, os.getloadavg()[0]
    made = processes * outcomes
    # By loki: what the last process had no time to fold stands in the log beside the file.
    found = Breakers(path, threshold=1_000_000, window="24h")[NAME].snapshot().failure_count
    return {
        "kept": found,
        "made": made,
        "breakers": breakers,
        "processes": processes,
        "load": now,
        "seconds": seconds,
        "each": 1000 * seconds / made,
        "longest": longest,
    }


@contextmanager
def _busy(count: int) -> Iterator[None]:
    workers = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in workers:
            one.kill()
            one.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
