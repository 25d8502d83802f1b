"""``loki resume``: a person answers a task that stopped, and it goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loki.base.error import AgentError, LokiError, UsageError
from loki.cli.common import find, load_project, log_to_console, take_signals
from loki.cli.inbox import ask as ask_on_terminal
from loki.cli.options import (
    AgentOptions,
    Checks,
    Context,
    Force,
    Json,
    Limits,
    MaxAttempts,
    Note,
    Project,
    ReviewerCommand,
    TaskId,
    Wait,
    agent_said,
    given,
    with_kept_options,
)
from loki.cli.recur_change import resume_recurring
from loki.cli.recur_show import recurring_id
from loki.execution import resolve
from loki.memory import task_record
from loki.people.approval import PREFIX

if TYPE_CHECKING:
    from loki.action.loop.agent_call import AnyAgent
    from loki.memory.task_record import Outcome
    from loki.runtime import Runtime


@with_kept_options
def command(
    task: TaskId,
    who: AgentOptions,
    limits: Limits,
    context: Context = None,
    context_file: Annotated[
        str | None, typer.Option(help="The same from a file; '-' is the standard input.")
    ] = None,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            help="What you approve, where the task waits for that, or a command that the agent wants "
            "to run, word by word: 'command: pip install x'. Repeat it for more."
        ),
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(help="What you do not approve; say why with --note.")
    ] = None,
    note: Note = "",
    reviewer_command: ReviewerCommand = None,
    abort: Annotated[
        bool, typer.Option("--abort", help="Give the task up, and restore the files.")
    ] = False,
    force: Force = False,
    check: Checks = None,
    max_attempts: MaxAttempts = None,
    wait: Wait = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask at once where it needs a person again.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Go on with a task that stopped: escalated, out of attempts or time, paused or interrupted.

    What it was run with is kept where you say nothing else: its checks, its limits, which count from here
    on, its agent's command. The checks run first:
    where you have mended it by hand, it ends in success and your edits stay yours. Where you answer
    an escalation, the retries begin anew; what led nowhere before still binds. What `loki work` did in a
    copy and could not land is brought into the project first. Where nothing but your
    approval is missing, --approve is the end of it, and --reject hands it back to the agent.

    A recurring task that is paused or has stopped runs again when it is due (`loki tick`).

    Exit codes: those of `loki run`; 0 after --abort.

    Example: `loki resume fix-the-login --context "the sign is wrong in calc.py, not in the test"`
    """
    workspace = load_project(project)
    if recurring := recurring_id(workspace, task):
        resume_recurring(workspace, recurring, json=json)
        return
    if abort:
        if context is not None or context_file is not None:
            raise UsageError("--abort goes on with nothing: expected it without a context")
        from loki.cli.stop import cancel

        cancel(task, force=force, project=project, json=json)
        return
    id_ = find(workspace.tasks(), task)
    from loki.cli.run import report
    from loki.jobs.work.task_interventions import take_over

    log_to_console()
    take_signals()
    words = _context(context, context_file)
    has_work = bool(words.strip() or reject or any(one.startswith(PREFIX) for one in approve or ()))
    worker = agent_of(workspace, id_, who, needs_agent=has_work)
    reviewer = resolve.reviewer(workspace, reviewer_command)
    for names, approved in ((approve, True), (reject, False)):
        for name in names or ():
            workspace.approve(id_, name, approved=approved, note=note)
    prepared = workspace.resume(
        id_,
        context=words,
        checks=check,
        max_attempts=max_attempts,
        **given(limits),
        wait=wait,
        reviewer=reviewer,
    )
    with take_over(workspace, id_) as ended:
        with prepared as entered:
            outcome = entered.run(worker)
        if ask:
            outcome = ask_person(workspace, outcome, worker)
        ended(outcome)
    report(outcome, project, json=json)


def agent_of(workspace: Runtime, id_: str, who: AgentOptions, *, needs_agent: bool) -> AnyAgent:
    """The agent that a task was run with, or another one.

    Args:
        workspace: the project.
        id_: the task.
        who: the other one, or nobody.
        needs_agent: the agent has something to do for sure; else what a person did may be enough.

    Raises:
        UsageError: its command is not known, holds a secret, or does not exist.
    """
    if who.names_somebody:
        return agent_said(workspace, who)
    kept = task_record.load(workspace.store, id_).agent or {}
    if not (kept.get("agent") or kept.get("command") or needs_agent):
        return _nobody
    return resolve.kept_agent(workspace, kept)


def _nobody(_briefing: object) -> None:
    raise AgentError(
        "the task was not worked on by a command or a model, so loki cannot start its agent: say "
        "which (--agent or --agent-command)",
        retryable=False,
    )


def ask_person(workspace: Runtime, outcome: Outcome, agent: Any) -> Outcome:
    """Ask on the terminal what is to become of a task that needs a person, until it does not.

    Without a terminal, nothing is asked.

    Args:
        workspace: the project.
        outcome: how the task ended.
        agent: who goes on with it.
    """
    while outcome.status in {"escalated", "failed"} and sys.stdin.isatty():
        try:
            answered = ask_on_terminal(workspace, outcome.task_id)
            if answered is None:
                return outcome
            said, result = answered
            if result.done:
                typer.echo(result.done, err=True)
            if outcome.task_id not in result.tasks:
                if result.next:  # something else about it is asked
                    continue
                raise typer.Exit
            context = said.context if result.at_once else ""
            with workspace.resume(outcome.task_id, context=context) as entered:
                outcome = entered.run(agent)
        except LokiError as error:
            typer.secho(f"loki: {error}", err=True, fg="red")
    return outcome


def _context(context: str | None, context_file: str | None) -> str:
    if context is not None and context_file is not None:
        raise UsageError("--context and --context-file say the same: expected one of them")
    if context_file is None:
        return context or ""
    if context_file == "-":
        return sys.stdin.read()
    try:
        return Path(context_file).read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"--context-file {context_file}: {error.strerror or error}") from error
