"""Breakers that are shared through a file: what is known where, and when; clocks that jump: what takes its time."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.testing import ManualClock

NAME = "api/claude"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "circuit-breakers.json"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def entry(path: Path, name: str = NAME) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))[name]
    assert isinstance(found, dict)
    return found


def test_a_dead_processs_probe_frees_its_slot(path: Path, clock: ManualClock) -> None:
    """By its lease; an outcome that comes after that is void. A probe that is dropped frees it."""
    a, b = loki.Breakers(path, clock=clock)[NAME], loki.Breakers(path, clock=clock)[NAME]
    a.open()
    clock.advance(300)
    lost = a.try_acquire()
    assert lost is not None
    clock.advance(599.9)
    assert b.try_acquire() is None
    clock.advance(0.1)
    probe = b.try_acquire()
    assert probe is not None
    lost.failure("too late")
    probe.success()
    assert entry(path)["success_count"] == 1
    clock.advance(10)
    assert a.try_acquire() is not None  # and dropped at once
    gc.collect()
    clock.advance(10)
    assert b.try_acquire() is None
    a.try_acquire()  # whoever comes next in that process gives it back
    gc.collect()
    assert a.try_acquire() is None
