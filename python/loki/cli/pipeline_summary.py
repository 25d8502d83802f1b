"""What ``loki pipeline`` says: how a run ended and what to do next, how its stages stand."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from loki.base.time import isoformat
from loki.cli.common import project_option

if TYPE_CHECKING:
    from loki.action.pipelines.pipeline_outcome import PipelineOutcome, StageOutcome

_COLORS = {"success": "green", "failed": "red", "escalated": "yellow", "running": "cyan"}


def summary(outcome: PipelineOutcome, project: Path, agents: str) -> str:
    """What happened, and what to do next."""
    count = f"{outcome.attempts} attempt{'' if outcome.attempts == 1 else 's'}"
    lines = [*map(_stage_line, outcome.stages), ""]
    lines.append(f"{styled(outcome.status)} after {count}: {outcome.reason}.")
    if outcome.files:
        lines.append(f"changed: {', '.join(outcome.files)}")
    for step in outcome.rollback:
        detail = f", {step.detail}" if step.detail else ""
        lines.append(f"rollback: {step.kind} {step.subject}: {step.result}{detail}")
    if outcome.page:
        lines.append(f"read:    {project / '.loki' / outcome.page}")
    where = project_option(project)
    resume = f"loki pipeline resume {outcome.run}{where}{agents}"
    if outcome.trigger == "approval" and outcome.status == "escalated":
        lines.append(f"approve: {resume} --approve")
        lines.append(f"reject:  loki pipeline resume {outcome.run}{where} --reject --note WHY")
    elif outcome.status == "escalated":
        lines.append(f"resume:  {resume} --context WHAT-YOU-KNOW")
    elif outcome.status in {"paused", "interrupted"}:
        when = f"   (from {isoformat(outcome.retry_at)} on)" if outcome.retry_at else ""
        lines.append(f"resume:  {resume}{when}")
    lines.append(f"details: loki pipeline show {outcome.run}{where}")
    worked = [stage for stage in outcome.stages if stage.attempts]
    if worked:
        lines.append(f"         loki show {worked[-1].task_id}{where}")
    return "\n".join(lines)


def _stage_line(stage: StageOutcome) -> str:
    tries = f"{stage.tries} tr{'y' if stage.tries == 1 else 'ies'}, " if stage.tries > 1 else ""
    work = f"  {tries}{stage.attempts} att., {stage.seconds:.1f} s" if stage.tries else ""
    why = f"  {stage.reason}" if stage.reason and stage.status != "success" else ""
    return f"  {stage.id:<16} {styled(f'{stage.status:<11}')}{work}{why}"


def styled(status: str) -> str:
    """A status in its color, where it is shown on a terminal."""
    color = _COLORS.get(status.strip())
    return typer.style(status, fg=color) if color else status


def table(data: Mapping[str, Any], project: Path) -> str:
    """How a run's stages stand, and where its pages are."""
    from rich.console import Console
    from rich.table import Table

    rows = Table(box=None, pad_edge=False)
    for column in ("stage", "status", "tries", "attempts", "time", "task", "why"):
        rows.add_column(column, overflow="fold")
    for stage in data["stages"]:
        rows.add_row(
            stage["id"], stage["status"], str(stage["tries"]), str(stage["attempts"]),
            f"{stage['spent']:.1f} s", stage["task"] if stage["tries"] else "", _why(stage),
        )  # fmt: skip
    console = Console(width=None)
    with console.capture() as captured:
        console.print(rows)
    lines = [f"{data['run']}: {styled(str(data['status']))}" + _because(data)]
    lines.append(f"  file        {data['file'] or '(none)'}")
    lines += [f"  {name:<11} {_short(value)}" for name, value in data["parameters"].items()]
    lines += ["", captured.get().rstrip()]
    lines += [
        f"rollback: {step['kind']} {step['subject']}: {step['result'] or 'to be done'} {step['detail']}"
        for step in data["rollback"]
    ]
    outputs = [name for stage in data["stages"] for name in stage["outputs"]]
    folder = project / ".loki" / "pipelines" / data["run"]
    lines += ["", *(f"output: {folder / 'outputs' / name}.md" for name in outputs)]
    pages = [stage["page"] for stage in data["stages"] if stage["page"]]
    lines += [f"page:   {project / '.loki' / page}" for page in pages]
    return "\n".join(lines).rstrip()


def _because(data: Mapping[str, Any]) -> str:
    return f": {data['reason']}" if data["reason"] else ""


def _short(value: str) -> str:
    shown = jsonlib.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:60] + "…"  # noqa: PLR2004


def _why(stage: Mapping[str, Any]) -> str:
    approval = stage["approval"]
    leave = f"approved by {approval['by']} at {approval['at']}" if approval else ""
    if approval and approval["note"]:
        leave += f" ({approval['note']})"
    return "; ".join(part for part in (leave, str(stage["reason"])) if part)
