"""Options of commands, each written once; those that go together are a class that a command takes whole.

A class has the names of the model that it fills (`QueuedTask`, `AgentPart`, what `loki.Workspace.task`
takes), so that `given` hands them on: a new field is one line here. What each means, its help says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from loki.action.task import COMPLEXITIES, KINDS
from loki.base.error import UsageError
from loki.base.time import argument_seconds

if TYPE_CHECKING:
    from loki.action.agent_protocol import Agent
    from loki.workspace import Workspace

_Command = TypeVar("_Command", bound=Callable[..., Any])

# --- How a command takes options ----------------------------------------------------------------------


def with_options(command: _Command) -> _Command:
    """A command whose parameters may be classes of options: each of their fields is an option of its own.

    Args:
        command: it; called from Python, it takes the classes by their names.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    classes: dict[str, Any] = {}
    for one in inspect.signature(command).parameters.values():
        hint = hints[one.name]
        if is_dataclass(hint):
            classes[one.name] = hint
            parameters += _of_fields(hint)
        else:
            parameters.append(one.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call(*positional: Any, **said: Any) -> Any:
        for name in set(classes) - set(said):
            own = {field.name for field in fields(classes[name])} & set(said)
            said[name] = classes[name](**{field: said.pop(field) for field in own})
        return command(*positional, **said)

    return _taking(parameters, call)  # type: ignore[return-value]


def with_kept_options(command: _Command) -> _Command:
    """The same, of a command that goes on with something: what is not said stays as it is there."""
    call = with_options(command)
    said = inspect.signature(call).parameters.values()
    return _taking([one.replace(annotation=_kept(one.annotation)) for one in said], call)  # type: ignore[return-value]


def _kept(hint: Any) -> Any:
    option = copy(hint.__metadata__[0])
    option.help = re.sub(r"\[default: .*\]$", "[default: as it is]", option.help)
    return Annotated[hint.__origin__, option]


def command_group(help_: str | None) -> typer.Typer:
    """A group of commands.

    Args:
        help_: what it is for, Markdown: the docstring of its module.
    """
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=help_)


def listing(app: typer.Typer) -> Callable[[_Command], _Command]:
    """Make a command ``list`` of a group, which the group does also where no command of it is named."""

    def register(command: _Command) -> _Command:
        app.command("list")(command)
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = [inspect.Parameter("context", _ANY, annotation=typer.Context)]
        parameters += [one.replace(annotation=hints[one.name]) for one in own]

        def default(context: typer.Context, **said: Any) -> None:
            if context.invoked_subcommand is None:
                command(**said)
            else:  # options that stand before a command are for it
                context.default_map = {context.invoked_subcommand: context.params}

        app.callback(invoke_without_command=True, no_args_is_help=False)(
            _taking(parameters, default)
        )
        return command

    return register


