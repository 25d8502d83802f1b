"""Files of a change that its task does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.action.gates.finding import Finding
from loki.action.gates.gate import ADVISORY
from loki.decision.drift.path_kinds import in_scope, kinds_of_path, path_kinds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loki.action.changes.change import Change, Edit
    from loki.action.changes.tree import Tree


def scope_findings(change: Change, tree: Tree, scope: Sequence[str]) -> Iterator[Finding]:
    """Files outside of what the task names; where it names nothing, only left-overs.

    Args:
        change: the proposal.
        tree: the project before.
        scope: files, folders and globs (`loki.base.glob`) that the task may touch.

    Tests of a file that the task names, and the project's list of changes, belong to it.
    """
    edited = set(change.paths)
    for edit in change.edits:
        if scope and not in_scope(edit.path, scope):
            named = ", ".join(scope[:3]) + (", …" if scope[3:] else "")
            yield _finding(edit.path, f"the task is about {named}, not about this file")
        elif reason := _leftover(edit, edited, tree):
            yield _finding(edit.path, reason)


def _leftover(edit: Edit, edited: set[str], tree: Tree) -> str:
    known, name = path_kinds(), edit.path.rpartition("/")[2]
    if edit.after is None:
        is_whole = known["licences"].search(name) and "/" not in edit.path
        moved = any(known["licences"].search(p.rpartition("/")[2]) for p in edited - {edit.path})
        return "the licence is deleted" if is_whole and not moved else ""
    if edit.path in tree.entries or kinds_of_path(edit.path) & {"test", "example", "vendored"}:
        return ""
    if known["leftovers"].search(name):
        return "this looks like a left-over of work, not like a part of the project"
    copy = known["copies"].search(name)
    if copy is None:
        return ""
    original = edit.path[: len(edit.path) - len(name)] + copy["stem"] + copy["suffix"]
    return f"this is a copy of {original}" if original in tree.entries else ""


def _finding(path: str, description: str) -> Finding:
    return Finding("scope", "scope_creep", path, 0, 0, 0, description, ADVISORY, key=path)
