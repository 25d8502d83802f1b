"""Smoke scenarios of triage, with the real command: when it comes, and what each verdict leads to."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from support.smoke import DAY, HOUR, Smoke, at, is_about, verdict

HALF_AN_HOUR = timedelta(minutes=30)
"""Time for four failures of a task that is due every minute: after 0, 2, 6 and 14 minutes."""

TAGS = ["recurring-triage", "no-recurring-triage"]


@pytest.fixture
def project(tmp_path: Path) -> Smoke:
    return Smoke(tmp_path / "shop")


def test_6_the_third_failure_in_a_row_starts_one_triage(project: Smoke) -> None:
    """Not the second; it is tagged, it is asked once, and the cooldown counts from its start."""
    project.config(verdict("NOOP", before="echo asked >> $TOOLS/times"))
    project.add()
    project.watch(timedelta(minutes=5))
    shown = project.show()
    assert (shown["consecutive_failures"], shown["recent_triages"]) == (2, [])
    assert shown["last_triaged_at"] is None
    project.watch(timedelta(minutes=20))
    shown = project.show()
    (triage,) = shown["recent_triages"]
    assert (triage["id"], triage["tags"], triage["agent"]) == (".triage-backup-1", TAGS, "doc")
    assert triage["started_at"] == shown["last_triaged_at"] == project.runs()[2]["ended_at"]
    assert shown["consecutive_failures"] == 4
    assert (project.tools / "times").read_text() == "asked\n"
    assert shown["triage_cooldown_left_seconds"] > 23 * 3600
    assert "cooldown: 23h" in project.loki("recur", "show", "backup")
    assert json.loads(project.loki("show", ".triage-backup-1", "--json")) == triage


def test_7_noop_changes_nothing(project: Smoke) -> None:
    """No task is submitted, the failing one goes on with its backoff."""
    project.config(verdict("NOOP", "a deploy is under way"))
    project.add()
    project.watch(HALF_AN_HOUR)
    shown, times = project.show(), project.times()
    (triage,) = shown["recent_triages"]
    assert (triage["verdict"], triage["root_cause"]) == ("NOOP", "a deploy is under way")
    assert (shown["paused"], shown["consecutive_failures"]) == (None, 4)
    assert is_about(at(shown["next_run_at"]) - times[3], timedelta(minutes=16))
    assert project.queue() == []


def test_8_file_fix_submits_one_task(project: Smoke) -> None:
    """loki submits `Fix: <root cause>` after the failing task, with the evidence; the agent cannot, and it does not again."""
    project.config(
        verdict("FILE-FIX", before='loki submit "Fix: all" --after other'), triage_cooldown="1h"
    )
    project.add()
    project.watch(DAY)
    shown = project.show()
    first, *others = shown["recent_triages"]
    (fix,) = project.queue()
    assert (fix["title"], fix["after"]) == ("Fix: the endpoint moved", "backup")
    assert "see above" in fix["description"]
    assert (first["fix"], first["acted"]) == (fix["id"], f"the task {fix['id']} was submitted")
    assert len(others) >= 2
    assert {one["acted"] for one in others} == {f"no task was submitted: {fix['id']} asks for it"}
    told = [one["what"] for one in first["refused"]]
    assert told == ["loki submit 'Fix: all' --after other"]
    assert shown["paused"] is None


def test_9_pause_keeps_the_counter(project: Smoke) -> None:
    """The task rests with its three failures; resumed, the next failure is the fourth."""
    project.config(verdict("PAUSE", "it deletes data"))
    project.add()
    project.watch(2 * HOUR)
    shown = project.show()
    assert (shown["status"], shown["consecutive_failures"]) == ("paused", 3)
    assert shown["paused"]["by"] == "triage .triage-backup-1"
    assert shown["paused"]["reason"] == "it deletes data"
    assert len(project.runs()) == 3
    (told,) = project.told()
    assert (told["kind"], told["answer"]) == ("recurring_paused", "loki resume backup")
    assert "backup was paused by its triage .triage-backup-1: it deletes data" in told["text"]
    (waits,) = json.loads(project.loki("status", "--json"))["waiting"]
    assert (waits["id"], waits["kind"]) == ("backup", "recurring")
    project.loki("resume", "backup")
    task = project.task()
    assert (task["paused"], task["consecutive_failures"]) == (None, 3)
    project.watch(timedelta(minutes=10))
    task = project.task()
    assert (task["consecutive_failures"], task["triages"]) == (4, 1)


def test_13_a_shells_task_is_triaged_by_what_it_printed(project: Smoke) -> None:
    """The agent reads exit codes, output and stderr of a task without any agent, and finds the cause there."""
    found = "sed -n 's/^| curl: (6) \\(.*\\)/\\1/p' $TOOLS/asked | head -1"
    project.config(
        f'cat > $TOOLS/asked; cause=$({found})\nprintf "VERDICT=FILE-FIX\\nROOT_CAUSE: %s\\n" "$cause"'
    )
    script = "echo asking shop.example; echo 'curl: (6) Could not resolve host: shop.example' >&2; exit 6"
    project.add(script=script)
    project.watch(HALF_AN_HOUR)
    (triage,) = project.show()["recent_triages"]
    assert triage["root_cause"] == "Could not resolve host: shop.example"
    (fix,) = project.queue()
    assert fix["title"] == "Fix: Could not resolve host: shop.example"
    asked = (project.root / ".loki" / triage["prompt"]).read_text()
    for part in ("exit code 6", "| asking shop.example", "signature", "Failures in a row: 3"):
        assert part in asked