_ANY = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _of_fields(options: Any) -> Iterable[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    for one in fields(options):
        kind = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(one.name, kind, default=one.default, annotation=hints[one.name])


def _taking(parameters: list[inspect.Parameter], call: Callable[..., Any]) -> Callable[..., Any]:
    """A function as one with these parameters, which is how typer sees it."""
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def given(*options: Any) -> dict[str, Any]:
    """What somebody said, by the names of the fields; lists are tuples.

    Args:
        options: of classes of options.

    Example:
        >>> given(AgentOptions("claude"), WorkOptions(checks=["pytest -q"]))
        {'agent': 'claude', 'checks': ('pytest -q',)}
    """
    said = {field.name: getattr(one, field.name) for one in options for field in fields(one)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in said.items()
        if value is not None
    }


# --- Options of many commands -------------------------------------------------------------------------

Project = Annotated[Path, typer.Option(help="The project's folder.")]
Json = Annotated[bool, typer.Option("--json", help="The same as JSON on stdout, for programs.")]
JsonLines = Annotated[bool, typer.Option("--json", help="The same as lines of JSON.")]
TaskId = Annotated[str, typer.Argument(help="Id of the task, or how it begins.")]
OnlyTask = Annotated[str | None, typer.Option(help="Only this task: its id, or how it begins.")]
CommandRun = Annotated[
    str | None, typer.Option(help="What was run, as typed: tells tools apart that print alike.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Restore also files that somebody changed since.")
]
Decider = Annotated[str, typer.Option(help="Who decides. [default: the user of this machine]")]
Note = Annotated[str, typer.Option(help="Why, for the record and for the agent.")]
Since = Annotated[
    str | None,
    typer.Option(help="Only what began since: a time back, like 2d or 90m, or a date."),
]
Context = Annotated[
    str | None,
    typer.Option(
        help="What you know and the agent cannot; every later briefing has it. Where the agent asks "
        "something, that is the answer."
    ),
]

# --- Who works ----------------------------------------------------------------------------------------

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
ReviewerCommand = Annotated[
    str | None,
    typer.Option(
        help="Judges criteria that no command can check: any program that reads the change on "
        'stdin and ends with {"approved": true} or a last line APPROVED or REJECTED: reason.'
    ),
]


@dataclass(frozen=True)
class AgentOptions:
    """Who works: one of them."""

    agent: AgentName = None
    agent_command: AgentCommand = None

    @property
    def names_somebody(self) -> bool:
        """Whether one of them, or both, are said."""
        return self.agent is not None or self.agent_command is not None


@dataclass(frozen=True)
class CallOptions:
    """How an agent is asked."""

    briefing: Annotated[
        str | None,
        typer.Option(
            help="How --agent-command gets its briefing: 'stdin', or 'argument': where it says "
            "{briefing}, else last. [default: argument if it says {briefing}, else stdin]"
        ),
    ] = None
    agent_timeout: Annotated[
        str | None, typer.Option(help="Time for one answer. [default: 30m]")
    ] = None
    pass_env: Annotated[
        list[str] | None,
        typer.Option(
            help="A variable, or a glob, that a program gets although it looks like a secret; repeat "
            "it for more. [default: the keys that claude, codex, gemini or aider needs; all of them "
            "for other programs]",
        ),
    ] = None
    reflect: Annotated[
        bool,
        typer.Option(
            "--reflect",
            help="After each attempt that failed, ask the agent once more what went wrong; the next "
            "briefing shows it. Without it the facts are noted.",
        ),
    ] = False


AS_USUAL = CallOptions()


def agent_said(workspace: Workspace, who: AgentOptions, how: CallOptions = AS_USUAL) -> Agent:
    """The agent that ``--agent`` or ``--agent-command`` says.

    Args:
        workspace: the project.
        who: who is to work; how: how they are asked.

    Raises:
        UsageError: none or both are said, or it cannot work: no such program, no key.
    """
    from loki.execution import resolve

    if (who.agent is None) == (who.agent_command is None):
        raise UsageError(
            "who works? Expected --agent with a program that loki knows (claude, codex, gemini, aider) "
            "or provider:model, like anthropic:claude-opus-4-5, or --agent-command with any program; "
            "one of them"
        )
    if how.briefing not in {None, "stdin", "argument"}:
        raise UsageError(f"--briefing is {how.briefing!r}: expected 'stdin' or 'argument'")
    timeout = how.agent_timeout
    limit = None if timeout is None else argument_seconds("--agent-timeout", timeout)
    if who.agent is None:
        return resolve.program(
            workspace,
            who.agent_command,  # type: ignore[arg-type]
            limit,
            briefing=how.briefing,  # type: ignore[arg-type]
            reflect=how.reflect,
            pass_environment=how.pass_env,
        )
    if how.briefing is not None:
        raise UsageError("--briefing is for --agent-command: expected --agent without it")
    return resolve.named_agent(
        workspace, who.agent, limit, reflect=how.reflect, pass_environment=how.pass_env or ()
    )


# --- What is to be done, and within which limits ------------------------------------------------------

Checks = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        help="A command that must exit with 0, like 'pytest -q'; repeat it for more. Put its kind before "
        "it where that is not plain: 'lint: make style'. What no command can tell: 'review: …' "
        "(--reviewer-command judges) or 'approval: …' (a person does). [default: the success criteria "
        "of --kind, by the project's own commands]",
    ),
]
MaxAttempts = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Attempts in all. [default: [loop] max_retries; else as the kind of failure has it, mostly "
        "4, not counting those after which fewer tests fail than ever before]",
    ),
]
MaxTime = Annotated[str | None, typer.Option(help="Wall time for all attempts, like 30m or 2h.")]
Wait = Annotated[
    bool | None,
    typer.Option(
        "--wait/--no-wait",
        help="Where the agent failed so often that its circuit breaker is open: wait until it may be "
        "asked again, or pause at once. [default: wait as long as --max-time allows; without it, "
        "pause]",
    ),
]


