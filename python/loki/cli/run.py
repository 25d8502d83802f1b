"""``loki run``: the closed loop with a command-line agent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from loki.base.text_format import amount, escape_control_characters, line
from loki.base.time import argument_seconds, isoformat
from loki.cli.common import (
    load_project,
    log_to_console,
    present,
    project_option,
    take_signals,
)
from loki.cli.options import (
    AgentOptions,
    CallOptions,
    Json,
    Limits,
    Project,
    ReviewerCommand,
    Wait,
    WorkOptions,
    agent_said,
    given,
    with_options,
)
from loki.cli.resume import ask_person
from loki.cli.review import reminder
from loki.execution import resolve
from loki.memory.attempt import DRIFT
from loki.memory.task_record import Outcome
from loki.people.approval import Approvals
from loki.people.escalation import options
from loki.stores.file_store import open_store

NOT_KEPT = "no page: it could not be written (see the warning above)"


@with_options
def command(
    task: Annotated[str, typer.Option(help="What is to be achieved, in your words.")],
    who: AgentOptions,
    work: WorkOptions,
    limits: Limits,
    how: CallOptions,
    reviewer_command: ReviewerCommand = None,
    wait: Wait = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Where a person is needed, ask on the terminal at once and go on."
        ),
    ] = False,
    project: Project = Path(),
    json: Json = False,
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
    worker = agent_said(workspace, who, how)
    limit = argument_seconds("--agent-timeout", how.agent_timeout) if how.agent_timeout else None
    reviewer = resolve.reviewer(workspace, reviewer_command, limit)
    said = {"kind": "bug_fix", "complexity": "medium", **given(work, limits)}
    said["checks"] = work.checks or workspace.default_checks(
        said["kind"], said["complexity"], reviewer
    )
    with workspace.task(task, **said, wait=wait, reviewer=reviewer) as entered:
        outcome = entered.run(worker)
    if ask:
        outcome = ask_person(workspace, outcome, worker)
    report(outcome, project, json=json)


def report(outcome: Outcome, project: Path, *, json: bool = False) -> None:
    """Tell how a run ended, and end with its exit code."""
    present(outcome.to_dict(), _tell(outcome, project), json=json)
    raise typer.Exit(outcome.exit_code)


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


def _tell(outcome: Outcome, project: Path) -> Iterator[str]:
    """What happened, and what to do next."""
    reason = line(outcome.reason)
    end = "" if reason.endswith(("?", ".", "!", "…")) else "."
    yield f"{outcome.status} after {amount(outcome.attempts, 'attempt')}: {reason}{end}"
    if outcome.files:
        yield f"changed: {line(', '.join(outcome.files))}"
    if outcome.status == "success" and not outcome.attempts and not outcome.files:
        yield "To have it worked on all the same, say what kind of work it is: --kind feature."
    where = project_option(project)
    if outcome.page:
        page = project / ".loki" / outcome.page
        yield f"read:    {page if page.exists() else NOT_KEPT}"
        if outcome.status == "failed":
            yield f"given up: loki dead-letters{where} lists it, tries it again, or drops it"
    if outcome.status == "escalated":
        yield "You decide:"
        for number, choice in enumerate(_choices(outcome), 1):
            yield f"  {number}. {choice}{where}"
    if outcome.breaker:
        yield f"resume:  {_resume(outcome)}"
        yield f"breaker: loki breakers show {shlex.quote(outcome.breaker)}{where}"
    yield f"details: loki show {outcome.task_id}{where}"
    if outcome.files:
        yield f"restore: loki undo {outcome.task_id}{where}"
    yield from _how_to_approve(project, outcome.task_id)
    if due := reminder(project):
        yield due


def _how_to_approve(project: Path, task_id: str) -> Iterator[str]:
    """A line for each command that waits: what it is, and what to type."""
    undecided = Approvals(open_store(project / ".loki"), task_id).undecided()
    for name in map(escape_control_characters, undecided):
        yield (
            f"the agent wants to run {name.partition(' ')[2]!r}; to allow exactly this: "
            f"loki resume {task_id} --approve {shlex.quote(name)}"
        )
