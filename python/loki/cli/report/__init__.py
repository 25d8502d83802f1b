"""``loki report``: what all attempts amount to, as a page."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import line
from loki.base.time import isoformat, moment
from loki.cli.common import find, load_project, picked, show_json, since_moment
from loki.cli.options import Json, OnlyTask, Project, Since

if TYPE_CHECKING:
    from loki.memory.attempt_metrics import Summary
    from loki.workspace import Workspace

HTML = (".html", ".htm")


def command(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write it there; a name that ends in .html gets HTML."),
    ] = None,
    html: Annotated[
        bool, typer.Option("--html", help="One HTML page with charts, which needs nothing else.")
    ] = False,
    since: Since = None,
    task: OnlyTask = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Report on all attempts: outcomes, patterns, strategies and chains that fail, catches, costs.

    Plain text on a terminal, Markdown in a pipe or file; with charts as HTML. What each figure means
    stands in docs/design/history.md.

    Example: `loki report -o report.html`; `loki report --since 7d`; `loki report --json | jq .strategies`
    """
    workspace = load_project(project)
    tasks = [find(workspace.tasks(), task)] if task is not None else None
    start = since_moment("--since", since, workspace.clock.now()) if since is not None else None
    summary = summarize(workspace, tasks, start)
    if json:
        show_json(as_data(summary))
        return
    page = _page(workspace, summary, output, start, tasks, html=html)
    if output is None:
        typer.echo(page, nl=False)
        return
    try:
        output.write_bytes(page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
    typer.echo(f"wrote {line(str(output))}", err=True)


def summarize(
    workspace: Workspace, tasks: list[str] | None = None, since: datetime | None = None
) -> Summary:
    """The figures over a project's executions.

    Args:
        workspace: the project.
        tasks: ids of the tasks; all where nothing is said.
        since: only executions whose last attempt began then or later.
    """
    from loki.memory.attempt_metrics import Summary

    summary = Summary()
    for execution, attempts in workspace.executions(tasks):
        last = moment(attempts[-1].timestamp if attempts else execution.ended)
        if since is None or (last is not None and last >= since):
            summary.add(execution, attempts)
    return summary


def as_data(summary: Summary) -> dict[str, Any]:
    """A summary as what JSON can hold: all it counted, and the rates made of it."""
    rates = ("success_rate", "escalation_rate", "dead_letter_rate", "pre_validation_catch_rate")
    rate = ("success_rate", "mean_attempts")
    return {
        **picked(summary, "first", "last", "tasks", "nothing_to_do"),
        "executions": dict(summary.statuses),
        "attempts": dict(summary.attempts),
        **picked(summary, *rates, "mean_attempts_to_success", "mean_time_to_success_ms"),
        "patterns": {n: _with(t, rate) for n, t in summary.patterns.items()},
        "strategies": {
            n: _with(t, (*rate, "task_success_rate", "flag")) for n, t in summary.strategies.items()
        },
        "chains_into_failure": [
            {"strategies": links, **asdict(totals)} for links, totals in summary.chains_into_failure
        ],
        "pre_validation": {
            "runs": summary.validation_runs,
            "passed": summary.validation_passed,
            "caught": summary.caught,
            "failures": summary.failures,
            "catches": dict(summary.catches.most_common()),
        },
        "regression_checks": {
            "run": summary.regression_checks_run,
            "skipped": summary.regression_checks_skipped,
            "regressions_detected": summary.regressions_detected,
            "regressions_auto_fixed": summary.regressions_auto_fixed,
        },
        "dead_letter_count": summary.dead_letter_count,
        "dead_letters": [asdict(ending) for ending in summary.dead_letters],
        "escalations": [asdict(ending) for ending in summary.escalations],
        "checks": {n: _with(t, ("mean_ms",)) for n, t in summary.checks.items()},
        "infrastructure": dict(summary.infrastructure),
        "waited_ms": summary.waited_ms,
        "agents": {n: asdict(t) for n, t in summary.agents.items()},
        "hours": {hour: dict(counter) for hour, counter in sorted(summary.hours.items())},
    }


def _with(totals: Any, computed: tuple[str, ...]) -> dict[str, Any]:
    return {**asdict(totals), **picked(totals, *computed)}


def _page(
    workspace: Workspace,
    summary: Summary,
    output: Path | None,
    since: datetime | None,
    tasks: list[str] | None,
    *,
    html: bool,
) -> str:
    from loki.cli.report import render
    from loki.cli.report.sections import compose, pages_from

    period = f"{summary.first[:16]} to {summary.last[:16]}".replace("T", " ")
    about = [f"Attempts from {period} (UTC)."] if summary.first else []
    about += [f"Only executions worked on since {isoformat(since)[:16]}."] if since else []
    about += [f"Only the task {tasks[0]}."] if tasks else []
    about.append(
        f"Made by loki at {isoformat(workspace.clock.now())[:16].replace('T', ' ')} (UTC)."
    )
    title = f"loki report: {workspace.root.name or workspace.root}"
    document = compose(summary, title, " ".join(about), pages_from(output, workspace.folder))
    is_html = html or (output is not None and output.suffix.lower() in HTML)
    if is_html:
        return render.html(document)
    is_shown = output is None and sys.stdout.isatty()
    return render.terminal(document) if is_shown else render.markdown(document)
