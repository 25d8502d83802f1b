"""From output to a failure: what the other wings rely on: with processes."""

import subprocess
import sys
from pathlib import Path


def test_importing_loki_stays_light() -> None:
    code = "import sys, loki; loki.recognize('x'); print('yaml' in sys.modules, 'pydantic' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path("/")
    )
    assert run.stdout.split() == ["False", "False"]
