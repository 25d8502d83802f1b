"""`loki breakers` as its users meet it, beside who uses the breakers: with processes."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

import loki
from support import command


def run(project: Path, *arguments: str) -> command.Ended:
    return command.loki("breakers", *arguments, cwd=project)


@pytest.fixture
def breakers(tmp_path: Path) -> loki.Breakers:
    """One that tripped, and one that had a failure."""
    found = loki.Workspace(tmp_path).breakers()
    for _ in range(3):
        found["api/claude"].guard().failure("529 overloaded")
    found["api/openai"].guard().failure(OSError("connection lost"))
    return found


def test_watch_tells_each_change(tmp_path: Path, breakers: loki.Breakers) -> None:
    """Of all processes, until Ctrl-C."""
    watching = subprocess.Popen(
        [*command.LOKI, "breakers", "watch", "--interval", "10ms"],
        cwd=tmp_path,
        stdout=-1,
        stderr=-1,
        text=True,
    )
    assert watching.stdout
    assert [watching.stdout.readline().split()[0] for _ in range(3)][1:] == [
        "api/claude",
        "api/openai",
    ]
    breakers["api/claude"].close()
    assert watching.stdout.readline().endswith("Z api/claude OPEN -> CLOSED\n")
    breakers["other"].isolate()
    assert watching.stdout.readline().endswith("Z other CLOSED -> OPEN\n")
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (130, "loki: interrupted\n")
    code, _, err = run(tmp_path, "watch", "--interval", "soon")
    assert (code, "--interval" in err) == (2, True)
    code, _, err = run(tmp_path, "watch", "--interval", "0s")
    assert (code, "expected a time above 0" in err) == (2, True)
