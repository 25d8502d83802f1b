"""`.loki/config.toml`: what it may say of agents, and where its errors stand: with processes."""

from __future__ import annotations

import subprocess
import sys

from loki.config import Config
from loki.decision.monitor.monitor_state import MonitorRules
from loki.memory.sign import SignRules


def test_a_monitor_knows_the_defaults_without_reading_them() -> None:
    """A workspace without a file of settings is watched without loading what they are checked with."""
    assert SignRules(**Config().signs.model_dump(exclude={"max_age"})) == SignRules()
    assert MonitorRules.of(SignRules(), Config().loop.max_retries) == MonitorRules()
    code = (
        "import sys, tempfile, loki; m = loki.Monitor(tempfile.mkdtemp(), session='s')\n"
        "c = loki.ToolCall('Bash', {'command': 'pytest -q'}); m.after(c, 'KeyError: x', exit_code=1)\n"
        "print([m for m in ('pydantic', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
