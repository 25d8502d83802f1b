"""What the sandbox costs a command: the wall time of ``true`` in each box beside the same without.

    python -m benchmarks.sandbox [--runs 40]

Each way is taken in turn with the others, and the median counts: a busy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from loki.action.processes.command_guard import CommandGuard, Rules
from loki.action.processes.landlock import version
from loki.action.processes.process import run
from loki.action.processes.sandbox import Sandbox, _bwrap_works, tree_of, writable
from loki.config import SandboxConfig


def main() -> None:
    """Measure, and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        write = writable(tree_of(tree), (), ["true"], "check", os.environ)
        boxes: dict[str, Sandbox | None] = {"none": None}
        if version():
            boxes[f"Landlock {version()}"] = Sandbox("landlock", write)
        if _bwrap_works(shutil.which("bwrap")):
            boxes["bubblewrap"] = Sandbox("bwrap", write)
        command_guard = CommandGuard(Rules(tree, tree / ".loki"), sandbox=SandboxConfig())
        ways: dict[str, Callable[[], object]] = {
            name: partial(run, ["true"], cwd=tree, box=box) for name, box in boxes.items()
        }
        ways["which box it is, and what decides"] = partial(_look, command_guard, tree)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(runs + 1):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                taken[name].append(time.perf_counter() - start)
    for name, seconds in taken.items():  # the first of each loads what the others find
        print(f"{name:36} {statistics.median(seconds[1:]) * 1000:6.1f} ms")


def _look(command_guard: CommandGuard, tree: Path) -> None:
    with command_guard.over(["true"], tree):
        pass


if __name__ == "__main__":
    main()
