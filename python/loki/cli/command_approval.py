"""Commands that a proposal wants to run and may not: a person is asked, or told how to say yes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from loki.base.control_characters import written_out
from loki.base.secret import holds_mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loki.workspace import Workspace


def is_command(name: str) -> bool:
    """Whether what is approved is a command, not a criterion."""
    from loki.people.approval import PREFIX

    return name.startswith(PREFIX)


def ask_commands(workspace: Workspace, task_id: str, prompt: Callable[[str], str]) -> bool:
    """Ask a person about each command that a task wants to run.

    Args:
        workspace: the project.
        task_id: the task.
        prompt: asks, and gives what the person typed.

    Returns:
        Whether one was approved: the task can go on. Enter leaves a command undecided.
    """
    from loki.people.approval import Approvals

    any_approved = False
    for name in Approvals(workspace.store, task_id).undecided():
        if holds_mask(name):
            continue  # its words are not kept: whoever knows them says them with --approve
        shown = written_out(name.partition(" ")[2])
        answer = prompt(f"The agent wants to run: {shown}\nAllow exactly this? [y, n]")
        if answer.strip().lower() not in {"y", "yes", "n", "no"}:
            continue
        approved = answer.strip().lower().startswith("y")
        workspace.approve(task_id, name, approved=approved)
        any_approved |= approved
    return any_approved


def how_to_approve(project: Path, task_id: str) -> list[str]:
    """A line for each command that waits: what it is, and what to type."""
    from loki.people.approval import Approvals
    from loki.stores import open_store

    return [
        f"the agent wants to run {written_out(name.partition(' ')[2])!r}; to allow exactly this: "
        f"loki resume {task_id} --approve {shlex.quote(written_out(name))}"
        for name in Approvals(open_store(project / ".loki"), task_id).undecided()
    ]
