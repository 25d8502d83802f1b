"""A file of many breakers: an outcome costs what it costs alone, none is lost, and others see the truth soon."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.decision import breakers_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a project with a hundred breakers."""
    path = tmp_path / "state" / "circuit-breakers.json"
    loki.Breakers(path)["first"].guard().failure("down")
    entry = json.loads(path.read_text("utf-8"))["first"]
    path.write_text(json.dumps({f"api/{number}": entry for number in range(100)}), "utf-8")
    return path


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers_file, "SECONDS", 0.01)
    monkeypatch.setattr(breakers_file, "REST", 0)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers_file, "SECONDS", 600.0)


def said(path: Path, name: str = "x") -> Any:
    return json.loads(path.read_text("utf-8")).get(name)


def count(path: Path) -> int:
    """What another process knows."""
    return loki.Breakers(path, threshold=100_000, window="24h")["x"].snapshot().failure_count


@pytest.mark.usefixtures("late")
def test_an_outcome_does_not_write_the_others_and_every_process_knows_it(path: Path) -> None:
    breaker = loki.Breakers(path, threshold=100, window="24h")["x"]
    breaker.guard().failure("down")  # the file is in our form from here on
    before = path.stat().st_ino, path.read_bytes()
    for number in range(2, 12):
        breaker.guard().failure("down")
        assert count(path) == number
    assert (path.stat().st_ino, path.read_bytes()) == before


@pytest.mark.usefixtures("soon")
def test_the_file_itself_says_it_soon(path: Path) -> None:
    breakers = loki.Breakers(path, threshold=100, window="24h")
    for _ in range(9):
        breakers["x"].guard().failure("down")
    till = time.monotonic() + 60
    while said(path)["failure_count"] != 9:
        assert time.monotonic() < till
        time.sleep(0.01)
    assert len(json.loads(path.read_text("utf-8"))) == 101


@pytest.mark.usefixtures("late")
def test_a_change_of_state_is_in_the_file_at_once_and_all_else_with_it(path: Path) -> None:
    breakers = loki.Breakers(path, threshold=3)
    for name in ("y", "y", "x", "x"):
        breakers[name].guard().failure("down")
    assert said(path, "x") is None or said(path, "x")["state"] == "CLOSED"
    breakers["x"].guard().failure("down")
    assert said(path, "x")["state"] == "OPEN"
    assert said(path, "y")["failure_count"] == 2
    breakers["y"].isolate()
    assert said(path, "y")["is_isolated"] is True


@pytest.mark.usefixtures("late")
def test_what_another_program_writes_holds_and_what_it_left_alone_stays(path: Path) -> None:
    breakers = loki.Breakers(path, threshold=100, window="24h")
    for name in ("x", "y", "x", "y", "x", "y"):
        breakers[name].guard().failure("down")
    theirs = json.loads(path.read_text("utf-8"))
    theirs["x"] = {**(theirs.get("x") or {}), "state": "OPEN", "failure_count": 3}
    path.write_text(json.dumps(theirs), "utf-8")
    anew = loki.Breakers(path, threshold=100, window="24h")
    assert anew["x"].snapshot().state == "OPEN"
    assert anew["y"].snapshot().failure_count == 3
    breakers.refresh()
    assert breakers["x"].snapshot().state == "OPEN"


@pytest.mark.usefixtures("late")
def test_a_file_that_is_no_more_one_is_set_aside_with_its_log(path: Path) -> None:
    breakers = loki.Breakers(path, threshold=3)
    for _ in range(2):
        breakers["x"].guard().failure("down")
    path.write_bytes(b"{" * 20_000)
    assert loki.Breakers(path)["x"].snapshot().failure_count == 0
    breakers["x"].guard().failure("down")
    assert path.with_name(path.name + ".corrupt-1").exists()
    assert said(path)["failure_count"] == 1
