"""Measures what the closed loop itself costs: `python -m benchmarks.loop`.

The agent is a function that answers at once, the check an answer that is ready (what it printed is
recognized beforehand): what is left is the loop, from question to question: the tree is scanned, the
change is validated, applied through the write-ahead record and recorded, memory is written and
brought to the disk. Every attempt changes a file and fails in another way. Says what an attempt takes
by its share, beside the bare appends and replacements that it cannot go below, and how much memory
the process holds as attempts add up.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import loki
from loki.action.checks.check import Check, CheckResult, Report
from loki.action.loop.performer import Performer
from loki.recognition.failure import recognize_many

AIM_MS = 5.0
"""Milliseconds an attempt may take without agent and checks."""

GROWTH_LIMIT = 1.1
"""Memory at the end over memory at a tenth of the run that still counts as flat."""


def main(words: list[str]) -> int:
    """Runs the loop; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100, help="files of the project")
    parser.add_argument("--git", action="store_true", help="the project is a git repository")
    parser.add_argument("--in", dest="where", default=".", help="folder on the disk to measure on")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    logging.getLogger("loki").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=options.where) as folder:
        found = measure(Path(folder), options.attempts, options.files, git=options.git)
    sys.stdout.write(json.dumps(found, indent=1) + "\n" if options.json else told(found))
    return 0 if found["median_ms"] <= AIM_MS and found["growth"] <= GROWTH_LIMIT else 1


def measure(folder: Path, attempts: int, files: int, *, git: bool) -> dict[str, Any]:
    """Run one task for so many attempts."""
    project = folder / "project"
    make_project(project, files, git=git)
    workspace = loki.Workspace(project)
    moments: list[float] = []
    memory: list[int] = []
    spent: dict[str, float] = defaultdict(float)

    def agent(_: loki.Briefing) -> dict[str, str]:
        moments.append(time.perf_counter())
        if len(moments) % max(1, attempts // 10) == 0:
            memory.append(resident())
        return {"module0.py": f"x = {len(moments)}\n"}

    begin = time.perf_counter()
    with (
        watched(spent),
        workspace.task(
            "overhead", checks=["python -m pytest"], complexity="low", max_attempts=attempts
        ) as task,
    ):
        assert task._session is not None
        task._session.performer.checks = Ready(2 * attempts + 10)  # type: ignore[assignment]
        outcome = task.run(agent)
    end = time.perf_counter() - begin
    gaps = [(b - a) * 1000 for a, b in itertools.pairwise(moments)]
    assert outcome.attempts == attempts, outcome
    late = gaps[-max(1, len(gaps) // 10) :]
    return {
        "attempts": attempts,
        "files": files,
        "git": git,
        "seconds": round(end, 2),
        "median_ms": round(statistics.median(gaps), 3),
        "last_tenth_ms": round(statistics.median(late), 3),
        "p99_ms": round(statistics.quantiles(gaps, n=100)[98], 3),
        "floor_ms": round(floor(folder), 3),
        "by_effect_ms": {
            name: round(seconds * 1000 / attempts, 3) for name, seconds in sorted(spent.items())
        },
        "memory_mb": [round(size / 1e6, 1) for size in memory],
        "growth": round(memory[-1] / memory[0], 3),
    }


class Ready:
    """A check whose answer is ready, recognized too: it fails in another way each time."""

    def __init__(self, runs: int) -> None:
        """Args: runs: how often it can be run."""
        words = ("".join(chr(97 + int(digit)) for digit in str(run)) for run in range(runs))
        said = [f"module0.py:{n}: the widget {word} would not turn" for n, word in enumerate(words)]
        self.failures = iter(recognize_many(said))

    def run(self, checks: tuple[Check, ...], _done: Any = None) -> Report:
        """The next failure."""
        failure = next(self.failures)
        assert failure.match is None, "a pattern's own limit of retries would end the run"
        return Report((CheckResult(checks[0], False, 1, 0.0, failure.excerpt, failure),))

    def run_one(self, check: Check) -> CheckResult:
        """The same, for a strategy that asks again."""
        return self.run((check,)).results[0]


@contextmanager
def watched(spent: dict[str, float]) -> Iterator[None]:
    """Add up the time of each kind of effect, and of the briefing, while inside."""

    def timed(name: str, work: Any) -> Any:
        def wrapped(self: Performer, argument: Any, *others: Any) -> Any:
            begin = time.perf_counter()
            try:
                return work(self, argument, *others)
            finally:
                spent[name or type(argument).__name__] += time.perf_counter() - begin

        return wrapped

    with (
        patch.object(Performer, "perform", timed("", Performer.perform)),
        patch.object(Performer, "briefing", timed("Briefing", Performer.briefing)),
    ):
        yield


def make_project(project: Path, files: int, *, git: bool) -> None:
    """A project of small modules."""
    project.mkdir()
    for number in range(files):
        (project / f"module{number}.py").write_text(f"x = {number}\n")
    if git:
        os.system(f"git -C {project} init -q && git -C {project} add -A")


def floor(folder: Path, times: int = 200) -> float:
    """Milliseconds of one append and one replacement that are brought to the disk.

    An attempt must do at least these two: its record, and the file that it changes.
    """
    log, target = folder / "floor.jsonl", folder / "floor.txt"
    begin = time.perf_counter()
    for number in range(times):
        with log.open("ab") as file:
            file.write(b"x" * 500 + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh = folder / "floor.tmp"
        with fresh.open("wb") as file:
            file.write(str(number).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
    return (time.perf_counter() - begin) * 1000 / times


def resident() -> int:
    """Bytes of memory that the process holds (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def told(found: dict[str, Any]) -> str:
    """The figures, for a person."""
    rows = [
        f"{found['attempts']:,} attempts, a project of {found['files']} files"
        f"{' in git' if found['git'] else ''}, {found['seconds']} s in all",
        f"an attempt, median        {found['median_ms']:.2f} ms   (aim {AIM_MS:g})",
        f"in the last tenth         {found['last_tenth_ms']:.2f} ms",
        f"one in a hundred takes    {found['p99_ms']:.2f} ms or more",
        f"an append and a replacement alone, on the same disk: {found['floor_ms']:.2f} ms",
        "by effect, mean:",
        *(f"  {name:<12} {value:7.3f} ms" for name, value in found["by_effect_ms"].items()),
        f"memory at each tenth, MB: {', '.join(str(size) for size in found['memory_mb'])}"
        f"  (x{found['growth']:.2f}, flat up to {GROWTH_LIMIT:g})",
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
