"""Shared breakers where threads, processes, disks and loggers get in each other's way: with processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.decision.breaker import Transition
from support.forked import exit_code, fork

NAME = "api/claude"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "circuit-breakers.json"


def entry(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))[NAME]
    assert isinstance(found, dict)
    return found


def test_a_child_of_fork_waits_for_no_thread_of_its_parents(path: Path) -> None:
    """A lock that a thread of the parent holds is never let go in the child."""
    breakers = loki.Breakers(path)
    breakers[NAME].guard().success()

    def opens() -> None:
        signal.alarm(20)
        told: list[Transition] = []
        breakers[NAME].listen(told.append)
        breakers[NAME].open()
        assert [t.after for t in told] == ["OPEN"]

    with breakers._lock, breakers[NAME]._announcing:
        child = fork(opens)
    assert exit_code(child) == 0
    assert entry(path)["state"] == "OPEN"
