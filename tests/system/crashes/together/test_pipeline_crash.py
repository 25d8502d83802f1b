"""Pipelines that are killed: at every transition, and at calls that change the disk."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loki.action.pipelines.pipeline_state import Phase, RunState
from loki.execution.pipeline_session import PipelineSession, StageWork
from loki.testing import ManualClock
from support.journal import die_at_call, killed
from support.stages import (
    AFTER,
    AGENTS,
    BEFORE,
    PIPELINE,
    architect,
    lead,
    make,
    run,
    statuses,
    workspace,
    wrong,
)

EVERY = 1 if os.environ.get("LOKI_THOROUGH") else 23
"""Of the calls that change something on the disk, every so many-th is tried."""


def die_at(number: int, phase: Phase | None = None) -> None:
    """In a forked child: SIGKILL at the n-th moment before or after a step is kept or worked on.

    After it is kept is before its effect is performed, before the next is kept is after that.
    """
    left = number

    def around(owner: type[Any], name: str, state_of: Callable[[Any], RunState]) -> None:
        original = getattr(owner, name)

        def counted(self: Any) -> Any:
            tick(state_of(self))
            answer = original(self)
            tick(state_of(self))
            return answer

        setattr(owner, name, counted)

    def tick(state: RunState) -> None:
        nonlocal left
        left -= phase is None or state.phase is phase or bool(state.rollback)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    around(PipelineSession, "_save", lambda session: session.state)
    around(StageWork, "run", lambda work: work.session.state)


def counting(calls: Path) -> dict[str, Any]:
    """The agents; each call of one leaves a line, whoever is killed."""

    def told(name: str, agent: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def propose(briefing: Any) -> Any:
            with calls.open("a") as file:
                file.write(f"{name}\n")
            return agent(briefing)

        return propose

    return {**AGENTS, "architect": told("architect", architect), "tech-lead": told("lead", lead)}


def survives(folder: Path, die: Callable[[], None]) -> bool:
    """Run in a child that dies, then go on; whether it died. What was promised is looked at."""
    project, calls = make(folder / "project"), folder / "calls"
    agents = counting(calls)

    def work() -> None:
        die()
        run(project, ManualClock(), agents)

    was_killed = killed(work)
    known = json.loads(record.read_text()) if (record := _record(project)).exists() else None
    done = [s["id"] for s in known["stages"] if s["status"] == "success"] if known else []
    before = calls.read_text().split() if calls.exists() else []
    if known is not None and known["phase"] == "done":
        return was_killed
    outcome = run(project, ManualClock(), agents)
    after = calls.read_text().split()[len(before) :]
    assert not ("plan" in done and "architect" in after), "what is done is not done again"
    assert not ("implement" in done and "lead" in after)
    assert (before + after).count("architect") <= 2
    assert (before + after).count("lead") <= 3
    assert outcome.run == "answer-1"
    assert outcome.status == "success", outcome
    assert (project / "answer.txt").read_text() == AFTER
    assert statuses(outcome)[0] == "success"
    text = (project / f".loki/pipelines/{outcome.run}/outputs/changes.md").read_text()
    assert "answer.txt" in text
    return was_killed


def _record(project: Path) -> Path:
    return project / ".loki/pipelines/answer-1/pipeline.json"


def test_killed_at_every_transition(tmp_path: Path) -> None:
    number = 0
    was_killed = True
    while was_killed:
        number += 1
        folder = tmp_path / str(number)
        was_killed = survives(folder, lambda n=number: die_at(n))  # type: ignore[misc]
    assert number > 20, "four stages, one of them in two tries, have more steps than that"


def test_killed_before_what_changes_the_disk(tmp_path: Path) -> None:
    number = 1
    was_killed = True
    while was_killed:
        folder = tmp_path / str(number)
        was_killed = survives(folder, lambda n=number: die_at_call(n))  # type: ignore[misc]
        number += EVERY
    assert number > 100, "it writes more than that"


def test_killed_while_it_is_rolled_back(tmp_path: Path) -> None:
    """An undo is finished, a command runs once at most, and the run has failed."""
    rollback = "rollback: undo\n    retry"
    commands = "rollback: [sh -c 'echo x >> ../ran', sh -c 'echo y >> ../ran']\n    retry"
    for kind, text in (("undo", rollback), ("commands", commands)):
        number = 0
        was_killed = True
        while was_killed:
            number += 1
            folder = tmp_path / f"{kind}-{number}"
            project = make(folder / "project", PIPELINE.replace("retry", text))
            agents = {**AGENTS, "tech-lead": wrong}

            def work(n: int = number, at: Path = project, by: Any = agents) -> None:
                die_at(n, Phase.ROLLBACK)
                run(at, ManualClock(), by)

            was_killed = killed(work)
            known = json.loads(_record(project).read_text())
            if known["phase"] == "failed":
                continue
            outcome = run(project, ManualClock(), agents)
            assert (outcome.run, outcome.status) == ("answer-1", "failed"), outcome
            if kind == "undo":
                assert (project / "answer.txt").read_text() == BEFORE
                continue
            ran = (folder / "ran").read_text().split() if (folder / "ran").exists() else []
            assert len(ran) == len(set(ran)), "each once at most"
            results = [step.result for step in outcome.rollback]
            assert set(results) <= {"done", "unknown"}
            assert results.count("done") <= len(ran)
        assert number > 3


def test_a_stage_that_ended_unseen_is_not_worked_on_again(tmp_path: Path) -> None:
    """Killed between the end of a stage's task and its being noted: a feature would begin anew."""
    project, calls = make(tmp_path / "project"), tmp_path / "calls"
    agents = counting(calls)

    def work() -> None:
        original = PipelineSession.ended

        def ended(self: PipelineSession, outcome: Any) -> Any:
            if outcome.task_id.endswith("implement") and outcome.status == "success":
                os.kill(os.getpid(), signal.SIGKILL)
            return original(self, outcome)

        PipelineSession.ended = ended  # type: ignore[method-assign]
        run(project, ManualClock(), agents)

    assert killed(work)
    asked = calls.read_text().count("lead")
    outcome = run(project, ManualClock(), agents)
    assert (outcome.status, outcome.stages[1].outputs) == ("success", ("changes", "text"))
    assert calls.read_text().count("lead") == asked
    assert len(workspace(project).history("answer-1.implement").attempts()) == 2
