"""``loki explain``: what failed, whether it was seen before, what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from loki.base.error import UsageError
from loki.cli.common import show_json, speaks_plainly
from loki.memory.store import masked
from loki.recognition.failure import Failure, recognize
from loki.recognition.signature import mask_secrets


@speaks_plainly
def command(
    file: Annotated[
        Optional[Path], typer.Argument(help="The output to explain; stdin where none is named.")  # noqa: UP045
    ] = None,
    project: Annotated[Path, typer.Option(help="The project that it came from.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Say what failed in a tool's output: where, what kind, seen before, and what to do.

    Example: `pytest 2>&1 | loki explain`, or `loki explain build.log`
    """
    from loki.workspace import Workspace

    text = _read(file)
    workspace = Workspace(project)
    failure = recognize(text, root=str(workspace.root), patterns=workspace.patterns)
    seen = _seen_before(workspace, failure)
    if json:
        data = {**failure.to_dict(), "seen_before": seen, "next": _next(workspace, failure)}
        show_json(masked(data))
        return
    if not failure.message:
        typer.echo("Nothing in it says that something failed.")
        return
    typer.echo(mask_secrets(_tell(failure, seen, _next(workspace, failure))))


def _read(file: Path | None) -> bytes:
    if file is None:
        if sys.stdin.isatty():
            typer.echo("Reading from the terminal; end with Ctrl-D.", err=True)
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error


def _seen_before(workspace: Any, failure: Failure) -> list[dict[str, Any]]:
    """Attempts of any task here that failed the same way."""
    from loki.recognition.similarity import same_failure

    if not failure.is_specific:
        return []
    found = []
    for task in workspace.tasks():
        for attempt in workspace.history(task).attempts():
            earlier = attempt.recognized()
            if earlier is not None and same_failure(earlier, failure):
                found.append(
                    {
                        "task": task,
                        "attempt": attempt.attempt,
                        "timestamp": attempt.timestamp,
                        "strategy": attempt.strategy_used,
                    }
                )
    return found


def _next(workspace: Any, failure: Failure) -> dict[str, Any]:
    from loki.decision.policy import DEFAULT_STRATEGY

    name = failure.match.strategy if failure.match else DEFAULT_STRATEGY
    strategy = workspace.patterns.strategies.get(name)
    return {"strategy": name, "description": strategy.description if strategy else ""}


def _tell(failure: Failure, seen: list[dict[str, Any]], following: dict[str, Any]) -> str:
    title = ": ".join(
        part for part in (failure.error_type or failure.error_code, failure.message) if part
    )
    lines = [typer.style(title, bold=True)]
    if failure.path:
        place = ":".join(str(p) for p in (failure.path, failure.line, failure.column) if p)
        lines.append(f"  at     {place}")
    if failure.tool:
        lines.append(f"  tool   {failure.tool}")
    if failure.tests:
        more = f" and {len(failure.tests) - 5} more" if len(failure.tests) > 5 else ""  # noqa: PLR2004
        lines.append(f"  tests  {', '.join(failure.tests[:5])}{more}")
    if failure.match:
        match = failure.match
        lines.append(f"  kind   {match.kind}, {match.band} confidence ({match.confidence:.2f})")
        lines.append(f"  why    {', '.join(match.signals)}")
    else:
        lines.append("  kind   unknown: no pattern matched")
    if seen:
        last = seen[-1]
        often = "once" if len(seen) == 1 else f"{len(seen)} times"
        lines.append(f"  seen   {often} here, last in {last['task']} attempt {last['attempt']}")
    lines.append(f"  next   {following['strategy']}: {following['description']}")
    if failure.excerpt:
        lines += ["", *(f"  | {line}" for line in failure.excerpt.splitlines())]
    return "\n".join(lines)
