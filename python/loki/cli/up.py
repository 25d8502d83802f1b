"""``loki up``: all that goes on by itself in a project: the queue, recurring tasks, signals."""

from __future__ import annotations

import logging
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from loki.base.error import LokiError, UsageError
from loki.base.text_format import amount
from loki.cli.agent import AgentCommand, AgentName
from loki.cli.common import Project, log_to_console
from loki.cli.tick import on_word as word_heard
from loki.cli.tick import tell as tell_round
from loki.cli.work import Verbose, Workers, stop_by_signal
from loki.cli.work import tell as tell_work

if TYPE_CHECKING:
    from loki.jobs.recurring.dispatcher import Dispatcher
    from loki.jobs.work.worker_pool import WorkerPool
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


def command(
    agent: AgentName = None,
    agent_command: AgentCommand = None,
    workers: Workers = None,
    verbose: Verbose = False,
    project: Project = Path(),
) -> None:
    """Run all that goes on by itself here, in one process, until Ctrl-C or `loki stop`.

    That is what `loki work --watch`, `loki tick --watch` and `loki signals watch` do: tasks of the queue
    are worked on, recurring tasks run when they are due, signals are acted on as they come, dead
    letters are reviewed once a day. Others of these commands may run beside it.

    Exit codes: those of `loki work`.

    Example: `loki up --agent claude`
    """
    from loki.cli.dead_letter_text import echo
    from loki.cli.run import take_signals
    from loki.execution.stop_request import listening
    from loki.jobs.dead_letters.daily_review import Daily
    from loki.jobs.recurring import scheduling
    from loki.jobs.signals.signal_follower import followed
    from loki.jobs.work.maintenance import run_maintenance
    from loki.jobs.work.queued_task_spec import DefaultAgent
    from loki.jobs.work.worker_pool import WorkerPool
    from loki.runtime import Runtime

    if agent is not None and agent_command is not None:
        raise UsageError("--agent and --agent-command both say who works: expected one of them")
    log_to_console(logging.INFO if verbose else logging.WARNING)
    workspace = Runtime(project)
    default = DefaultAgent(agent or "", agent_command or "")
    default.must_be_able(workspace)
    take_signals()
    run_maintenance(workspace, echo)
    dispatcher = scheduling.dispatcher(workspace)
    parallel = workers or workspace.config.work.parallel
    pool = WorkerPool(
        workspace,
        parallel,
        default=default,
        watch=True,
        tell=tell_work,
    )
    stop_by_signal(pool)
    ticking = threading.Thread(
        target=_tick, args=(workspace, dispatcher, pool), name="loki-dispatcher"
    )
    with (
        followed(workspace, Daily(workspace, echo)),
        listening(workspace.folder, partial(word_heard, dispatcher)),
    ):
        ticking.start()
        typer.echo(
            f"Up: queue ({amount(parallel, 'task')} at a time), recurring tasks, signals. "
            "`loki status` tells what waits for you; Ctrl-C or `loki stop` ends it.",
            err=True,
        )
        try:
            code = pool.run()
        finally:
            if pool.is_stopping:
                dispatcher.cancelled.set()
            dispatcher.draining.set()
            ticking.join()
    raise typer.Exit(code)


def _tick(workspace: Workspace, dispatcher: Dispatcher, pool: WorkerPool) -> None:
    from loki.jobs.recurring import scheduling

    try:
        dispatcher.watch(
            heard=partial(tell_round, json=False), has_changed=scheduling.Changes(workspace.folder)
        )
    except (LokiError, OSError) as error:
        logger.error("recurring tasks do not run any more: %s", error)
        pool.stop()
