"""The clock that ``LOKI_NOW`` sets for whole commands; what it does by itself is in test_testing: with processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from loki.base.manual_clock import VARIABLE


def test_a_command_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loki", "show", "--project", str(tmp_path)],
        env={VARIABLE: "x"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "LOKI_NOW is 'x'" in done.stderr) == (2, True)
