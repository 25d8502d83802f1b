"""Starts workers as processes of their own, quickly: forked from one that has loki imported.

Run as a module: ``support.nursery PROJECT AGENT``. For each byte on its standard input it forks a worker on
the project's queue, and prints its pid; ``exit PID CODE`` where one ends, ``killed PID SIGNAL``.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from pathlib import Path

from loki import Workspace
from loki.jobs.work.queued_task_spec import DefaultAgent
from loki.jobs.work.worker_pool import WorkerPool


def main(project: Path, agent: str) -> None:
    """Fork and collect until the input ends and every worker has."""
    # What each worker imports only when it works is imported once, here.

    Workspace(project)
    alive: set[int] = set()
    is_open = True
    while is_open or alive:
        if is_open and select.select([0], [], [], 0.02)[0]:
            is_open = bool(os.read(0, 1))
            if is_open:
                child = os.fork()
                if child == 0:
                    _work(project, agent)
                alive.add(child)
                print("started", child, flush=True)
        elif not is_open:
            select.select([], [], [], 0.02)
        for pid in tuple(alive):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                alive.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                print("exit" if code >= 0 else "killed", pid, abs(code), flush=True)


def _work(project: Path, agent: str) -> None:
    code = 99
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        pool = WorkerPool(Workspace(project), 1, default=DefaultAgent(agent_command=agent))
        code = pool.run()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
