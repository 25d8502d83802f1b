"""Every delay is the slow reference's, to the nanosecond; what holds of its windows holds here: with processes."""

from __future__ import annotations

import subprocess
import sys

import loki


def test_a_restart_computes_the_same() -> None:
    code = "import loki; print(loki.Backoff('5s', seed=9).preview(50, 'login test'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(loki.Backoff("5s", seed=9).preview(50, "login test"))
