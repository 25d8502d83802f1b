"""A machine that goes down while loki works: what was acknowledged is there, and nothing ends in an error."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.machine import crashed
from benchmarks.machine_crash import SCENARIOS, Scenario, Tell, tried
from loki.base.atomic_file import write_atomic

MOST = None if os.environ.get("LOKI_THOROUGH") == "1" else 8
"""Calls before which the machine goes down; all: some minutes."""


@pytest.mark.parametrize("name", ["changes", "queue", "questions"])
def test_what_was_promised_holds(name: str) -> None:
    found = tried(SCENARIOS[name], most=MOST, seed=random.randrange(10**6))
    assert found.problems == []


def _check(project: Path, told: list[str]) -> Iterator[str]:
    path = project / ".loki/file"
    if told and (not path.exists() or path.read_bytes() != b"new"):
        yield "it is lost"


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_acknowledged_and_not_synced_is_seen_to_be_lost(durable: bool) -> None:
    """The simulation can fail: the same write, acknowledged with and without waiting for the disk."""

    def work(project: Path, tell: Tell) -> None:
        write_atomic(project / ".loki/file", b"old")
        write_atomic(project / ".loki/file", b"new", durable=durable)
        tell("written")

    found = tried(Scenario(lambda _: None, work, _check))
    assert bool(found.problems) == (not durable)


def test_states_differ_in_what_was_not_synced_alone(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "before").write_text("before")

    def work(_: Tell) -> None:
        write_atomic(root / "synced", b"synced")
        write_atomic(root / "not", b"not", durable=False)

    crash = crashed(root, work)
    assert not crash.was_killed
    seen = set()
    for number, (_, keeps) in enumerate(crash.states(30, random.Random(1))):
        after = tmp_path / str(number)
        crash.write(after, keeps, random.Random(number))
        found = {path.name: path.read_bytes() for path in after.iterdir()}
        assert found.pop("before") == b"before"
        assert found.pop("synced") == b"synced"
        seen.add(found.get("not"))
    assert {None, b"not", b"\0\0\0"} <= seen
    assert seen <= {None, b"not", b"", b"n", b"no", b"\0\0\0"}