@dataclass(frozen=True)
class WorkOptions:
    """What a task is about, and how it is judged."""

    checks: Checks = None
    kind: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(KINDS)}. A bug_fix is done where every check passes already; the "
            "others want a change. [default: bug_fix]"
        ),
    ] = None
    complexity: Annotated[
        str | None,
        typer.Option(help=f"How much is at stake: {', '.join(COMPLEXITIES)}. [default: medium]"),
    ] = None
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="A file, folder or glob that the task is about; repeat it for more. What a change "
            "does elsewhere is pointed out."
        ),
    ] = None
    max_attempts: MaxAttempts = None


@dataclass(frozen=True)
class ReviewedWork(WorkOptions):
    """The same, and who judges what no command can."""

    reviewer_command: ReviewerCommand = None


@dataclass(frozen=True)
class Limits:
    """What all attempts together may take."""

    max_time: MaxTime = None
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens for all attempts, as far as the agent tells.")
    ] = None
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars for all attempts, as far as the agent tells.")
    ] = None


# --- When a task comes round again --------------------------------------------------------------------


@dataclass(frozen=True)
class ScheduleOptions:
    """When a recurring task runs."""

    cron: Annotated[
        str | None,
        typer.Option(
            help="When: minute, hour, day of month, month, day of week ('30 8 * * mon-fri'); six "
            "fields begin with the second; or @hourly, @daily, @weekly, @monthly, @yearly."
        ),
    ] = None
    every: Annotated[
        str | None,
        typer.Option(help="Or again and again, so long after the last one ended: 90s, 10m, 1h30m."),
    ] = None
    zone: Annotated[
        str | None,
        typer.Option(help="Time zone of --cron, like Europe/Berlin. [default: this machine's]"),
    ] = None
    max_iterations: Annotated[
        int | None, typer.Option(min=1, help="With --every: done after so many successful ones.")
    ] = None
    max_failure_restarts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="With --every: failures in a row that are tried again; one more stops the task, and "
            "it waits for you. [default: 3]",
        ),
    ] = None


@dataclass(frozen=True)
class RecurringWork(ReviewedWork):
    """What an agent does in each run of a recurring task, and who judges the run."""

    evaluate_command: Annotated[
        str | None,
        typer.Option(
            help="A reviewer that looks at a run that failed. Where it ends with "
            '{"approved": true} or APPROVED, the run counts as a success: it is rescued.'
        ),
    ] = None


@dataclass(frozen=True)
class RecurringOptions:
    """What a recurring task is called, and what it may take."""

    title: Annotated[str | None, typer.Option(help="In your words, else what it does.")] = None
    timeout: Annotated[
        str | None,
        typer.Option(
            help="Time for a run; a command is ended then and has failed. [default: none]"
        ),
    ] = None
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            help="A word to find it by; repeat it for more. 'no-recurring-triage' keeps triage away.",
        ),
    ] = None
