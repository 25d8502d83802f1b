"""``loki history``: every attempt of every task, one line each."""

from __future__ import annotations

import heapq
import json as jsonlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, line, span
from loki.base.time import moment
from loki.cli.common import colored, find, load_project, picked, since_moment, tell
from loki.cli.options import JsonLines, OnlyTask, Project, Since, with_options

if TYPE_CHECKING:
    from loki.memory.attempt import Attempt

RESULTS = ("success", "failed", "unverified", "interrupted", "infrastructure")
NOTHING = "none"
"""Asks for failures without a pattern or strategy, or attempts outside git."""

_WIDTH = 60
"""Most characters of what was done or went wrong."""


@dataclass(frozen=True)
class Filter:
    """Which attempts are wanted; None: any."""

    pattern: Annotated[
        str | None,
        typer.Option(help="Only failures of this pattern, like type-error; 'none': of no pattern."),
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(help="Only failures answered with this strategy; 'none': with none."),
    ] = None
    result: Annotated[
        str | None, typer.Option(help=f"Only attempts that ended so: {', '.join(RESULTS)}.")
    ] = None
    since: Since = None
    branch: Annotated[str | None, typer.Option(help="Only attempts on this git branch.")] = None

    def takes(self, attempt: Attempt, start: datetime | None) -> bool:
        """Whether an attempt is wanted.

        Args:
            attempt: it.
            start: the moment that ``since`` says.
        """
        missing = NOTHING if attempt.result == "failed" else ""
        begun = moment(attempt.timestamp) if start else None
        return (
            self.pattern in {None, attempt.pattern_matched or missing}
            and self.strategy in {None, attempt.strategy_used or missing}
            and self.result in {None, shown_result(attempt)}
            and self.branch in {None, attempt.branch or NOTHING}
            and (start is None or (begun is not None and begun >= start))
        )


@with_options
def command(
    wanted: Filter,
    task: OnlyTask = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only the newest so many.")] = None,
    project: Project = Path(),
    json: JsonLines = False,
) -> None:
    """List what was tried, over all tasks: one line an attempt, the newest last, and a total.

    Example: `loki history --since 2d --result failed`; `loki history --pattern type-error --last 20`

    `loki show TASK` tells all of one task, `loki report` what it all amounts to.
    """
    workspace = load_project(project)
    if wanted.result not in {None, *RESULTS}:
        raise UsageError(f"--result is {wanted.result!r}: expected one of {', '.join(RESULTS)}")
    start = since_moment("--since", wanted.since, workspace.clock.now()) if wanted.since else None
    tasks = workspace.tasks() if task is None else [find(workspace.tasks(), task)]
    tally = Tally()
    width = max(map(len, tasks), default=0)
    found = (
        (execution.task, attempt)
        for execution, attempts in workspace.executions(tasks)
        for attempt in attempts
        if wanted.takes(attempt, start)
    )
    told = (
        (attempt.timestamp, id_, attempt.attempt, told_attempt(id_, attempt, width, json=json))
        for id_, attempt in tally.counting(found)
    )
    shown = sorted(told) if last is None else sorted(heapq.nlargest(last, told))
    lines = [text for *_, text in shown]
    tell(lines if json else [*lines, tally.total(len(shown))])


@dataclass
class Tally:
    """What the attempts amount to that were counted."""

    attempts: int = 0
    results: Counter[str] = field(default_factory=Counter)
    tasks: set[str] = field(default_factory=set)
    duration_ms: int = 0
    tokens: int = 0
    cost: float = 0.0

    def counting(self, attempts: Iterable[tuple[str, Attempt]]) -> Iterator[tuple[str, Attempt]]:
        """The same attempts, counted as they pass."""
        for task, attempt in attempts:
            self.attempts += 1
            self.results[shown_result(attempt)] += 1
            self.tasks.add(task)
            self.duration_ms += int(attempt.duration_ms)
            self.tokens += int(attempt.tokens or 0)
            self.cost += attempt.cost or 0
            yield task, attempt

    def total(self, shown: int) -> str:
        """The last line."""
        if not self.attempts:
            return "No attempt here that is as you asked: see `loki history --help`."
        counted = ", ".join(f"{self.results[n]:,} {n}" for n in RESULTS if self.results[n])
        hidden = f" (the newest {shown:,} are shown)" if shown < self.attempts else ""
        made = amount(self.attempts, "attempt")
        tasks = amount(len(self.tasks), "task")
        parts = [f"{made} in {tasks}{hidden}: {counted}", span(self.duration_ms)]
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        parts += [f"cost {self.cost:,.2f}"] if self.cost else []
        return "; ".join(parts)


def told_attempt(task: str, attempt: Attempt, width: int, *, json: bool = False) -> str:
    """An attempt's line: columns for people, or an object as JSON."""
    if json:
        return jsonlib.dumps(row(task, attempt))
    result = shown_result(attempt)
    shown = colored(result, len(RESULTS[-1]))
    answer = attempt.pattern_matched or ("-" if result == "success" else "no pattern")
    if attempt.strategy_used:
        answer = f"{answer} -> {attempt.strategy_used}"
    said = attempt.action if result == "success" else attempt.error or attempt.action
    when = line(attempt.timestamp[:19].replace("T", " "))
    number = f"{line(task):<{width}} {attempt.attempt:>3}"
    columns = f"{span(attempt.duration_ms):>7}  {line(answer):<33}  {line(said, _WIDTH)}"
    return f"{when}  {number}  {shown}  {columns}".rstrip()


def row(task: str, attempt: Attempt) -> dict[str, Any]:
    """What is told of an attempt: its figures, and what it was about."""
    from loki.memory.attempt_metrics import counts, validation_figures

    return {
        "task": task,
        **picked(attempt, "attempt", "execution", "timestamp"),
        "result": shown_result(attempt),
        "success": attempt.result == "success",
        "counts": counts(attempt),
        "duration_ms": int(attempt.duration_ms),
        "delay_ms": int(attempt.delay_ms),
        **picked(attempt, "action", "error", "phase", "pattern_matched", "confidence"),
        **picked(attempt, "strategy_used", "signature", "fingerprint"),
        "files_modified": list(attempt.files_modified),
        "checks": {check.name: check.passed for check in attempt.checks},
        **validation_figures(attempt),
        **picked(attempt, "agent", "model", "tokens", "cost", "branch", "commit"),
    }


def shown_result(attempt: Attempt) -> str:
    """How an attempt ended, in one word: what infrastructure failed is called so."""
    return "infrastructure" if attempt.infrastructure else attempt.result
