"""``python -m fuzz.state``: damaged states through all faces; no traceback, and nothing that can be read is lost.

Each input is one damaged file (of those that a face was seen to open) and that face. Prints how many
there were and what was found; ends with 1 where that is anything.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fuzz.state import project
from fuzz.state.trial import work as try_


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.state", description=__doc__)
    parser.add_argument("--inputs", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--project", type=Path, help="one that `fuzz.state.project` made before")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loki-fuzz-") as folder:
        pristine = said.project or Path(folder, "pristine")
        if not pristine.exists():
            project.make(pristine)
        print(f"seed {said.seed}, {said.inputs:,} inputs, {said.jobs} processes", flush=True)
        began = time.monotonic()
        share = -(-said.inputs // said.jobs)
        work = [(pristine, Path(folder, f"job{n}"), said.seed + n, share) for n in range(said.jobs)]
        # One that dies is an error here; of a multiprocessing.Pool nobody would be told.
        with ProcessPoolExecutor(said.jobs, multiprocessing.get_context("fork")) as pool:
            found = [finding for part in pool.map(try_, work) for finding in part]
        took = time.monotonic() - began
    counted = Counter(finding.what for finding in found)
    for what, times in counted.most_common():
        one = next(finding for finding in found if finding.what == what)
        print(f"\n{times} x {what}\n  {one.face}, {one.path}, seed {one.seed}\n{one.told}")
    print(f"{share * said.jobs:,} inputs in {took:,.0f} s: {len(counted)} findings")
    return 1 if counted else 0


if __name__ == "__main__":
    sys.exit(main())
