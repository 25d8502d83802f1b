"""``loki work``: the queue, worked off by several workers at a time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from loki.base.error import UsageError
from loki.base.text_format import amount, line, span
from loki.cli.common import INTERRUPTED, colored, open_project, present, take_signals
from loki.cli.options import AgentOptions, Json, Project, given, with_options

if TYPE_CHECKING:
    from loki.jobs.queue.queue import LeasedTask
    from loki.jobs.work.queued_task_spec import Finished
    from loki.jobs.work.worker_pool import PoolCounts, WorkerPool
    from loki.workspace import Workspace

Workers = Annotated[
    int | None, typer.Option(min=1, help="Tasks at a time. [default: [work] parallel, else 5]")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Also what each task's loop does, line by line.")
]

_SHOWN = 5
"""Ids of tasks that a sentence names; chosen."""

_TOLD = {
    "completed": "completed",
    "failed": "failed",
    "dead-letter": "dead letter",
    "blocked": "needs a person",
    "paused": "paused",
    "interrupted": "interrupted, pending again",
    "cancelled": "cancelled",
    "lost": "lost to another worker",
}


@with_options
def command(
    who: AgentOptions,
    workers: Workers = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch/--once", help="Stay and take what comes, or end when nothing can be done."
        ),
    ] = False,
    max_tasks: Annotated[int | None, typer.Option(min=1, help="End after so many tasks.")] = None,
    verbose: Verbose = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Work off the queue: each pending task through the loop, several at a time.

    Every task is worked on in a copy of the project as it is, and lands in the project, whole, once
    its checks pass there together with all that landed before. What does not succeed leaves the
    project as it is; `loki show` says where its change is kept, `loki resume` brings it in. `--agent`
    works on tasks that name nobody. Dead letters are reviewed where that is due, before that and once a
    day; signals are acted on as they come.

    Any number of these commands may run on one project; they share the queue. While a circuit breaker
    is open, fewer tasks run, those in the background stop, and what is not urgent waits. Ctrl-C gives
    the tasks in flight back to the queue; a second one ends everything at once.

    Exit codes, the most severe of what happened: 130 interrupted, 1 loki itself could not work, 4 a
    task is out of attempts, 3 one needs a person, 5 one spent its budget, 6 an open circuit breaker
    keeps tasks waiting, 0 all is well; 2 usage.

    Example: `loki submit --task "fix the login test" --check "pytest -q"`, then `loki work --agent claude`
    """
    from loki.cli.dead_letters import echo
    from loki.jobs.dead_letters.dead_letters import Daily
    from loki.jobs.signals.signal_handling import attend, followed

    workspace = open_project(project, logging.INFO if verbose else logging.WARNING)
    pool = pool_of(workspace, who, workers, watch=watch, max_tasks=max_tasks)
    with followed(workspace, Daily(workspace, echo)):
        code = pool.run()
    take_signals()
    if code != INTERRUPTED:
        attend(workspace)  # to the signals that the last tasks gave
    finished = [one.to_dict() for one in pool.finished]
    left = {"held_up": pool.delayed(), "nameless": pool.without_agent()}
    present({"tasks": finished, **left, "exit_code": code}, _summary(pool), json=json)
    raise typer.Exit(code)


def pool_of(
    workspace: Workspace,
    who: AgentOptions,
    workers: int | None,
    *,
    watch: bool,
    max_tasks: int | None = None,
) -> WorkerPool:
    """Workers for a project that has been tidied up; Ctrl-C stops them.

    Args:
        workspace: the project.
        who: works on tasks that name nobody; or nobody does.
        workers: how many; None: as the configuration says.
        watch, max_tasks: as `WorkerPool` takes them.

    Raises:
        UsageError: both are to work, or who is to cannot.
    """
    from loki.cli.dead_letters import echo
    from loki.jobs.work.queued_task_spec import DefaultAgent
    from loki.jobs.work.worker_pool import WorkerPool, run_maintenance

    if who.agent is not None and who.agent_command is not None:
        raise UsageError("--agent and --agent-command both say who works: expected one of them")
    default = DefaultAgent(**given(who))
    default.must_be_able(workspace)
    take_signals()
    run_maintenance(workspace, echo)
    pool = WorkerPool(
        workspace,
        workers or workspace.config.work.parallel,
        default=default,
        watch=watch,
        max_tasks=max_tasks,
        tell=tell,
    )
    stop_by_signal(pool)
    return pool


def stop_by_signal(pool: WorkerPool) -> None:
    """The first Ctrl-C, or SIGTERM, stops the workers; the second does not wait for them.

    Args:
        pool: they.
    """
    from loki.jobs.work.worker_pool import exit_immediately

    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        if stopped:
            exit_immediately()
        stopped = True
        pool.stop()

    take_signals(stop)


def tell(what: LeasedTask | Finished, count: PoolCounts | None) -> None:
    """A line of progress on stderr; as `WorkerPool` tells it."""
    from loki.jobs.work.queued_task_spec import Finished

    if not isinstance(what, Finished):
        typer.echo(f"{what.id}: begun", err=True)
        return
    assert count is not None
    left = f"{count.in_progress} in progress, {count.pending} pending"
    left += f", {count.blocked} blocked" if count.blocked else ""
    told = colored(what.place, said=_TOLD[what.place])
    tries = f" after {amount(what.outcome.attempts, 'attempt')}" if what.outcome else ""
    typer.echo(
        f"{what.task}: {told}{tries}, {span(what.seconds * 1000)}: {line(what.reason)} ({left})",
        err=True,
    )


def _summary(pool: WorkerPool) -> str:
    from loki.jobs.work.worker_pool import NAMED

    held, nameless = pool.delayed(), pool.without_agent()
    if not pool.finished and not held and not nameless:
        return "Nothing to work on: `loki submit` queues a task, `loki queue` tells what waits."
    plural = {"dead letter": "dead letters"}
    counts = Counter(_TOLD[one.place] for one in pool.finished)
    amounts = (f"{n} {plural.get(what, what) if n > 1 else what}" for what, n in counts.items())
    lines = [", ".join(amounts)] if counts else []
    for one in pool.finished:
        if one.place == "blocked":
            lines.append(f"  {one.task} waits for you: {line(one.reason)}")
        elif one.place in {"dead-letter", "failed"}:
            lines.append(f"  {one.task}: {line(one.reason)}; loki show {one.task}")
    if held:
        why = "while a circuit breaker is open (loki breakers), urgent ones do not"
        lines.append(_left(held, "waits", "wait", why))
    if nameless:
        lines.append(_left(nameless, "names", "name", f"nobody who works on it: expected {NAMED}"))
    return "\n".join(lines)


def _left(ids: Sequence[str], one: str, many: str, why: str) -> str:
    """Which tasks were not begun, and why."""
    shown = ", ".join(map(line, ids[:_SHOWN])) + (", …" if len(ids) > _SHOWN else "")
    return f"{amount(len(ids), 'task')} {one if len(ids) == 1 else many} {why}: {shown}"
