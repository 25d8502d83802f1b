"""What commands have in common: options, errors as sentences, log lines, who and what is meant."""

from __future__ import annotations

import json
import logging
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from loki.base.error import ConfigError, LokiError, UsageError
from loki.base.text_format import escape_control_characters, span
from loki.base.time import argument_seconds, moment, seconds

if TYPE_CHECKING:
    from loki.action.agent_protocol import Agent
    from loki.runtime import Runtime
    from loki.workspace import Workspace


# --- Options of several commands ----------------------------------------------------------------------

Project = Annotated[Path, typer.Option(help="The project's folder.")]
Json = Annotated[bool, typer.Option("--json", help="Everything as JSON.")]
OutcomeJson = Annotated[bool, typer.Option("--json", help="The outcome as JSON on stdout.")]
TaskId = Annotated[str, typer.Argument(help="Id of the task, or how it begins.")]
OnlyTask = Annotated[str | None, typer.Option(help="Only this task: its id, or how it begins.")]
CommandRun = Annotated[
    str | None, typer.Option(help="What was run, as typed: tells tools apart that print alike.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Restore also files that somebody changed since.")
]
Decider = Annotated[str, typer.Option(help="Who decides; the user of this machine by default.")]
Note = Annotated[str, typer.Option(help="Why, for the record.")]

# --- Errors as sentences, log lines, JSON -------------------------------------------------------------

INTERRUPTED = 130

_COLORS = {"success": "green", "failed": "red", "escalated": "yellow", "passed": "green"}


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Turn loki's errors into one sentence on stderr and the right exit code."""
    try:
        yield
    except (UsageError, ConfigError) as error:
        fail(str(error), 2)
    except LokiError as error:
        fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):  # the second: at a question
        fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone (`loki show | head`): nothing is left to say.
        sys.stdout = None
        raise typer.Exit(0) from None


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong, and end."""
    typer.secho(f"loki: {message}", err=True, fg="red")
    raise typer.Exit(code)


def show_json(data: Any, *, error: bool = False) -> None:
    """JSON for programs, on stdout; on stderr where stdout is a command's own."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=True), err=error)


def picked(thing: object, *names: str) -> dict[str, Any]:
    """Some of what a thing has, by its names."""
    return {name: getattr(thing, name) for name in names}


class _Console(logging.Handler):
    """Log lines on stderr, colored where it is a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        line = escape_control_characters(record.getMessage())
        if record.levelno >= logging.WARNING:
            typer.secho(f"loki: warning: {line}", err=True, fg="yellow")
            return
        typer.echo(re.sub(r"=(\w+)", _paint, line), err=True)


def _paint(match: re.Match[str]) -> str:
    color = _COLORS.get(match[1])
    return f"={typer.style(match[1], fg=color)}" if color else match[0]


def log_to_console(level: int = logging.INFO) -> None:
    """Show loki's log lines as they come.

    Args:
        level: the least of them; a command that tells itself what it does shows warnings alone.
    """
    logger = logging.getLogger("loki")
    if not any(isinstance(handler, _Console) for handler in logger.handlers):
        logger.addHandler(_Console())
        from loki.adapters import telemetry

        if "opentelemetry.sdk.trace" in sys.modules:  # as under opentelemetry-instrument
            telemetry.instrument()
        else:
            telemetry.from_environment()
    logger.setLevel(level)
    logger.propagate = False


def open_project(project: Path, level: int = logging.WARNING) -> Runtime:
    """The project that a command is about; loki's log lines are shown.

    Args:
        project: its folder.
        level: the least of the lines.
    """
    log_to_console(level)
    return load_project(project)


def load_project(project: Path) -> Runtime:
    """The project in a folder; its log lines go where they went before."""
    from loki.runtime import Runtime  # which a command's --help does not wait for

    return Runtime(project)


def project_option(project: Path) -> str:
    """The option that a command needs to be about a project, where that is not this folder."""
    return "" if project == Path() else f" --project {shlex.quote(str(project))}"


def is_passed_on(context: typer.Context) -> bool:
    """Whether a group is called with one of its commands, for which then are the options before it."""
    if context.invoked_subcommand is None:
        return False
    context.default_map = {context.invoked_subcommand: context.params}
    return True


def name_and_value(option: str, given: str, meaning: str) -> tuple[str, str]:
    """What ``NAME=VALUE`` says.

    Args:
        option: what it was given to.
        given: it.
        meaning: what the value is.

    Raises:
        UsageError: there is no name.
    """
    name, equals, value = given.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{option} is {given!r}: expected a name, '=' and {meaning}")
    return name.strip(), value


def shown_path(path: Path) -> Path:
    """A path as a person would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def time_between(start: datetime, end: datetime) -> str:
    """How long it is from one moment to another; no time where that is over already."""
    return span(max(0.0, (end - start).total_seconds()) * 1000)


