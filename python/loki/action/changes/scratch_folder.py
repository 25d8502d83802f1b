"""The folder that a command-line agent works in: gone afterwards, whatever happens."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING

from loki.action.changes.git import run_git
from loki.base import locks, path_containment
from loki.base.error import AgentError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("loki")

_STALE = 60.0  # seconds: a younger scratch folder may be one that is just being set up
_GIT = 300.0  # seconds that a step of git may take; chosen


def scratch_parent() -> str:
    """The folder that holds all scratch folders of this user."""
    return os.path.join(tempfile.gettempdir(), path_containment.scratch_name())


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder that is gone afterwards; if loki is killed, the next one removes it."""
    parent = scratch_parent()
    os.makedirs(parent, mode=0o700, exist_ok=True)
    status = os.lstat(parent)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise AgentError(f"{parent} belongs to somebody else: expected a folder of this user")
    _remove_stale(parent)
    folder = tempfile.mkdtemp(dir=parent)
    handle = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        locks.take(handle)
        yield folder
    finally:
        remove_folder(folder)
        os.close(handle)


def _remove_stale(parent: str) -> None:
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        try:
            if time.time() - os.lstat(folder).st_mtime < _STALE:
                continue
            handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if locks.take(handle):  # else its loki is alive
                remove_folder(folder)
        except OSError:
            pass
        finally:
            os.close(handle)


def remove_folder(folder: str) -> None:
    """Remove what is in the folder of this user's scratch folders; what cannot be is told in the log.

    Args:
        folder: a scratch folder, or a folder in one.
    """
    parent = scratch_parent()
    try:
        path_containment.remove_tree(parent, os.path.relpath(folder, parent))
    except StoreError as error:
        logger.warning("%s", error)


def repository(folder: str | os.PathLike[str]) -> None:
    """Make a copy a git repository that knows all its files, for programs that see no others.

    Raises:
        AgentError: git is not there, or refused.
    """
    steps = (
        ("init", "-q"),
        ("config", "user.name", "loki"),
        ("config", "user.email", "loki@localhost"),
        ("add", "--all", "--force"),
        ("commit", "-q", "--allow-empty", "-m", "The project as it is"),
    )
    for step in steps:
        try:
            done = run_git(os.fspath(folder), *step, seconds=_GIT)
        except (OSError, subprocess.SubprocessError) as error:
            raise AgentError(f"could not prepare the copy: {error}", retryable=False) from error
        if done.returncode:
            said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[-500:]
            raise AgentError(f"could not prepare the copy: `git {step[0]}`: {said}")
