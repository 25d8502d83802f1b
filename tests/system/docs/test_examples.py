"""The examples of agent frameworks run, and show what they say they show."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.paths import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*_agent.py")))
def test_the_same_agent_with_and_without_loki(example: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / example], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = {line[:24].strip(): line[24:].split(maxsplit=2) for line in done.stdout.splitlines()[1:]}
    assert rows["without loki"] == ["20", "10", "given up on after 20 requests"]
    assert rows["with loki"] == ["7", "3", "Fixed: all tests pass."]
    assert rows["with loki, deaf model"] == ["12", "6", "stopped at the 6th ZeroDivisionError"]
