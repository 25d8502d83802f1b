"""A task's walk through the house does not grow."""

from __future__ import annotations

import subprocess
import sys

from support.paths import ROOT
from tools import walk


def test_a_task_passes_no_more_modules_than_it_did() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.walk"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    passed = {
        line[:12].strip(): int(line[12:].split()[0])
        for line in done.stdout.splitlines()
        if " stays" in line
    }
    assert passed.keys() == walk.BARS.keys()
    assert all(passed[name] <= most for name, most in walk.BARS.items()), passed
