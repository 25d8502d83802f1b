"""Measures what the queue costs beside the work: `python -m benchmarks.queue`.

Processes share one queue of tasks that need no time: each claims a task, completes it, and claims the
next. Says what a claim and a completion take by the clock and of the processor (waiting for the lock
included) and the longest that a claim had to wait; beside a table in SQLite that 30 lines claim from,
in the same run. That one keeps nothing but a state: no lists that other programs read and write, no
leases, no dependencies. Then what it takes to look at a long queue, and at an empty one: whole processes
from start to end.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from loki.base.time import SystemClock
from loki.jobs.queue import queued_task
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.stores.file_store import FileStore

COLUMNS = ("who", "tasks", "processes", "ended", "wall_ms", "cpu_ms", "longest_ms")
LOOKS = (
    ("--version",),
    ("status",),
    ("queue",),
    ("submit", "--task", "one more", "--check", "true"),
)


def main(words: list[str]) -> int:
    """Runs each size with one process and with many."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", type=int, nargs="*", default=[500, 10_000])
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 6])
    parser.add_argument("--most", type=int, default=500, help="tasks to end; the others stay")
    parser.add_argument(
        "--looks", type=int, default=20_000, help="tasks of the queue looked at; 0: none"
    )
    parser.add_argument("--in", dest="where", default=".", help="folder on the disk to measure on")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    rows = list(measured(options.tasks, options.processes, options.most, options.where))
    sizes = (0, options.looks) if options.looks else ()
    looks = {str(tasks): looked(tasks, options.where) for tasks in sizes}
    if options.json:
        sys.stdout.write(json.dumps({"claims": rows, "looks": looks}, indent=1) + "\n")
        return 0
    for row in (dict(zip(COLUMNS, COLUMNS, strict=True)), *rows):
        sys.stdout.write("".join(f"{row[name]:>16}" for name in COLUMNS) + "\n")
    for tasks, commands in looks.items():
        for name, (wall, cpu) in commands.items():
            sys.stdout.write(
                f"{name:>16}, {int(tasks):6,} tasks: {wall:.2f} s, {cpu:.2f} s of the processor\n"
            )
    return 0


def measured(
    sizes: list[int], processes: list[int], most: int, where: str
) -> Iterator[dict[str, Any]]:
    """Rows for each size and number of processes: loki's queue, and SQLite by hand."""
    for tasks in sizes:
        for count in processes:
            for who in (Loki, ByHand):
                with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=where) as name:
                    yield measure(who(Path(name), tasks), tasks, count, min(tasks, most))


class Loki:
    """The queue of a project."""

    name = "loki"

    def __init__(self, folder: Path, tasks: int) -> None:
        self._folder = folder
        open_queue(folder).submit_all([task(number) for number in range(tasks)])

    @contextmanager
    def working(self) -> Iterator[Callable[[], Callable[[], object] | None]]:
        """What claims a task, and gives what completes it."""
        queue = open_queue(self._folder)
        with Worker(self._folder) as worker:

            def claim() -> Callable[[], object] | None:
                found = queue.lease(worker)
                return None if found is None else lambda: queue.complete(found)

            yield claim

    def ended(self) -> int:
        """How many tasks are completed."""
        return open_queue(self._folder).counts()[0]["completed"]


class ByHand:
    """A table in SQLite, as one would write it."""

    name = "sqlite by hand"

    def __init__(self, folder: Path, tasks: int) -> None:
        self._path = folder / "tasks.db"
        with closing(self._open()) as base:
            base.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, state TEXT, line TEXT)")
            base.execute("CREATE INDEX by_state ON task (state, id)")
            base.execute("BEGIN")
            lines = (
                (json.dumps(queued_task.write_entry(task(number))),) for number in range(tasks)
            )
            base.executemany("INSERT INTO task (state, line) VALUES ('pending', ?)", lines)
            base.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._path, timeout=60, isolation_level=None)
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        return base

    @contextmanager
    def working(self) -> Iterator[Callable[[], Callable[[], object] | None]]:
        """What claims a task, and gives what completes it."""
        with closing(self._open()) as base:

            def claim() -> Callable[[], object] | None:
                base.execute("BEGIN IMMEDIATE")
                first = "SELECT id, line FROM task WHERE state = 'pending' ORDER BY id LIMIT 1"
                found = base.execute(first).fetchone()
                if found is not None:
                    json.loads(found[1])
                    base.execute("UPDATE task SET state = 'claimed' WHERE id = ?", found[:1])
                base.execute("COMMIT")
                done = "UPDATE task SET state = 'completed' WHERE id = ?"
                return None if found is None else lambda: base.execute(done, found[:1])

            yield claim

    def ended(self) -> int:
        """How many tasks are completed."""
        with closing(self._open()) as base:
            found = base.execute("SELECT COUNT(*) FROM task WHERE state = 'completed'")
            return int(found.fetchone()[0])


def measure(queue: Loki | ByHand, tasks: int, processes: int, most: int) -> dict[str, Any]:
    """So many processes end so many tasks together."""
    shares = [most // processes + (number < most % processes) for number in range(processes)]
    reading, writing = os.pipe()
    begin, cpu = time.perf_counter(), children_cpu()
    children = [started(queue, share, writing) for share in shares]
    os.close(writing)
    for child in children:
        os.waitpid(child, 0)
    wall, cpu = time.perf_counter() - begin, children_cpu() - cpu
    with os.fdopen(reading) as lines:
        longest = max(float(line) for line in lines)
    figures = (wall / most, cpu / most, longest)
    milliseconds = [round(seconds * 1000, 1) for seconds in figures]
    told = [queue.name, tasks, processes, queue.ended(), *milliseconds]
    return dict(zip(COLUMNS, told, strict=True))


def started(queue: Loki | ByHand, share: int, writing: int) -> int:
    """A process that ends its share of the tasks, and tells its longest wait for a claim."""
    child = os.fork()
    if child == 0:
        try:
            longest = 0.0
            with queue.working() as claim:
                for _ in range(share):
                    begin = time.perf_counter()
                    complete = claim()
                    longest = max(longest, time.perf_counter() - begin)
                    if complete is not None:
                        complete()
            os.write(writing, f"{longest}\n".encode())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def looked(tasks: int, where: str) -> dict[str, tuple[float, float]]:
    """Seconds by the clock and of the processor that commands take, the best of six."""
    found: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=where) as name:
        open_queue(Path(name) / ".loki").submit_all([task(number) for number in range(tasks)])
        # One command after the other: submissions, the last, make the queue longer.
        for number, words in enumerate(one for one in LOOKS for _ in range(6)):
            more = ("--id", f"more-{number}") if words[0] == "submit" else ()
            begin, cpu = time.perf_counter(), children_cpu()
            project = () if words == ("--version",) else ("--project", name)
            command = [sys.executable, "-m", "loki", *words, *more, *project]
            # As installed: compiled once, not at each start.
            known = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=known)
            figures = (time.perf_counter() - begin, children_cpu() - cpu)
            found[words[0]] = min(figures, found.get(words[0], figures))
    return found


def children_cpu() -> float:
    """Seconds of the processor that ended processes of this one took."""
    times = os.times()
    return times.children_user + times.children_system


def open_queue(folder: Path) -> Queue:
    """The queue."""
    return Queue(FileStore(folder), SystemClock())


def task(number: int) -> QueuedTask:
    """A task of a usual size."""
    return QueuedTask(
        f"task-{number}", f"Do thing {number}", "As was said. " * 25, checks=("pytest -q",)
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
