"""What became of a git branch: is it still there, has it been merged?

Only what git can tell for certain counts: a branch that was squashed or rebased into another looks
unmerged, and one that was never worked on looks merged from its first day, which is why it matters
where it stood when its run began.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from loki.action.changes.git import git, git_folder

DEFAULTS = ("main", "master", "trunk", "develop")
"""Names of the branch that others are merged into, where the remote does not say which it is."""

MERGED, DELETED, MERGED_INTO, OLD = "merged", "deleted", "merged into", "old"
"""How a run's branch stands when the run is over; the last two are of the default branch."""


def start_of(root: str, branch: str | None) -> dict[str, Any]:
    """How a branch stands, to be kept when its run begins; empty outside git.

    Args:
        root: the project's folder.
        branch: its name, or None.
    """
    refs = _refs(root) if branch else None
    tip = _tip(refs, branch) if refs and branch else None
    if refs is None or branch is None or tip is None:
        return {}
    return {"commit": tip, "contained": _is_contained(root, refs, branch, tip)}


def has_taken_in(root: str, branch: str, start: Mapping[str, Any]) -> bool:
    """Whether another branch was merged into one, the default branch, since its run began.

    Args:
        root: the project's folder.
        branch: its name.
        start: what `start_of` said when its run began.
    """
    begun = str(start.get("commit") or "")
    if not re.fullmatch("[0-9a-f]{40,64}", begun) or branch != default_branch(root):
        return False
    found = git(root, "rev-list", "--merges", "--first-parent", "--max-count=1",
                f"{begun}..refs/heads/{branch}")  # fmt: skip
    return bool(found and found.strip())


def end_of(root: str, branch: str, start: Mapping[str, Any]) -> str:
    """How a branch ended: merged, deleted, or "" where it has not, or nobody can tell.

    Args:
        root: the project's folder.
        branch: its name.
        start: what `start_of` said when its run began.
    """
    refs = _refs(root)
    if refs is None or not start:
        return ""
    tip = _tip(refs, branch)
    if tip is None:
        return DELETED
    has_moved = tip != start.get("commit")
    if (has_moved or not start.get("contained")) and _is_contained(root, refs, branch, tip):
        return MERGED
    return ""


def default_branch(root: str) -> str:
    """Name of the branch that others are merged into, as far as git or the remote tells; "" else."""
    refs = _refs(root) or {}
    heads = (ref for ref in _defaults(refs) if ref.startswith("refs/heads/"))
    return next(heads, "").removeprefix("refs/heads/")


def _refs(root: str) -> Mapping[str, str] | None:
    """Commits by name of ref; None outside git and where git cannot be asked."""
    if git_folder(root) is None:
        return None
    found = git(root, "for-each-ref", "--format=%(objectname) %(refname) %(symref)",
                "refs/heads", "refs/remotes")  # fmt: skip
    if found is None:
        return None
    refs = {}
    for line in os.fsdecode(found).splitlines():
        commit, name, *target = line.split(" ")
        refs[name] = commit
        if name.endswith("/HEAD") and target and target[0]:
            refs[name] = target[0]
    return refs


def _tip(refs: Mapping[str, str], branch: str) -> str | None:
    # Where a tag has the same name, git calls the branch heads/<name>.
    return refs.get(f"refs/heads/{branch}") or refs.get(f"refs/{branch}")


def _is_contained(root: str, refs: Mapping[str, str], branch: str, tip: str) -> bool:
    """Whether the default branch, here or at its remote, contains a commit."""
    return any(
        git(root, "merge-base", "--is-ancestor", tip, refs[ref]) is not None
        for ref in _defaults(refs)
        if ref not in {f"refs/heads/{branch}", f"refs/{branch}"} and not ref.endswith(f"/{branch}")
    )


def _defaults(refs: Mapping[str, str]) -> list[str]:
    told = [target for name, target in refs.items() if name.endswith("/HEAD")]
    names = [ref.split("/", 3)[3] for ref in told if ref.count("/") >= 3]  # noqa: PLR2004
    names = names or [name for name in DEFAULTS if f"refs/heads/{name}" in refs][:1]
    wanted = [*told, *(f"refs/heads/{name}" for name in names)]
    return [ref for ref in dict.fromkeys(wanted) if ref in refs]