def since_moment(option: str, text: str, now: datetime) -> datetime:
    """The moment that an option names: so long ago (``2d``), or a date or time in ISO 8601.

    Raises:
        UsageError: it is neither.

    Example:
        >>> from datetime import timezone
        >>> now = datetime(2026, 4, 4, 12, tzinfo=timezone.utc)
        >>> since_moment("--since", "90m", now).isoformat()
        '2026-04-04T10:30:00+00:00'
        >>> since_moment("--since", "2026-04-01", now).isoformat()
        '2026-04-01T00:00:00+00:00'
    """
    named = moment(text) if text[:4].isdigit() and "-" in text else None
    if named is not None:
        return named
    try:
        return now - timedelta(seconds=seconds(text))
    except ValueError as error:
        raise UsageError(f"{option}: {error}; a date like 2026-04-01 can be said, too") from error


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def take_signals(answer: Callable[[int, FrameType | None], None] = _interrupt) -> None:
    """Let Ctrl-C and SIGTERM interrupt, also where a shell in the background had SIGINT ignored."""
    signal.signal(signal.SIGINT, answer)
    signal.signal(signal.SIGTERM, answer)


# --- The task that somebody means ---------------------------------------------------------------------

_LISTED = 20
"""Ids that an error names, at most; chosen."""


def find(known: Sequence[str], wanted: str, what: str = "task") -> str:
    """The id that is, or alone begins with, what was asked for.

    Args:
        known: ids that there are.
        wanted: one of them, or how it begins.
        what: what they are ids of.

    Raises:
        UsageError: there is none, or several.
    """
    if wanted in known:
        return wanted
    found = [id_ for id_ in known if wanted and id_.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} is the beginning of several {what}s: {_listing(found)}")
    there = f"there are: {_listing(known)}" if known else f"there are no {what}s here yet"
    raise UsageError(f"no {what} {wanted!r}; {there}")


def _listing(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return ", ".join(ids[:_LISTED]) + more


# --- Who works on a task ------------------------------------------------------------------------------

AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help="Who works: claude, codex, gemini or aider, started so that it asks nobody and edits the "
        "files of a scratch copy; a model, like anthropic:claude-opus-4-5 or openai:gpt-5 (its key is "
        "read from ANTHROPIC_API_KEY or OPENAI_API_KEY); or NAME of [agents.NAME] in "
        ".loki/config.toml. Several with commas, like 'claude, codex': the next one is asked where "
        "the one before cannot be.",
    ),
]
AgentCommand = Annotated[
    str | None,
    typer.Option(
        "--agent-command",
        help="Or: any program that reads the briefing on stdin and edits the files in the folder that "
        "it is started in, a scratch copy of the project. It is run as you say it.",
    ),
]
PassEnvironment = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-env",
        help="A variable, or a glob, that a program gets although it looks like a secret; repeat it "
        "for more. [default: the keys that claude, codex, gemini or aider needs; all of them for "
        "other programs]",
    ),
]


def agent_said(
    workspace: Workspace,
    agent: str | None,
    agent_command: str | None,
    *,
    briefing: str | None = None,
    timeout: str | None = None,
    reflect: bool = False,
    pass_environment: Sequence[str] | None = None,
) -> Agent:
    """The agent that ``--agent`` or ``--agent-command`` says.

    Args:
        workspace: the project.
        agent: ``provider:model``, a preset, or a name of the configuration; None: not said.
        agent_command: a command; None: not said.
        briefing, timeout: ``--briefing`` and ``--agent-timeout``.
        reflect: ask it once more after each attempt that failed.
        pass_environment: ``--pass-env``.

    Raises:
        UsageError: none or both are said, or it cannot work: no such program, no key.
    """
    from loki.execution import resolve

    if (agent is None) == (agent_command is None):
        raise UsageError(
            "who works? Expected --agent with a program that loki knows (claude, codex, gemini, aider) "
            "or provider:model, like anthropic:claude-opus-4-5, or --agent-command with any program; "
            "one of them"
        )
    if briefing not in {None, "stdin", "argument"}:
        raise UsageError(f"--briefing is {briefing!r}: expected 'stdin' or 'argument'")
    limit = None if timeout is None else argument_seconds("--agent-timeout", timeout)
    if agent_command is not None:
        return resolve.program(
            workspace,
            agent_command,
            limit,
            briefing=briefing,  # type: ignore[arg-type]
            reflect=reflect,
            pass_environment=pass_environment,
        )
    assert agent is not None
    if briefing is not None:
        raise UsageError("--briefing is for --agent-command: expected --agent without it")
    more = pass_environment or ()
    return resolve.named_agent(workspace, agent, limit, reflect=reflect, pass_environment=more)
