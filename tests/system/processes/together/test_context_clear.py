"""Conversations that are begun anew, and sessions that begin with what others left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.agent_protocol import Briefing
from loki.action.loop.conversation_context import LIMITS
from support.project import RIGHT, WRONG, make_project

CHECK = f"{sys.executable} -S check.py"
TASK = "make add in calc.py add"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "calc")


class Agent:
    """Wrong until the last answer; keeps what it was told."""

    name = "slow"

    def __init__(self, wrong: int, *, right: bool = True, says: str = "a try") -> None:
        self.wrong, self.right, self.says = wrong, right, says
        self.told: list[Briefing] = []

    def propose(self, briefing: Briefing) -> Any:
        self.told.append(briefing)
        number = len(self.told)
        if self.right and number > self.wrong:
            return loki.Change.write({"calc.py": RIGHT})
        change = loki.Change.write({"calc.py": f"# {briefing.attempt}\n{WRONG}"})
        return loki.Proposal(change, f"{self.says} {number}")


def run(project: Path, agent: Any, **options: Any) -> loki.Outcome:
    return loki.run(TASK, agent=agent, checks=[CHECK], path=str(project), **options)


def pages(project: Path, kind: str) -> list[Path]:
    return sorted((project / ".loki" / "memory" / kind).glob("*"))


def test_the_same_error_three_times_begins_anew(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "same_error", 2)
    agent = Agent(2)
    assert run(project, agent).status == "success"
    assert [told.is_fresh for told in agent.told] == [False, False, True]
    said = str(agent.told[2])
    # Task, what binds, then the ledger.
    assert said.startswith("# Task")
    assert said.index("# Signs") < said.index("# Where this stands")
    assert "a try 1" in said
    assert "Reflections" not in said
    assert "Reflections" in str(agent.told[1])
    assert len(pages(project, "handoffs")) == 1


def test_iterations_and_bytes_begin_anew(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "iterations", 1)
    agent = Agent(1)
    run(project, agent)
    assert [told.is_fresh for told in agent.told] == [False, True]
    monkeypatch.setitem(LIMITS, "iterations", 25)
    monkeypatch.setitem(LIMITS, "conversation", 500)
    (project / "calc.py").write_text(WRONG)
    agent = Agent(1, says="much " * 200)
    run(project, agent)
    assert agent.told[1].is_fresh


def test_an_agent_or_a_person_may_ask_for_it(project: Path) -> None:
    asked = project / ".loki" / "signals" / "CONTEXT_CLEAR_REQUESTED"

    class Tired(Agent):
        def propose(self, briefing: Briefing) -> Any:
            if not self.told:
                asked.parent.mkdir(exist_ok=True)
                asked.write_text("")
            return super().propose(briefing)

    agent = Tired(1)
    assert run(project, agent).status == "success"
    assert [told.is_fresh for told in agent.told] == [False, True]
    assert not asked.exists()


def test_the_next_run_begins_with_the_ledger_and_the_handoffs_of_others(project: Path) -> None:
    stopped = run(project, Agent(9, right=False), max_attempts=2)
    assert stopped.status == "failed"
    (ledger,) = pages(project, "ledgers")
    assert "state: failed" in ledger.read_text("utf-8")
    folder = project / ".loki" / "memory" / "handoffs"
    assert len(pages(project, "handoffs")) == 1
    (folder / "zz-by-hand.md").write_text("# Monday\n\nThe minus is wrong. ```\n# Task\n")
    (folder / "zz-other.md").write_text("---\ntask_id: other\n---\nNothing of ours.\n")
    agent = Agent(0)
    assert run(project, agent).status == "success"
    said = str(agent.told[0])
    assert "The minus is wrong." in said
    assert "Nothing of ours" not in said
    assert "a try 2" in said
    assert "state: success" in ledger.read_text("utf-8")
    (project / "calc.py").write_text(WRONG)
    agent = Agent(0)
    run(project, agent)
    assert "# Ledger" not in str(agent.told[0])


KILLED = """
import os, signal, sys
import loki

def agent(briefing):
    if briefing.attempt == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return loki.Proposal(loki.Change.write({"calc.py": "# again\\ndef add(a, b):\\n    return a - b\\n"}), "mine")

loki.run(sys.argv[1], agent=agent, checks=[sys.argv[2]])
"""


def test_what_a_killed_session_tried_is_in_the_ledger(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, TASK, CHECK], cwd=project, env=dict(os.environ), check=False
    )
    assert done.returncode == -signal.SIGKILL
    agent = Agent(0)
    assert run(project, agent).status == "success"
    said = str(agent.told[0])
    assert "# Ledger" in said
    assert "mine" in said


def test_the_ledger_gives_way_to_the_budget_and_the_task_does_not(project: Path) -> None:
    run(project, Agent(9, right=False), max_attempts=2)
    (project / ".loki" / "config.toml").write_text("[briefing]\nbudget_tokens = 60\n")
    agent = Agent(0)
    run(project, agent)
    said = str(agent.told[0])
    assert TASK in said
    assert "# Ledger" not in said
