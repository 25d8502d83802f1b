"""``loki run``: the closed loop with a command-line agent."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from loki.action.task import COMPLEXITIES, KINDS
from loki.base.text_format import amount, escape_control_characters, line
from loki.base.time import argument_seconds, isoformat
from loki.cli.common import (
    AgentCommand,
    AgentName,
    OutcomeJson,
    PassEnvironment,
    Project,
    agent_said,
    load_project,
    log_to_console,
    project_option,
    show_json,
    take_signals,
)
from loki.cli.resume import ask_person
from loki.cli.review import reminder
from loki.execution import resolve
from loki.memory.attempt import DRIFT
from loki.memory.task_record import Outcome
from loki.people.approval import Approvals
from loki.people.escalation import options

NOT_KEPT = "no page: it could not be written (see the warning above)"


def command(
    task: Annotated[str, typer.Option(help="What is to be achieved, in your words.")],
    agent: AgentName = None,
    agent_command: AgentCommand = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="A command that must exit with 0, like 'pytest -q'; repeat it for more. Put its "
            "kind before it where that is not plain: 'lint: make style'. What no command can tell: "
            "'review: …' (--reviewer-command judges) or 'approval: …' (a person does). [default: "
            "the success criteria of --kind, by the project's own commands]"
        ),
    ] = None,
    reviewer_command: Annotated[
        str | None,
        typer.Option(
            help="Judges criteria that no command can check: any program that reads the change on "
            'stdin and ends with {"approved": true} or a last line APPROVED or REJECTED: reason.'
        ),
    ] = None,
    project: Project = Path(),
    max_attempts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Attempts in all. [default: [loop] max_retries; else as the kind of failure has it, "
            "mostly 4, not counting those after which fewer tests fail than ever before]",
        ),
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(help="Wall time for all of them, like 30m or 2h.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens for all of them, as far as the agent tells.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars for all of them, as far as the agent tells.")
    ] = None,
    wait: Annotated[
        bool | None,
        typer.Option(
            "--wait/--no-wait",
            help="Where the agent failed so often that its circuit breaker is open: wait until it "
            "may be asked again, or pause the task at once. [default: wait as long as --max-time "
            "allows; without it, pause]",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(KINDS)}. A bug_fix is done where every check passes already; the "
            "others want a change."
        ),
    ] = "bug_fix",
    complexity: Annotated[
        str,
        typer.Option(help=f"How much is at stake: {', '.join(COMPLEXITIES)}."),
    ] = "medium",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="A file, folder or glob that the task is about; repeat it for more. What a change "
            "does elsewhere is pointed out."
        ),
    ] = None,
    briefing: Annotated[
        str | None,
        typer.Option(
            help="How the agent gets its briefing: 'stdin', or 'argument': where the command "
            "says {briefing}, else last. [default: argument if it says {briefing}, else stdin]"
        ),
    ] = None,
    agent_timeout: Annotated[
        str | None, typer.Option(help="Time for one answer. [default: 30m]")
    ] = None,
    pass_env: PassEnvironment = None,
    reflect: Annotated[
        bool,
        typer.Option(
            "--reflect",
            help="After each attempt that failed, ask the agent once more what went wrong; the next "
            "briefing shows it. Without it the facts are noted.",
        ),
    ] = False,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Where a person is needed, ask on the terminal at once and go on."
        ),
    ] = False,
    json: OutcomeJson = False,
) -> None:
    """Work on a task until its checks pass, a person is needed, or attempts run out.

    The checks run once before the first attempt, and after each; without --check they are the success
    criteria of the task's kind, by the commands that the project tests and lints itself with. Once they
    pass, tests that passed before the work and can be broken by it must still pass, as far as the test
    runner tells its results test by test; else the log says "not checked". A proposal is validated
    before a byte of the project changes; every attempt is on disk under `.loki/tasks/`.
    Ctrl-C stops at once and leaves everything whole; the same command goes on from there. Where a person
    is needed, it ends with three ways to go on (`loki resume`).

    An agent that cannot be reached is asked again after growing waits. After three failures within
    a minute its circuit breaker opens, for all who use it (`loki breakers`): the task is paused,
    none of these attempts is counted as used up, and the same command goes on with it once the time
    has come.

    Exit codes: 0 success, 1 loki itself could not work, 2 usage, 3 a person is needed, 4 out of
    attempts, 5 the budget of time, tokens, money or attempts is spent (a warning comes at 80 %; the
    configuration's [limits] hold for every run), 6 paused, 130 interrupted.

    Example: `loki run --task "fix the login test" --check "pytest -q" --agent claude`, or with a model:
    `--agent anthropic:claude-opus-4-5`
    """
    from loki.jobs.inbox import human_review_answers

    log_to_console()
    take_signals()
    workspace = load_project(project)
    human_review_answers.finish_reviews(workspace)
    worker = agent_said(
        workspace,
        agent,
        agent_command,
        briefing=briefing,
        timeout=agent_timeout,
        reflect=reflect,
        pass_environment=pass_env,
    )
    limit = argument_seconds("--agent-timeout", agent_timeout) if agent_timeout else None
    reviewer = resolve.reviewer(workspace, reviewer_command, limit)
    with workspace.task(
        task,
        checks=check or workspace.default_checks(kind, complexity, reviewer),
        kind=kind,
        complexity=complexity,
        max_attempts=max_attempts,
        max_time=max_time,
        max_tokens=max_tokens,
        max_cost=max_cost,
        wait=wait,
        scope=scope or (),
        reviewer=reviewer,
    ) as entered:
        outcome = entered.run(worker)
    if ask:
        outcome = ask_person(workspace, outcome, worker)
    report(outcome, project, json=json)


def report(outcome: Outcome, project: Path, *, json: bool = False) -> None:
    """Tell how a run ended, and end with its exit code."""
    if json:
        show_json(outcome.to_dict())
    else:
        typer.echo(_tell(outcome, project))
        for sentence in _how_to_approve(project, outcome.task_id):
            typer.echo(sentence)
        if due := reminder(project):
            typer.echo(due)
    raise typer.Exit(outcome.exit_code)


def _how_to_approve(project: Path, task_id: str) -> list[str]:
    """A line for each command that waits: what it is, and what to type."""
    from loki.stores.file_store import open_store

    undecided = Approvals(open_store(project / ".loki"), task_id).undecided()
    return [
        f"the agent wants to run {name.partition(' ')[2]!r}; to allow exactly this: "
        f"loki resume {task_id} --approve {shlex.quote(name)}"
        for name in map(escape_control_characters, undecided)
    ]


def _resume(outcome: Outcome) -> str:
    if outcome.retry_at is None:
        return "the same command, once somebody has closed the breaker: loki breakers close"
    return f"the same command from {isoformat(outcome.retry_at)} on; with --wait it waits by itself"


def _choices(outcome: Outcome) -> list[str]:
    """What a person can answer, each with its command."""
    id_ = shlex.quote(outcome.task_id)
    if outcome.trigger == "approval":
        if len(outcome.awaiting) != 1:
            return ["Approve or reject each of them as this says: loki status"]
        return [
            f"Approve what the page shows: loki approve {id_} --resume",
            f'Or have it worked on again: loki reject {id_} --note "why" --resume',
            f"Or give it up: loki resume {id_} --abort",
        ]
    if outcome.trigger == DRIFT:
        return [
            f"Approve, where the task needs it: loki approve {id_} --resume",
            f'Reject: loki reject {id_} --note "why" --resume',
            f"Give up: loki reject {id_} --abort",
        ]
    if outcome.review:
        return [
            f"Approve: loki approve {outcome.review}",
            f'Say more: loki approve {outcome.review} --context "…"',
            f'Reject: loki reject {outcome.review} --note "why"',
            f"Give up: loki reject {outcome.review} --abort",
        ]
    return [f"{option.name}: {option.command}" for option in options(outcome.task_id)]


def _tell(outcome: Outcome, project: Path) -> str:
    """What happened, and what to do next."""
    reason = line(outcome.reason)
    end = "" if reason.endswith(("?", ".", "!", "…")) else "."
    lines = [f"{outcome.status} after {amount(outcome.attempts, 'attempt')}: {reason}{end}"]
    if outcome.files:
        lines.append(f"changed: {line(', '.join(outcome.files))}")
    if outcome.status == "success" and not outcome.attempts and not outcome.files:
        lines.append(
            "To have it worked on all the same, say what kind of work it is: --kind feature."
        )
    where = project_option(project)
    if outcome.page:
        page = project / ".loki" / outcome.page
        lines.append(f"read:    {page if page.exists() else NOT_KEPT}")
        if outcome.status == "failed":
            lines.append(
                f"given up: loki dead-letters{where} lists it, tries it again, or drops it"
            )
    if outcome.status == "escalated":
        lines.append("You decide:")
        lines += [f"  {n}. {choice}{where}" for n, choice in enumerate(_choices(outcome), 1)]
    if outcome.breaker:
        lines.append(f"resume:  {_resume(outcome)}")
        lines.append(f"breaker: loki breakers show {shlex.quote(outcome.breaker)}{where}")
    lines.append(f"details: loki show {outcome.task_id}{where}")
    if outcome.files:
        lines.append(f"restore: loki undo {outcome.task_id}{where}")
    return "\n".join(lines)
