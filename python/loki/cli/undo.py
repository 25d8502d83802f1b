"""``loki undo``: the files as they were before a task."""

from __future__ import annotations

from pathlib import Path

from loki.cli.common import conflicts_of, fail, find, load_project, show_json, tell
from loki.cli.options import Force, Json, Project, TaskId


def command(
    task: TaskId,
    project: Project = Path(),
    force: Force = False,
    json: Json = False,
) -> None:
    """Restore the project's files as they were before a task's first attempt.

    Files that somebody changed since are left alone, and then nothing is done at all, unless you
    say `--force`.
    """
    from loki.action.loop.recorder import forget_refused

    workspace = load_project(project)
    id_ = find(workspace.tasks(), task)
    with workspace.exclusive():
        journal = workspace.journal(id_)
        journal.recover()
        undone = journal.undo(force=force)
        if force or not undone.conflicts:
            forget_refused(workspace.store, id_)
    if json:
        conflicts = [{"path": c.path, "reason": c.reason} for c in undone.conflicts]
        show_json({"restored": list(undone.restored), "conflicts": conflicts})
    if undone.conflicts and not force:
        why = f"files changed since ({conflicts_of(undone)}); --force overwrites"
        fail(f"nothing was restored, because {why}", 1)
    if not json:
        nothing = "Nothing to restore: this task has changed no file that is not as it was."
        tell((f"restored {path}" for path in undone.restored), nothing)
