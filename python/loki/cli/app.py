"""The commands, joined; which there are is in `command_table`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from loki.cli.read_only import Guarded

app = typer.Typer(
    name="loki",
    cls=Guarded,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=(
        "Failure handling for autonomous coding agents.\n\n"
        "An agent that loops on its own retries the same failing fix and forgets why the last "
        "attempt failed. loki recognizes the failure, remembers what was tried, decides what may "
        "be tried next, acts it out, and asks a person when it must.\n\n"
        "Start with `loki demo`, or with output that you do not understand: "
        "`loki explain build.log`, `loki explain -- pytest`."
    ),
    epilog=(
        "Exit codes: 0 success, 1 loki itself could not work, 2 usage, 3 escalated, "
        "4 dead-lettered, 5 budget spent, 6 paused, 130 interrupted."
    ),
)


def _version(value: bool) -> None:
    if value:
        from loki import __version__

        typer.echo(f"loki {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    for stream in (sys.stdout, sys.stderr):
        # A file's name that is no UTF-8, or half a character in a damaged record, is shown escaped.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    del version
    if context.invoked_subcommand is None:
        begin()
        typer.echo(context.get_help())


def begin() -> None:
    """What waits for you in the project of this folder; nothing where there is none."""
    if Path(".loki").is_dir():
        from loki.cli.status import what_waits

        what_waits()
