"""The `loki` command: each of its commands is loaded when it is called, and a triage agent only reads."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from loki import __version__
from loki.base.error import LokiError
from loki.base.time import isoformat
from loki.cli.common import errors_as_sentences, fail

# --- Where each command is ----------------------------------------------------------------------------

EVERYDAY, QUEUE = "Every day", "The queue, and what comes round"
PEOPLE, SET_UP = "What people decide", "Set-up, and looking closer"


class Entry(NamedTuple):
    """A command as `loki --help` lists it, without loading it.

    Attributes:
        where: module of this package, and what in it is the command, or the group of commands.
        group: the heading it stands under.
        summary: what it does, in a line.
    """

    where: str
    group: str
    summary: str


COMMANDS = {
    "demo": Entry("demo:command", EVERYDAY, "Watch loki at work on a small real project."),
    "explain": Entry("explain:command", EVERYDAY, "Say what failed in an output, and what to do."),
    "run": Entry("run:command", EVERYDAY, "Work on a task until its checks pass."),
    "status": Entry("status:command", EVERYDAY, "What waits for you, what runs, what ended."),
    "approve": Entry("inbox:approve", EVERYDAY, "Say yes to something that waits for you."),
    "resume": Entry("resume:command", EVERYDAY, "Go on with a task that stopped."),
    "show": Entry("show:command", EVERYDAY, "What was tried on a task, and what came of it."),
    "history": Entry("history:command", EVERYDAY, "What was tried, over all tasks."),
    "undo": Entry("undo:command", EVERYDAY, "Restore the files as they were before a task."),
    "report": Entry("report:command", EVERYDAY, "What all attempts amount to, as a page."),
    "submit": Entry("submit:command", QUEUE, "Put tasks into the queue."),
    "work": Entry("work:command", QUEUE, "Work off the queue, several tasks at a time."),
    "up": Entry("up:command", QUEUE, "All that goes on by itself, in one process."),
    "queue": Entry("queue:app", QUEUE, "What stands in the queue; and a hand in it."),
    "dead-letters": Entry("dead_letters:app", QUEUE, "Tasks that were given up, and what next."),
    "recur": Entry("recur:app", QUEUE, "Tasks that come round again."),
    "tick": Entry("tick:command", QUEUE, "Run the recurring tasks that are due."),
    "edit": Entry("recur_change:edit", QUEUE, "Change a recurring task, or one of the queue."),
    "pause": Entry("recur_change:pause", QUEUE, "Hold a recurring task until it is resumed."),
    "pipeline": Entry("pipeline:app", QUEUE, "Work in stages: plan, implement, verify."),
    "cancel": Entry("stop:cancel", QUEUE, "Give a task or a run up, wherever it stands."),
    "drain": Entry("stop:drain", QUEUE, "Let workers end once they are done."),
    "stop": Entry("stop:stop", QUEUE, "End all that is at work, at once."),
    "inbox": Entry("inbox:command", PEOPLE, "All that waits for you, numbered."),
    "answer": Entry("inbox:answer", PEOPLE, "Answer something that waits for you, in words."),
    "reject": Entry("inbox:reject", PEOPLE, "Say no to something that waits for you."),
    "review": Entry("review:command", PEOPLE, "Decide what loki learns from failures."),
    "close": Entry("close:command", PEOPLE, "End the run of a git branch, and its signs."),
    "signals": Entry("signals:app", PEOPLE, "What agents, people and loki tell each other."),
    "hook": Entry("hook:app", SET_UP, "Let Claude Code, Codex or Gemini CLI hear from loki."),
    "mcp": Entry("mcp:command", SET_UP, "Serve agents that speak MCP."),
    "patterns": Entry("patterns:app", SET_UP, "Check and try out how failures are recognized."),
    "breakers": Entry("breakers:app", SET_UP, "Circuit breakers: what is open, and until when."),
    "replay": Entry("replay:command", SET_UP, "What loki would have said about past sessions."),
}
"""By name, in the order in which `loki --help` shows them: the ten of a first week before the rest. All
of them together take longer to load than most work."""


def _load(name: str) -> Any:
    where, _, what = COMMANDS[name].where.partition(":")
    module = import_module(f"loki.cli.{where}")
    found = getattr(module, what)
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name, cls=getattr(module, "Command", None))(found)
    return get_group(alone).commands[name]


# --- What a triage agent may ask of `loki` ------------------------------------------------------------

READING = frozenset(
    {
        ("history",), ("show",), ("status",), ("inbox",),
        ("breakers",), ("breakers", "list"), ("breakers", "show"),
        ("dead-letters",), ("dead-letters", "list"), ("dead-letters", "show"),
        ("patterns",), ("patterns", "check"), ("patterns", "test"),
        ("queue",), ("queue", "list"), ("queue", "show"),
        ("recur",), ("recur", "history"), ("recur", "list"), ("recur", "show"),
        ("signals",), ("signals", "list"),
    }
)  # fmt: skip
"""Commands that change nothing. A list of what may be done: what is not in it, and every command that
is new, is refused. ``explain`` and ``report`` run programs or write files where they are told to."""

LONGEST = 500
"""Characters of a refused command that are recorded; chosen, not measured."""


class Guarded(TyperGroup):
    """The ``loki`` command, which only reads where a triage agent calls it."""

    def __init__(self, **options: Any) -> None:
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        super().__init__(**{**options, "commands": names})

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """A command, loaded when it is first asked for."""
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """All commands in their groups, by their summaries: no command, and no rich, is loaded for it."""
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(self.help)
        options = [option.get_help_record(ctx) for option in self.get_params(ctx)]
        for group in (EVERYDAY, QUEUE, PEOPLE, SET_UP):
            with formatter.section(typer.style(group, bold=True)):
                formatter.write_dl(
                    [(n, one.summary) for n, one in COMMANDS.items() if one.group == group]
                )
        with formatter.section(typer.style("Options", bold=True)):
            formatter.write_dl(options)
        formatter.write_paragraph()
        formatter.write_text(self.epilog)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is called."""
        with errors_as_sentences():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called."""
        name, command, rest = super().resolve_command(ctx, args)
        triage = os.environ.get("LOKI_TRIAGE", "")
        if changes_nothing() and command is not None and not is_reading(name or "", command, rest):
            _record(triage, shlex.join(["loki", *args]))
            fail(
                f"refused: `loki {name}` may change something so, and a triage only reads ({triage}): "
                "say in your verdict what is to be done",
                2,
            )
        return name, command, rest


def is_reading(name: str, command: object, rest: Sequence[str]) -> bool:
    """Whether a call changes nothing, whatever its options mean.

    Args:
        name: of the first command.
        command: it.
        rest: the words after it; of a group each that names one of its commands has to read.
    """
    if not isinstance(command, TyperGroup):
        return (name,) in READING
    called = [word for word in rest if word in command.commands]
    return all((name, word) in READING for word in called) and (bool(called) or (name,) in READING)


def changes_nothing() -> bool:
    """Whether a triage agent calls: commands that read then do not tidy up on their way either."""
    return bool(os.environ.get("LOKI_TRIAGE"))


def _record(triage: str, refused: str) -> None:
    """Keep with a triage what its agent tried; where that cannot be, it is refused all the same."""
    from loki.base.manual_clock import clock_of
    from loki.base.secret import mask_secrets
    from loki.jobs.triage.triage_policy import parts_of
    from loki.jobs.triage.triage_verdict import REFUSED, document
    from loki.stores.file_store import open_store

    parts = parts_of(triage)
    folder = Path(os.environ.get("LOKI_TRIAGE_PROJECT", ".")) / ".loki"
    if parts is None or not (folder / "recurring" / parts[0]).is_dir():
        return
    try:
        at = isoformat(clock_of(os.environ).now())
        record: dict[str, Any] = {"at": at, "what": mask_secrets(refused)[:LONGEST]}
        open_store(folder).append(document(*parts, REFUSED), record, durable=False)
    except LokiError as error:
        typer.echo(f"loki: could not record it: {error}", err=True)


# --- The command itself -------------------------------------------------------------------------------

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
        if Path(".loki").is_dir():
            from loki.cli.status import what_waits

            what_waits()
        typer.echo(context.get_help())
