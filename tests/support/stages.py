"""A small project with a pipeline, for runs in stages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import loki
from loki.testing import ManualClock

BEFORE, MIDDLE, AFTER = "one\n", "two\n", "three\n"
CHECK = "sh check.sh"
SCRIPT = """\
if [ "$(cat answer.txt)" != three ]; then
  echo "answer.txt:1: error: the answer is $(cat answer.txt), expected three"
  exit 1
fi
"""
PIPELINE = """\
version: 1
name: answer
parameters: {question: what is one and two?}
checks: [sh check.sh]
stages:
  - id: plan
    agent: architect
    mode: plan
    description: Say what to do about the answer.
    inputs: [question]
    outputs: [plan]
  - id: implement
    agent: tech-lead
    description: Do as planned.
    inputs: [plan]
    outputs: [changes, {name: text, file: answer.txt}]
    retry: {max_attempts: 3, backoff: linear, initial_delay_seconds: 10}
  - id: polish
    agent: tech-lead
    description: Make it shine.
    condition: {stage: implement, status: skipped}
    inputs: [plan]
  - id: verify
    agent: qa
    kind: bug_fix
    description: See that the answer is right.
    inputs: [changes, text]
"""

Answer = Callable[[loki.Briefing], Any]


def make(project: Path, pipeline: str = PIPELINE, *, retries: int = 0) -> Path:
    """A project whose check wants three, and a pipeline in it; one attempt a try."""
    project.mkdir(parents=True, exist_ok=True)
    (project / "answer.txt").write_text(BEFORE)
    (project / "check.sh").write_text(SCRIPT)
    (project / "answer.yml").write_text(pipeline)
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text(
        f"[loop]\nmax_retries = {retries}\n[execute]\nallow_commands = ['sh *']\n"
    )
    return project


def architect(_briefing: loki.Briefing) -> str:
    """Answers with a document."""
    return "# Plan\n\nWrite three.\n"


def lead(briefing: loki.Briefing) -> dict[str, str]:
    """Wrong at first; right once the project has its first change."""
    is_first = (briefing.root / "answer.txt").read_text() == BEFORE
    return {"answer.txt": MIDDLE if is_first else AFTER}


def wrong(briefing: loki.Briefing) -> dict[str, str]:
    """Never right, and never the same."""
    return {"answer.txt": f"wrong {briefing.attempt}\n"}


def nobody(briefing: loki.Briefing) -> Any:
    """Must not be asked."""
    raise AssertionError(f"asked for {briefing.task_id}")


AGENTS: dict[str, Any] = {"architect": architect, "tech-lead": lead, "qa": nobody}


def pipeline(project: Path) -> loki.Pipeline:
    """The project's pipeline, as its file is now."""
    return loki.Pipeline.load(project / "answer.yml")


def workspace(project: Path, clock: ManualClock | None = None) -> loki.Workspace:
    """The project, with a clock that obeys."""
    return loki.Workspace(project, clock=clock or ManualClock())


def run(
    project: Path, clock: ManualClock, agents: Any = None, **options: Any
) -> loki.PipelineOutcome:
    """Run its pipeline, or go on with it."""
    return pipeline(project).run(agents or AGENTS, path=workspace(project, clock), **options)


def resume(
    project: Path, clock: ManualClock, agents: Any = None, **options: Any
) -> loki.PipelineOutcome:
    """Answer a run."""
    return pipeline(project).resume(agents or AGENTS, path=workspace(project, clock), **options)


def edit(project: Path, old: str, new: str) -> None:
    """Edit the pipeline's file."""
    text = (project / "answer.yml").read_text()
    assert old in text
    (project / "answer.yml").write_text(text.replace(old, new))


def statuses(outcome: loki.PipelineOutcome) -> list[str]:
    """Of the stages, in order."""
    return [stage.status for stage in outcome.stages]


def output(project: Path, name: str, run_: str = "answer-1") -> str:
    """What a stage handed on."""
    return (project / ".loki/pipelines" / run_ / "outputs" / f"{name}.md").read_text()
