"""``loki demo``: the closed loop on a small real project, offline.

The project, its defects and its checks (pytest, ruff, mypy) are real; only the agent is scripted.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import UsageError
from loki.cli.common import load_project, log_to_console, show_json
from loki.cli.options import Json

if TYPE_CHECKING:
    from loki.cli.demo.scenario import Story

TOOLS = ("pytest", "ruff", "mypy")


def command(
    directory: Annotated[
        Path | None,
        typer.Option(
            help="Where to put the demo's project; a temporary folder where none is said."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Watch the closed loop on a small real project with real defects.

    Six tasks, checked with real pytest, ruff and mypy; the agent is scripted and partly wrong, so
    that you see a second attempt, a sign, an automatic fix, a proposal that is refused before
    anything is written, an escalation and a dead letter. Needs `pip install 'loki-core[demo]'`.
    """
    from loki.cli.demo.scenario import STORIES

    _need_tools()
    root = _project(directory)
    log_to_console()
    rows = [_work(root, number, story) for number, story in enumerate(STORIES, 1)]
    if json:
        show_json({"project": str(root), "tasks": [row["outcome"] for row in rows]})
    else:
        _show(root, rows)
    if any(row["outcome"]["status"] != row["expected"] for row in rows):
        raise typer.Exit(1)


def _need_tools() -> None:
    missing = [tool for tool in TOOLS if importlib.util.find_spec(tool) is None]
    if missing:
        raise UsageError(
            f"the demo runs real checks and misses {', '.join(missing)}: "
            "pip install 'loki-core[demo]'"
        )
    # Where loki was started by its path, the checks' programs beside it are found all the same.
    os.environ["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}"


def _project(directory: Path | None) -> Path:
    source = Path(__file__).with_name("project")
    if directory is None:
        root = Path(tempfile.mkdtemp(prefix="loki-demo-")) / "till"
    elif directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is there already: expected a new or an empty folder")
    else:
        root = directory.resolve()
    try:
        ignore = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(source, root, dirs_exist_ok=True, ignore=ignore)
    except OSError as error:
        raise UsageError(f"cannot write the demo's project: {error}") from error
    return root


def _work(root: Path, number: int, story: Story) -> dict[str, Any]:
    from loki.agents.scripted import ScriptedAgent

    typer.secho(f"\n{number}. {story.title}", bold=True, err=True)
    workspace = load_project(root)
    task = workspace.task(
        story.title, checks=story.checks, kind=story.kind, max_attempts=story.max_attempts
    )
    with task:
        outcome = task.run(ScriptedAgent(story.answers))
    attempts = workspace.history(outcome.task_id).attempts()
    strategies = dict.fromkeys(a.strategy_used for a in attempts if a.strategy_used)
    return {
        "title": story.title,
        "shows": story.shows,
        "expected": story.status,
        "strategies": list(strategies),
        "outcome": outcome.to_dict(),
    }


def _show(root: Path, rows: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title="What happened", title_justify="left")
    for column in ("task", "status", "attempts", "strategies", "what one sees in it"):
        table.add_column(column)
    for row in rows:
        outcome = row["outcome"]
        table.add_row(
            row["title"],
            outcome["status"],
            str(outcome["attempts"]),
            ", ".join(row["strategies"]) or "none",
            row["shows"],
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    example = rows[1]["outcome"]["task_id"]
    typer.echo(f"The project, as it is now:   {root}")
    typer.echo(f"Attempts, signs and pages:   {root / '.loki'}")
    for row in rows:
        if row["outcome"]["page"]:
            typer.echo(f"{row['outcome']['status']:<11} {root / '.loki' / row['outcome']['page']}")
    typer.echo(f"Try:  loki show {example} --project {root}")
    typer.echo(f"      loki undo {example} --project {root}")
