"""A new recurring task, from what a person says of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from loki.action.processes.command_line import split_command_line, why_not_runnable
from loki.action.task import safe_id, task_id
from loki.base.error import UsageError
from loki.base.secret import mask_secrets
from loki.jobs.recurring.recurring_outcome import RecurrenceSettings, replanned
from loki.jobs.recurring.recurring_task import RecurringTask


@dataclass(frozen=True)
class Work:
    """What a task does: the words of a command, or what an agent works on, as its file says it."""

    command: tuple[str, ...] = ()
    agent: Mapping[str, Any] | None = None

    @classmethod
    def of_command(cls, words: Sequence[str], shell: str | None, root: Path) -> Work:
        """A command, by its words, by one text that is split as a shell would, or for a shell.

        Raises:
            UsageError: there is none or both, or its program does not exist.
        """
        if bool(words) == bool(shell):
            raise UsageError(
                "what is to run? Expected one of these: a command after --, --shell 'a | b', "
                "--task for an agent"
            )
        if shell:
            return cls(("sh", "-c", shell))
        command = split_command_line(words[0]) if len(words) == 1 else tuple(words)
        if problem := why_not_runnable(command, root, may_come=False):
            raise UsageError(problem)
        return cls(command)

    @property
    def title(self) -> str:
        """What it is called where nobody says."""
        if self.agent is not None:
            return str(self.agent["task"])
        is_shell = self.command[:2] == ("sh", "-c")
        return self.command[2] if is_shell else shlex.join(self.command)


def defined(
    work: Work,
    *,
    id_: str | None,
    title: str,
    schedule: Mapping[str, Any],
    timeout: float | None,
    tags: tuple[str, ...],
    pass_environment: tuple[str, ...],
    now: datetime,
) -> RecurringTask:
    """A task that has not run yet.

    Args:
        work: what it does.
        id_: names it; made from its title where nothing is said.
        title: in a person's words.
        schedule: as its file has it.
        timeout: seconds that a command may take.
        tags, pass_environment: as in `RecurringTask`.
        now: when it is added: a cycle begins at once, a cron schedule at its next time.

    Raises:
        UsageError: something is outside its range, or holds a secret.
    """
    named = title or work.title
    data = {
        "id": safe_id(id_) if id_ else task_id(named),
        "title": named,
        "schedule": dict(schedule),
        "command": list(work.command),
        "agent": work.agent,
        "tags": tags,
        "pass_environment": pass_environment,
        "created_at": now,
    }
    task = checked(data).with_(timeout=timeout)
    return replanned(task, now, RecurrenceSettings())


def checked(data: Mapping[str, Any]) -> RecurringTask:
    """A task of what its file would say.

    Raises:
        UsageError: it cannot be used, or a secret would be kept in it.
    """
    try:
        task = RecurringTask.model_validate(data)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(key) for key in problem["loc"])
        raise UsageError(f"{where}: {problem['msg'].removeprefix('Value error, ')}") from error
    text = task.to_text()
    if mask_secrets(text) != text:
        raise UsageError(
            "a secret would be kept in the task's file: put it into an environment variable, and "
            "name that with --pass-env"
        )
    return task
