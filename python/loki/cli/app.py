"""The commands, joined."""

from __future__ import annotations

from typing import Annotated

import typer

from loki.cli import (
    approve,
    breakers,
    close,
    dead_letters,
    demo,
    explain,
    history,
    hook,
    mcp,
    patterns,
    pipeline,
    queue,
    recur,
    recur_change,
    report,
    resume,
    review,
    run,
    show,
    signals,
    status,
    submit,
    tick,
    undo,
    work,
)
from loki.cli.read_only import Guarded

app = typer.Typer(
    name="loki",
    cls=Guarded,
    no_args_is_help=True,
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
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


app.command("run")(run.command)
app.command("submit")(submit.command)
app.command("resume")(resume.command)
app.command("status")(status.command)
app.command("approve")(approve.approve)
app.command("reject")(approve.reject)
app.command("explain", cls=explain.Command)(explain.command)
app.command("show")(show.command)
app.command("history")(history.command)
app.command("close")(close.command)
app.command("review")(review.command)
app.command("report")(report.command)
app.command("pause")(recur_change.pause)
app.command("edit")(recur_change.edit)
app.command("tick")(tick.command)
app.command("undo")(undo.command)
app.command("work")(work.command)
app.command("mcp")(mcp.command)
app.command("demo")(demo.command)
app.add_typer(breakers.app, name="breakers")
app.add_typer(queue.app, name="queue")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(hook.app, name="hook")
app.add_typer(patterns.app, name="patterns")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(recur.app, name="recur")
app.add_typer(signals.app, name="signals")
