"""``loki up``: all that goes on by itself in a project: the queue, recurring tasks, signals."""

from __future__ import annotations

import logging
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from loki.base.error import LokiError
from loki.base.text_format import amount
from loki.cli.common import open_project
from loki.cli.options import AgentOptions, Project, with_options
from loki.cli.tick import on_word as word_heard
from loki.cli.tick import tell as tell_round
from loki.cli.work import Verbose, Workers, pool_of
from loki.execution.stop_request import listening
from loki.jobs.recurring import scheduling

if TYPE_CHECKING:
    from loki.jobs.recurring.dispatcher import Dispatcher
    from loki.jobs.work.worker_pool import WorkerPool
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


@with_options
def command(
    who: AgentOptions,
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
    from loki.cli.dead_letters import echo
    from loki.jobs.dead_letters.dead_letters import Daily
    from loki.jobs.signals.signal_handling import followed

    workspace = open_project(project, logging.INFO if verbose else logging.WARNING)
    pool = pool_of(workspace, who, workers, watch=True)
    parallel = workers or workspace.config.work.parallel
    dispatcher = scheduling.dispatcher(workspace)
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
    try:
        dispatcher.watch(
            heard=partial(tell_round, json=False), has_changed=scheduling.Changes(workspace.folder)
        )
    except (LokiError, OSError) as error:
        logger.error("recurring tasks do not run any more: %s", error)
        pool.stop()
