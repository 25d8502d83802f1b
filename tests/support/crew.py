"""A queue, workers in processes of their own, and an agent whose runs are seen from outside."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import loki
from loki.jobs.queue.queue import Queue, queue_of
from loki.jobs.queue.queued_task import QueuedTask
from support.command import Ended
from support.command import loki as command

AGENT = """#!/bin/sh
# Reads its briefing, and says which task it is for, when it begins, and when it ends.
while read -r line; do
    case "$line" in *"make "*) name="${line#*make }"; name="${name%%[!a-z0-9-]*}"; break;; esac
done
cat > /dev/null
echo "begin $name $$" >> LOG
echo "by $$" > "$name.txt"
PAUSE
echo "end $name $$" >> LOG
"""


def make_agent(folder: Path, pause: str = ":") -> tuple[str, Path]:
    """An executable that makes ``<name>.txt`` for "make <name>"; its command, and its log.

    Args:
        folder: for both, outside of the project.
        pause: a shell command between begin and end.
    """
    program, log = folder / "agent.sh", folder / "agent.log"
    program.write_text(AGENT.replace("LOG", str(log)).replace("PAUSE", pause))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    log.touch()
    return str(program), log


def submit(project: Path, names: Iterable[str], **said: Any) -> Queue:
    """Queue a task "make <name>" for each name."""
    queue = queue_of(loki.Workspace(project))
    said = {"kind": "refactor", "complexity": "low", **said}
    queue.submit_all(
        [
            QueuedTask(name, f"make {name}", checks=(f"test -f {name}.txt",), **said)
            for name in names
        ]
    )
    return queue


def work(project: Path, *options: str) -> Ended:
    """``loki work``."""
    return command("work", "--project", str(project), *options)


def where(queue: Queue) -> dict[str, str]:
    """The list that each task stands in."""
    lists = queue.lists()
    names = ("pending", "in-progress", "completed", "failed", "dead-letter", "abandoned")
    return {task.id: name for name in names for task in lists.of(name)}  # type: ignore[arg-type]


def overlaps(log: Path) -> list[str]:
    """Tasks of which two agents ran at the same time, by the agents' own log.

    One that was killed never ends; nobody may begin the task while its process is still there, and
    it is not: what the log says of a later beginning is then no overlap. Pids tell them apart.
    """
    running: dict[str, str] = {}
    found = []
    for line in log.read_text().splitlines():
        what, name, pid = line.split()
        if what == "begin":
            running[name] = pid
        elif running.get(name) == pid:
            del running[name]
        else:  # it ended after another one of the same task had begun
            found.append(name)
    return found


def outcomes(printed: str) -> dict[str, str]:
    """What became of each task, by the command's JSON."""
    return {task["task_id"]: task["result"] for task in json.loads(printed)["tasks"]}


def is_running(pid: int) -> bool:
    """Whether a process runs, or waits to be collected."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
