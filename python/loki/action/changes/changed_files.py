"""Which files of a project differ from a commit."""

from __future__ import annotations

import os
import re

from loki.action.changes.git import git

PATIENCE = 3.0
"""Seconds that git may take: nobody waits for this. Chosen."""

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def files_since(root: str, commit: str) -> tuple[str, ...] | None:
    """Files below a folder that differ from a commit, those included that are not committed yet.

    Args:
        root: the project's folder.
        commit: id of a commit.

    Returns:
        Paths relative to the folder, sorted; files that git was never told of are not among them. None
        where git does not know the commit, is missing, or takes too long.

    Example:
        >>> import tempfile
        >>> files_since(tempfile.mkdtemp(), "1a2b3c4")
    """
    if not _COMMIT.fullmatch(commit):
        return None
    wanted = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--relative", commit, "--", ".")
    said = git(root, "diff", *wanted, seconds=PATIENCE)
    if said is None:
        return None
    return tuple(sorted(path for path in os.fsdecode(said).split("\0") if path))
