"""Honest work in the whole loop: claims decide nothing, are answered, and are kept for people: with processes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import loki
from loki.base import yaml_text
from support.project import QUICK, RIGHT, make_project

KEY = "sk-ant-api03-" + "Ab3" * 31
WRONG = "def add(a, b):\n    return a * b\n"


def scripted(*answers: loki.Proposal) -> tuple[list[str], loki.Agent]:
    told: list[str] = []
    left = list(answers)

    class Agent:
        name = "scripted"

        def propose(self, briefing: loki.Briefing) -> loki.Proposal:
            told.append(str(briefing))
            return left.pop(0)

    return told, Agent()


def wrote(text: str, description: str) -> loki.Proposal:
    return loki.Proposal(loki.Change.write({"calc.py": text}), description)


def run(root: Path, *answers: loki.Proposal) -> tuple[loki.Outcome, list[str]]:
    told, agent = scripted(*answers)
    return loki.run("make add add", agent=agent, checks=[QUICK], path=str(root), id="t"), told


def test_a_claim_is_contradicted_in_the_next_briefing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = make_project(tmp_path / "p")
    claim = f"Fixed! All tests pass now, the other failure is just flaky. Key {KEY}"
    with caplog.at_level(logging.INFO, "loki"):
        outcome, told = run(root, wrote(WRONG, claim), wrote(RIGHT, "add adds"))
    assert outcome.status == "success"
    assert "# What you said of the last attempt" not in told[0]
    section = told[1].split("# What you said of the last attempt")[1].split("\n# ")[0]
    assert "All tests pass now" in section
    assert "failed with exit code 1" in section
    assert "Find out why the test fails" in section
    assert "findings=unverified-claim,flaky-tests" in caplog.text
    kept = (root / ".loki/memory/episodic/rationalizations-t.md").read_text()
    fields, body = yaml_text.parse(kept)
    assert fields["category"] == "episodic"
    assert [one["id"] for one in fields["findings"]] == ["unverified-claim", "flaky-tests"]
    assert "## Attempt 1: The tests are flaky" in body
    for text in (kept, told[1], (root / ".loki/tasks/t/attempts.jsonl").read_text()):
        assert KEY not in text


def test_a_finding_fails_no_change_whose_checks_pass(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    outcome, _ = run(root, wrote(RIGHT, "Quick fix, should be fine. We can refactor later."))
    assert (outcome.status, outcome.attempts) == ("success", 1)
    (attempt,) = loki.Workspace(root).history("t").attempts()
    assert [f["id"] for f in attempt.findings] == ["minimizing", "hedging", "refactor-later"]


def test_an_honest_message_leaves_no_trace(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    _, told = run(root, wrote(WRONG, "multiply, to see what fails"), wrote(RIGHT, "add adds"))
    assert "# What you said" not in told[1]
    assert not (root / ".loki/memory/episodic").exists()


def test_claims_without_a_change_are_never_success(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    claim = "I already verified this: all tests pass, nothing to change."
    nothing = loki.Proposal(loki.Change.nothing(), claim, confidence=1.0)
    outcome, told = run(root, *[nothing] * 4)
    assert outcome.status in {"failed", "escalated"}
    assert outcome.files == ()
    assert all("no check was reached" in text for text in told[1:])


def test_a_claim_is_not_believed_of_a_caller_that_edits_by_itself(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    with loki.Workspace(root).task("make add add", checks=[QUICK], id="t") as task:
        for number, attempt in enumerate(task.attempts()):
            (root / "calc.py").write_text(RIGHT if number else WRONG)
            attempt.report(ok=True, description="Everything works now." if not number else "")
    assert task.outcome is not None
    assert (task.outcome.status, task.outcome.attempts) == ("success", 2)
    first = loki.Workspace(root).history("t").attempts()[0]
    assert "failed with exit code 1" in first.findings[0]["evidence"]


def test_what_was_said_is_told_after_an_interruption(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")

    class Interrupting:
        name = "a"

        def __init__(self) -> None:
            self.asked = 0

        def propose(self, _briefing: loki.Briefing) -> loki.Proposal:
            self.asked += 1
            if self.asked > 1:
                raise KeyboardInterrupt
            return wrote(WRONG, "It should work now.")

    stopped = loki.run("make add add", agent=Interrupting(), checks=[QUICK], path=str(root), id="t")
    assert stopped.status == "interrupted"
    _, told = run(root, wrote(RIGHT, "add adds"))
    assert "It should work now." in told[0].split("# What you said")[1]
