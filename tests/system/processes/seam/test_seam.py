"""The seam between C++ and Python: lifetimes, threads, what is borrowed: with processes."""

from __future__ import annotations

import subprocess
import sys


def test_the_collector_may_come_while_an_object_is_made() -> None:
    """In a process of its own: what this is about is a crash. The first of a subclass is special."""
    code = (
        "import gc, loki\n"
        "gc.set_threshold(1)\n"
        "for n in range(50): type(f'B{n}', (loki.Breaker,), {})()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
