"""Smoke scenarios of recurring tasks, with the real command: how failures are waited out."""

from __future__ import annotations

import itertools
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from support.smoke import DAY, HOUR, Smoke, at, is_about

MINUTE = timedelta(minutes=1)
UNTIL_OK = "test -e ok"
HOURLY = ("--cron", "0 * * * *", "--zone", "UTC")


@pytest.fixture
def project(tmp_path: Path) -> Smoke:
    return Smoke(tmp_path / "shop")


def test_1_the_delay_doubles_with_each_failure(project: Smoke) -> None:
    """Three failures of an hourly task are waited out with 2, 4 and 8 hours; a success goes back to the schedule."""
    project.add("backup", *HOURLY, script=UNTIL_OK)
    project.watch(10 * HOUR)
    times, shown = project.times(), project.show()
    assert shown["consecutive_failures"] == 3
    assert is_about(times[1] - times[0], 2 * HOUR)
    assert is_about(times[2] - times[1], 4 * HOUR)
    assert is_about(at(shown["next_run_at"]) - times[2], 8 * HOUR)
    (project.root / "ok").touch()
    project.watch(8 * HOUR)
    shown = project.show()
    assert (shown["consecutive_failures"], shown["total_failures"]) == (0, 3)
    following = at(shown["next_run_at"])
    assert (following.minute, following.second) == (0, 0)
    assert following - project.now <= HOUR


def test_2_no_delay_is_above_the_cap(project: Smoke) -> None:
    """Twenty failures in a row: no delay is over 24 hours, and at the cap delays still differ."""
    project.add()
    project.watch(13 * DAY)
    times = project.times()
    assert len(times) >= 20
    delays = [after - before for before, after in itertools.pairwise(times)]
    assert all(2 * MINUTE * 0.9 <= one <= DAY for one in delays)
    capped = delays[11:]  # 2^11 minutes are more than a day
    assert all(0.8 * DAY <= one <= DAY for one in capped)
    assert len(set(capped)) == len(capped)
    assert project.task()["consecutive_failures"] == len(times)


def test_3_a_restart_computes_the_same_delay(project: Smoke, tmp_path: Path) -> None:
    """One dispatcher and a new one for every run plan the same times; two tasks differ."""
    project.add("backup", *HOURLY)
    project.add("report", *HOURLY)
    other = Smoke(tmp_path / "other")
    shutil.rmtree(other.root)
    shutil.copytree(project.root, other.root)
    project.watch(8 * HOUR)
    for _ in range(3):
        due = min(at(other.task(id_)["next_run_at"]) for id_ in ("backup", "report"))
        other.now = due
        other.loki("tick")
    seen = {id_: project.times(id_) for id_ in ("backup", "report")}
    again = {id_: other.times(id_) for id_ in ("backup", "report")}
    for id_, times in again.items():
        assert len(times) >= 2
        assert times == seen[id_][: len(times)]
    assert abs(seen["backup"][1] - seen["report"][1]) >= timedelta(seconds=1)


def test_4_a_success_resets_the_counter(project: Smoke) -> None:
    """Two failures, a success, a failure: the last one is waited out as the first was."""
    project.add("backup", *HOURLY, script=UNTIL_OK)
    project.watch(4 * HOUR)
    assert project.task()["consecutive_failures"] == 2
    (project.root / "ok").touch()
    project.watch(5 * HOUR)
    assert project.runs()[2]["status"] == "success"
    assert project.task()["consecutive_failures"] == 0
    (project.root / "ok").unlink()
    project.watch(HOUR)
    shown, times = project.show(), project.times()
    assert (shown["consecutive_failures"], shown["total_failures"]) == (1, 3)
    assert is_about(at(shown["next_run_at"]) - times[-1], 2 * HOUR)


def test_5_a_cycle_backs_off_and_stops_after_its_restarts(project: Smoke) -> None:
    """Three restarts after 2, 4 and 8 minutes; the failure after them stops it until a person resumes it."""
    project.config(triage_threshold=9)
    project.add("sync", "--every", "60s", "--max-failure-restarts", "3")
    project.watch(2 * HOUR)
    times, shown = project.times("sync"), project.show("sync")
    delays = [after - before for before, after in itertools.pairwise(times)]
    assert [run["status"] for run in project.runs("sync")] == ["failed"] * 4
    assert all(is_about(one, n * MINUTE) for one, n in zip(delays, (2, 4, 8), strict=True))
    assert (shown["status"], shown["consecutive_failures"]) == ("failed", 4)
    assert "loki resume sync" in project.loki("recur", "show", "sync")
    assert [one["kind"] for one in project.told()] == ["recurring_stopped"]
    project.loki("resume", "sync")
    project.watch(MINUTE)
    assert len(project.runs("sync")) == 5
    assert project.task("sync")["consecutive_failures"] == 5
