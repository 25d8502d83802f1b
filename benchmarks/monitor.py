"""Measures what watching an agent's tool calls costs: `python -m benchmarks.monitor`.

What `loki.Monitor` takes `before` and `after` a call, in memory and in a session that processes share, for
a read, an edit, a check that passes and a check that fails (its output is recognized; it is kept, and told
to the branch's signs where it counts), beside one start of the program `true`: the least that a tool call
which runs a command takes anyway. Medians, and the ratio to that start, measured in turn.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from loki import Monitor, ToolCall

FAILED = (
    "F\n=================================== FAILURES ===================================\n"
    "E       KeyError: 'next'\n\napp.py:9: KeyError\n"
    "=========================== short test summary info ============================\n"
    "FAILED test_app.py::test_{} - KeyError: 'next'\n1 failed in 0.02s\n"
)
CHECK = ToolCall("Bash", {"command": "pytest -q"})


def main(words: list[str]) -> int:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--in", dest="where", default=".", help="folder on the disk to measure on")
    options = parser.parse_args(words)
    logging.getLogger("loki").setLevel(logging.ERROR)
    with (
        tempfile.TemporaryDirectory(prefix="loki-bench-", dir=options.where) as memory,
        tempfile.TemporaryDirectory(prefix="loki-bench-", dir=options.where) as shared,
    ):
        monitors = {"in memory": Monitor(memory), "shared": Monitor(shared, session="bench")}
        sys.stdout.write(told(measure(monitors, options.rounds)))
    return 0


def measure(monitors: dict[str, Monitor], rounds: int) -> dict[tuple[str, str], float]:
    """Median seconds by (monitor, call); ``("", "true")`` is the start of that program."""
    times: dict[tuple[str, str], list[float]] = {}

    def timed(key: tuple[str, str], work: Callable[[], Any]) -> None:
        began = time.perf_counter()
        work()
        times.setdefault(key, []).append(time.perf_counter() - began)

    for number in range(rounds):
        timed(("", "true"), lambda: subprocess.run(["true"], check=True))
        for name, monitor in monitors.items():
            for kind, work in calls(monitor, number):
                timed((name, kind), work)
    return {key: statistics.median(found) for key, found in times.items()}


def calls(monitor: Monitor, number: int) -> list[tuple[str, Callable[[], Any]]]:
    """What is measured in a round; every failure of it is another one."""
    path = f"m{number}.py"
    read, edit = ToolCall("Read", {"file_path": path}), ToolCall("Edit", {"file_path": path})
    failed = FAILED.format(number)

    def both(call: ToolCall, output: str, **how: Any) -> Callable[[], Any]:
        return lambda: (monitor.before(call), monitor.after(call, output, **how))

    return [
        ("a read", both(read, "import os\n", ok=True)),
        ("an edit", both(edit, "updated", ok=True)),
        ("a check that passes", both(CHECK, "1 passed", exit_code=0)),
        ("a check that fails", both(CHECK, failed, exit_code=1)),
        ("the instructions", monitor.instructions),
    ]


def told(found: dict[tuple[str, str], float]) -> str:
    """The table, as Markdown."""
    floor = found["", "true"]
    lines = [
        f"One start of `true`: {floor * 1e3:.2f} ms\n",
        "| state | call | ms | of one start of `true` |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {kind} | {seconds * 1e3:.3f} | {seconds / floor:.1%} |"
        for (name, kind), seconds in found.items()
        if name
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
