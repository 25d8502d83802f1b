"""How much of the queue may be worked on while a circuit breaker is open, and afterwards: with processes."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.base.time import SystemClock
from loki.decision import recovery
from loki.jobs.work import worker_pool as capacities
from loki.jobs.work.worker_pool import Capacity
from loki.testing import ManualClock
from support.forked import exit_code, fork


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def breakers(tmp_path: Path, clock: ManualClock) -> loki.Breakers:
    return loki.Breakers(tmp_path / "breakers.json", clock=clock)


def test_after_an_outage_capacity_is_full_again_by_clocks_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times in the shared file differ by microseconds from look to look: that is no new outage."""
    monkeypatch.setattr(recovery, "STEP_SECONDS", 1.5)
    monkeypatch.setattr(capacities, "GROWTH", 3.0)
    looks = Capacity(loki.Breakers(tmp_path / "breakers.json"), SystemClock(), 5)
    looks.look()
    options: Any = {"threshold": 1, "cooldown": "20ms", "recovery_threshold": 1}
    child = fork(lambda: trip_and_close(loki.Breakers(tmp_path / "breakers.json", **options)))
    seen, end = [looks.slots], time.monotonic() + 60
    while time.monotonic() < end and not (len(seen) > 1 and looks.is_full):
        looks.look()
        seen += [looks.slots] if looks.slots != seen[-1] else []
        time.sleep(0.002)
    assert exit_code(child) == 0
    assert seen[0] == seen[-1] == sys.maxsize
    after = list(itertools.dropwhile(lambda slots: slots not in {3, 4}, seen[1:]))
    assert after == sorted(after), "it only grows: no new outage"
    assert set(after) <= {3, 4, sys.maxsize}


def trip_and_close(breakers: loki.Breakers) -> None:
    permit = breakers["api/claude"].try_acquire()
    assert permit is not None
    permit.failure("503")
    probe = None
    while probe is None:
        time.sleep(0.03)
        probe = breakers["api/claude"].try_acquire()
    probe.success()
