"""Signs in a real loop: an agent that goes round in circles, branches, and rules that outlive a run."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.base.tokens import tokens
from loki.memory.sign import Advice
from loki.testing import ManualClock, ScriptedAgent
from support.project import QUICK, RIGHT, WRONG, make_project

MINUS = {"calc.py": WRONG}
TIMES = {"calc.py": "def add(a, b):\n    return a * b\n"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc", git=True)


def git(project: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=project, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class Oscillating:
    """Repairs one thing by breaking the other, for ever."""

    name = "oscillating"

    def __init__(self, changes: int = 99) -> None:
        self.briefings: list[str] = []
        self._changes = changes

    def propose(self, briefing: loki.Briefing) -> loki.Proposal:
        self.briefings.append(str(briefing))
        number = len(self.briefings)
        if number > self._changes:
            return loki.Proposal(loki.Change.write({"calc.py": RIGHT}), "added them")
        term, done = ("* b", "multiplied them") if number % 2 else ("+ str(b)", "made it text")
        text = f"def add(a, b):\n    return a {term}  # {number}\n"
        return loki.Proposal(loki.Change.write({"calc.py": text}), done)


def run(project: Path, agent: Any, title: str = "make add add", **options: Any) -> loki.Outcome:
    return loki.run(title, agent=agent, checks=[QUICK], path=str(project), **options)


def signs_of(briefing: str) -> str:
    """The section of the signs; "" where there is none."""
    return briefing.partition("\n# Signs")[2].partition("\n# ")[0]


def test_an_agent_that_goes_round_in_circles_is_told_so(project: Path) -> None:
    agent = Oscillating()
    with loki.Workspace(project).task("make add add", checks=[QUICK], max_attempts=7) as task:
        for attempt in task.attempts():
            attempt.propose(agent.propose(attempt.briefing))
    first, second, third, fourth, fifth = agent.briefings[:5]
    # A-B-A-B: the third attempt fails as the first did, so the fourth is the first to be bound.
    assert all(text.startswith("# ") and "# Signs" not in text for text in (first, second, third))
    assert fourth.startswith("# Task\n")
    assert "\n# Signs: binding, whatever else is said below\n\n" in fourth
    assert "AssertionError: 6" in signs_of(fourth)
    assert "led there (2 times): `multiplied them`" in fourth
    assert "Do not do any of these again for this failure." in fourth
    assert signs_of(fifth).count("- Seen 2 times") == 2
    assert "TypeError: unsupported operand" in signs_of(fifth)
    assert "These come back in turn" in fifth
    page = (project / ".loki/run/main/anti-repeat.md").read_text()
    assert page.startswith("# Signs on `main`")
    assert git(project, "status", "--short") == "M calc.py", "git sees nothing of what loki keeps"


def test_another_branch_sees_none_of_it(project: Path) -> None:
    run(project, Oscillating(), max_attempts=4)
    git(project, "stash")
    git(project, "checkout", "-qb", "other")
    agent = ScriptedAgent([TIMES, {"calc.py": RIGHT}])
    assert run(project, agent, "add again").status == "success"
    assert all("# Signs" not in str(briefing) for briefing in agent.briefings)
    git(project, "stash", "drop")
    git(project, "commit", "-qam", "right")
    git(project, "checkout", "-q", "main")
    back = ScriptedAgent([{"calc.py": RIGHT}])
    run(project, back, "add once more")
    assert signs_of(str(back.briefings[0])), "signs bind every later task of the run"


def test_the_run_of_a_merged_branch_ends_by_itself(project: Path) -> None:
    git(project, "checkout", "-qb", "fix")
    run(project, Oscillating(4), max_attempts=5)
    assert len(loki.Workspace(project).signs("fix").armed) == 2
    (project / "calc.py").write_text(RIGHT)
    git(project, "commit", "-qam", "right")
    git(project, "checkout", "-q", "main")
    run(project, ScriptedAgent([]), "not merged yet", kind="feature", max_attempts=1)
    assert len(loki.Workspace(project).signs("fix").armed) == 2
    git(project, "merge", "-q", "fix")
    run(project, ScriptedAgent([]), "merged", kind="feature", max_attempts=1)
    assert loki.Workspace(project).signs("fix").armed == ()
    assert not (project / ".loki/run/fix").exists()
    (line,) = (project / ".loki/logs/closed-runs.jsonl").read_text().splitlines()
    assert json.loads(line)["reason"] == "merged"


def test_a_rule_outlives_its_run(project: Path) -> None:
    """A run fails, it is closed, a person approves, and the next briefing says it."""
    outcome = run(project, Oscillating(), max_attempts=4)
    assert outcome.status in {"failed", "escalated"}
    workspace = loki.Workspace(project)
    closed = workspace.runs().close()
    assert closed is not None
    found = {candidate.id: candidate.name for candidate in closed.candidates}
    multiplied = next(id_ for id_, rule in found.items() if "multiplied them" in rule)
    assert workspace.runs().open() == []

    before = ScriptedAgent([{"calc.py": RIGHT}])
    run(project, before, "add, unreviewed")
    assert "# Learned rules" not in str(before.briefings[0])
    (project / "calc.py").write_text(WRONG)
    now = workspace.clock.now()
    workspace.review().approve(multiplied, "ada", now)
    after = ScriptedAgent([{"calc.py": RIGHT}])
    run(project, after, "add, reviewed")
    text = str(after.briefings[0])
    assert "# Learned rules\n\nA person approved them; they hold for every task." in text
    assert "These led nowhere: `multiplied them`" in text
    assert "# Signs" not in text


def test_a_rule_that_a_person_wrote_by_hand(project: Path) -> None:
    folder = project / ".loki/memory/learned"
    folder.mkdir(parents=True)
    (folder / "style.md").write_text("Never use eval.\n")
    (folder / "broken.md").write_text("---\nid: [\n---\nx")
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    run(project, agent)
    assert "```text\n- Never use eval.\n```" in str(agent.briefings[0])


def test_what_polls_is_exempt(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text('[signs]\nexempt = ["*check.py"]\n')
    agent = Oscillating()
    run(project, agent, max_attempts=4)
    assert all("# Signs" not in text for text in agent.briefings)


def test_a_threshold_of_its_own(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text("[signs]\nthreshold = 3\n")
    signs = loki.Workspace(project).signs()
    text = "FAILED t.py::test_a - KeyError: 'next'"
    advice = [signs.observe(text, f"approach {n}").advice for n in range(4)]
    assert advice == [Advice.GO_ON, Advice.GO_ON, Advice.AVOID, Advice.CHANGE]
    assert loki.Workspace(project).signs(threshold=5).armed == ()


def test_what_nobody_can_know_to_be_the_same_arms_nothing(project: Path) -> None:
    (project / "check.py").write_text("print('failed')\nraise SystemExit(1)\n")
    agent = Oscillating()
    run(project, agent, max_attempts=4)
    assert len(agent.briefings) >= 2
    assert not (project / ".loki/run").exists()


def armed(workspace: loki.Workspace) -> int:
    return len(workspace.signs().armed)


def seen_twice(workspace: loki.Workspace) -> None:
    for approach in ("added a default", "caught the error"):
        workspace.signs().observe("FAILED t.py::test_a - KeyError: 'next'", approach)


@pytest.mark.parametrize("has_git", [True, False])
def test_a_run_on_the_default_branch_ends_by_age(tmp_path: Path, has_git: bool) -> None:
    clock = ManualClock(datetime(2026, 4, 4, tzinfo=timezone.utc))
    workspace = loki.Workspace(make_project(tmp_path / "calc", git=has_git), clock=clock)
    seen_twice(workspace)
    clock.advance(6 * 86_400)
    assert workspace.runs().close_ended() == []
    clock.advance(2 * 86_400)
    (closed,) = workspace.runs().close_ended()
    assert (closed.reason, closed.signs, len(closed.candidates)) == ("old", 1, 1)
    assert armed(workspace) == 0


def test_a_run_on_the_default_branch_ends_when_another_is_merged_into_it(project: Path) -> None:
    workspace = loki.Workspace(project)
    seen_twice(workspace)
    git(project, "commit", "-q", "--allow-empty", "-m", "work goes on")
    assert workspace.runs().close_ended() == []
    git(project, "checkout", "-qb", "fix")
    git(project, "commit", "-q", "--allow-empty", "-m", "mended")
    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "--no-ff", "--no-edit", "fix")
    (closed,) = workspace.runs().close_ended()
    assert (closed.branch, closed.reason) == ("main", "merged into")
    assert armed(workspace) == 0


def test_a_run_on_another_branch_has_no_age(project: Path) -> None:
    clock = ManualClock(datetime(2026, 4, 4, tzinfo=timezone.utc))
    workspace = loki.Workspace(project, clock=clock)
    git(project, "checkout", "-qb", "fix")
    seen_twice(workspace)
    clock.advance(100 * 86_400)
    assert workspace.runs().close_ended() == []
    assert armed(workspace) == 1


def test_an_unrelated_task_hears_of_forty_signs_in_a_few_words(project: Path) -> None:
    workspace = loki.Workspace(project)
    for number in range(40):
        for approach in ("added a default", "caught the error"):
            said = f"FAILED area{number}/test_part{number}.py::test_it - KeyError: 'next{number}'"
            workspace.signs().observe(said, approach, f"task-{number}")
    assert armed(workspace) == 40
    agent = ScriptedAgent([{"calc.py": RIGHT}])
    run(project, agent, "make add add")
    text = str(agent.briefings[0])
    assert text.startswith("# Task\n\n```text\nmake add add\n```")
    assert tokens(signs_of(text)) <= 200
