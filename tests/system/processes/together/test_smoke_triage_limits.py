"""Smoke scenarios of triage, with the real command: what holds it back, and what a person can do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from support.smoke import DAY, HOUR, Smoke, at, verdict

HALF_AN_HOUR = timedelta(minutes=30)
"""Time for four failures of a task that is due every minute: after 0, 2, 6 and 14 minutes."""


@pytest.fixture
def project(tmp_path: Path) -> Smoke:
    return Smoke(tmp_path / "shop")


def test_10_the_cooldown_holds_the_next_triage_back(project: Smoke) -> None:
    """However often it fails within 24 hours there is one triage; when they are over the second comes."""
    project.config(verdict("NOOP"))
    project.add()
    project.watch(23 * HOUR)
    shown = project.show()
    assert shown["consecutive_failures"] >= 9
    assert len(shown["recent_triages"]) == 1
    project.watch(2 * HOUR)
    shown = project.show()
    first, second = (at(one["started_at"]) for one in shown["recent_triages"])
    assert second - first == DAY
    # After that one a failure has to come first.
    project.watch(DAY)
    shown = project.show()
    third = at(shown["recent_triages"][2]["started_at"])
    assert third > second
    assert any(second < time <= third for time in project.times())


def test_11_a_triage_that_fails_leads_to_no_other(project: Smoke) -> None:
    """Each of its failures is one warning; nothing is ever triaged but the recurring task."""
    project.config("echo 'no key' >&2; exit 1", triage_cooldown="1h")
    project.add()
    said = project.watch(4 * DAY)
    triages = project.show()["recent_triages"]
    assert len(triages) >= 5
    assert {one["status"] for one in triages} == {"failed"}
    assert said.count("no recursive triage") == len(triages)
    assert "triage '.triage-backup-1' failed; no recursive triage is started (tagged" in said
    assert "no key" in triages[0]["reason"]
    folders = {path.name for path in (project.root / ".loki" / "recurring").iterdir()}
    assert folders == {"backup"}
    assert {one["task"] for one in project.log("triage_started")} == {"backup"}


def test_12_an_open_breaker_suppresses_triage(project: Smoke) -> None:
    """While the agent's breaker is open nothing is triaged, and each tick says once how many wait; then it comes."""
    project.config(verdict("NOOP"))
    project.add("backup")
    project.add("report")
    project.loki("breakers", "isolate", "agent/doc", "--new")
    said = project.watch(HOUR)
    assert project.task()["consecutive_failures"] == 5
    assert project.log("triage_started") == []
    assert "circuit breaker agent/doc is open: 2 recurring tasks wait for triage" in said
    counts = [one["count"] for one in project.log("triage_suppressed")]
    assert counts == sorted(counts)
    assert counts[-1] == 2
    project.loki("tick")
    assert len(project.log("triage_suppressed")) == len(counts) + 1
    assert project.task()["last_triaged_at"] is None
    project.loki("breakers", "close", "agent/doc")
    project.loki("tick")
    assert {one["task"] for one in project.log("triage_started")} == {"backup", "report"}


def test_14_a_rescue_by_evaluation_is_a_success(project: Smoke) -> None:
    """The first iteration of an agent's cycle is rescued, the next three are not: three failures and one triage."""
    project.config(verdict("NOOP", before="echo asked >> $TOOLS/times"))
    agent = project.program("agent", "date +%N > notes.txt")
    judge = project.program(
        "judge",
        "echo x >> $TOOLS/judged\n"
        '[ $(wc -l < $TOOLS/judged) = 1 ] && echo APPROVED || echo "REJECTED: not done"',
    )
    words = ["--every", "1m", "--task", "make it work", "--agent-command", str(agent)]
    words += ["--check", "false", "--evaluate-command", str(judge), "--max-attempts", "1"]
    project.loki("recur", "add", "--id", "cycle", *words)
    project.watch(timedelta(minutes=8))
    shown = project.show("cycle")
    statuses = [run["status"] for run in project.runs("cycle")]
    assert statuses == ["rescued", "failed", "failed", "failed"]
    assert (shown["consecutive_failures"], shown["total_failures"]) == (3, 3)
    (triage,) = shown["recent_triages"]
    assert (triage["status"], triage["failures"]) == ("done", 3)
    assert (project.tools / "times").read_text() == "asked\n"
    assert (project.tools / "judged").read_text().count("x") == 4
    asked = (project.root / ".loki" / triage["prompt"]).read_text()
    assert "| make it work" in asked
    assert "# Run 4: output\n\n```text\n| task cycle-4: failed" in asked


def test_15_a_person_overrides_counter_and_cooldown(project: Smoke) -> None:
    """`--reset-failures` forgives, `--clear-triage-cooldown` lets its failures be triaged again, a pause and a tag hold it back."""
    project.config(verdict("NOOP"))
    project.add()
    project.watch(HALF_AN_HOUR)
    shown = project.show()
    assert (shown["consecutive_failures"], len(shown["recent_triages"])) == (4, 1)
    cleared = project.now
    project.loki("edit", "backup", "--clear-triage-cooldown")
    assert project.task()["last_triaged_at"] is None
    project.watch(HALF_AN_HOUR)
    shown = project.show()
    assert shown["consecutive_failures"] == 5
    # The fourth failure came after the first triage: with no cooldown left it is looked at now.
    assert [at(one["started_at"]) >= cleared for one in shown["recent_triages"]] == [False, True]
    project.loki("edit", "backup", "--reset-failures")
    shown = project.show()
    assert (shown["consecutive_failures"], shown["total_failures"]) == (0, 5)
    assert at(shown["next_run_at"]) - project.now <= timedelta(minutes=1)
    project.loki("edit", "backup", "--clear-triage-cooldown")
    project.loki("pause", "backup")
    project.watch(HOUR)
    assert len(project.runs()) == 5
    project.loki("edit", "backup", "--tag", "no-recurring-triage")
    project.loki("resume", "backup")
    project.watch(HALF_AN_HOUR)
    shown = project.show()
    assert (shown["consecutive_failures"], len(shown["recent_triages"])) == (4, 2)
