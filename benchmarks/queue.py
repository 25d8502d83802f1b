"""Measures what the queue costs beside the work: `python -m benchmarks.queue`.

Processes share one queue of tasks that need no time: each claims a task, completes it, and claims the
next. Says what a task takes by the clock and of the processor (waiting for the lock included), the
longest that a claim had to wait, and what four replacements of a file of that size take, which a claim
and a completion cannot go below: each writes two lists and brings them to the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loki.base import file
from loki.base.time import SystemClock
from loki.recurrence.queue import Queue
from loki.recurrence.queued import QueuedTask
from loki.recurrence.worker import Worker
from loki.stores.files import FileStore

COLUMNS = ("tasks", "processes", "ended", "wall_ms", "cpu_ms", "longest_ms", "floor_ms")


def main(words: list[str]) -> int:
    """Runs each size with one process and with many."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", type=int, nargs="*", default=[500, 5000])
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 20])
    parser.add_argument("--most", type=int, default=500, help="tasks to end; the others stay")
    parser.add_argument("--in", dest="where", default=".", help="folder on the disk to measure on")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    rows = list(measured(options.tasks, options.processes, options.most, options.where))
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    for row in (dict(zip(COLUMNS, COLUMNS, strict=True)), *rows):
        sys.stdout.write("".join(f"{row[name]:>12}" for name in COLUMNS) + "\n")
    return 0


def measured(
    sizes: list[int], processes: list[int], most: int, where: str
) -> Iterator[dict[str, Any]]:
    """One row for each size and number of processes."""
    for tasks in sizes:
        for count in processes:
            with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=where) as name:
                yield measure(Path(name), tasks, count, min(tasks, most))


def measure(folder: Path, tasks: int, processes: int, most: int) -> dict[str, Any]:
    """So many processes end so many tasks together."""
    open_queue(folder).submit_all([task(number) for number in range(tasks)])
    size = (folder / "queue" / "pending.json").stat().st_size
    floor = replaced(folder / "floor", size)
    shares = [most // processes + (number < most % processes) for number in range(processes)]
    reading, writing = os.pipe()
    begin, cpu = time.perf_counter(), children_cpu()
    children = [started(folder, share, writing) for share in shares]
    os.close(writing)
    for child in children:
        os.waitpid(child, 0)
    wall, cpu = time.perf_counter() - begin, children_cpu() - cpu
    with os.fdopen(reading) as lines:
        longest = max(float(line) for line in lines)
    ended = len(open_queue(folder).tasks("completed"))
    figures = (wall / most, cpu / most, longest, floor)
    told = [tasks, processes, ended, *(round(seconds * 1000, 1) for seconds in figures)]
    return dict(zip(COLUMNS, told, strict=True))


def started(folder: Path, share: int, writing: int) -> int:
    """A process that ends its share of the tasks, and tells its longest wait for a claim."""
    child = os.fork()
    if child == 0:
        queue, longest = open_queue(folder), 0.0
        with Worker(folder) as worker:
            for _ in range(share):
                begin = time.perf_counter()
                claim = queue.claim(worker)
                longest = max(longest, time.perf_counter() - begin)
                if claim is not None:
                    queue.complete(claim)
        os.write(writing, f"{longest}\n".encode())
        os._exit(0)
    return child


def replaced(path: Path, size: int) -> float:
    """Seconds that four replacements of a file take."""
    data = b"x" * size
    begin = time.perf_counter()
    for _ in range(4):
        file.write_atomic(path, data)
    return time.perf_counter() - begin


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
