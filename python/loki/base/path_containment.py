"""What lies below one folder and nowhere else: the check of every name, and the one place that removes trees.

An id or a path that was read from a file becomes part of a path only through `part` or `path`. What
is removed is reached from the folder's own handle, one name at a time, and no link is followed
(openat(2) with O_NOFOLLOW): a link that is swapped in between a look and a removal is an error, not
a way out.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import secrets
import stat
from typing import TYPE_CHECKING

from loki.base.atomic_file import is_temporary, temporary_name
from loki.base.error import StoreError
from loki.base.locks import has_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST = 255
"""Bytes of a name: NAME_MAX of Linux's file systems."""

STALE = 3600.0
"""Seconds after which nobody still writes a temporary file; chosen, not measured."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SCRATCH = "loki-scratch-"
_ALL = 0o700  # what its owner may do with a folder
_OWN = re.compile(rf"\.loki|{_SCRATCH}\d+")


def scratch_name() -> str:
    """The name of the folder that holds all scratch folders of this user."""
    return f"{_SCRATCH}{os.getuid()}"


def is_part(text: object) -> bool:
    """Whether a text can be one name in a path, and so leads nowhere else.

    Example:
        >>> is_part("fix-login"), is_part(".."), is_part("a/b"), is_part("")
        (True, False, False, False)
    """
    if not isinstance(text, str) or text in {"", ".", ".."} or "/" in text or "\0" in text:
        return False
    try:
        return len(os.fsencode(text)) <= LONGEST
    except UnicodeEncodeError:  # half a character, of no file's name
        return False


def is_path(text: object) -> bool:
    """Whether a text is a relative path that leads nowhere else: names with ``/`` between them.

    Example:
        >>> is_path("tasks/a/task.json"), is_path("tasks/../../x"), is_path("/etc/passwd")
        (True, False, False)
    """
    return isinstance(text, str) and all(map(is_part, text.split("/")))


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or lies below it, by name alone.

    Example:
        >>> is_below("/app/src", "/app"), is_below("/app", "/app"), is_below("/apple", "/app")
        (True, True, False)
    """
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def path_in(text: object) -> str:
    """A relative path that leads nowhere else, where a text is one.

    Raises:
        ValueError: it is none.
    """
    if not is_path(text):
        raise ValueError(f"found {text!r}, expected a relative path without '..'")
    return str(text)


def part(text: object) -> str:
    """A name, where it can be one.

    Raises:
        StoreError: it cannot.

    Example:
        >>> part("fix-login")
        'fix-login'
    """
    if not is_part(text):
        raise StoreError(f"{text!r} cannot name a file: expected one name, without '/' or '..'")
    return str(text)


def path(root: str | os.PathLike[str], *names: object) -> str:
    """A path below a folder.

    Args:
        root: the folder.
        names: one name each, or relative paths.

    Raises:
        StoreError: one of them would lead elsewhere.

    Example:
        >>> path("/p/.loki", "tasks", "fix-login")
        '/p/.loki/tasks/fix-login'
    """
    for name in names:
        if not is_path(name):
            raise StoreError(
                f"{name!r} does not lie below {os.fspath(root)}: expected a plain name"
            )
    return os.path.join(root, *map(str, names))


@contextlib.contextmanager
def parent(root: str | os.PathLike[str], name: str) -> Iterator[tuple[int, str]]:
    """Handle of the folder that a path's last name is in, and that name; reached without links.

    Args:
        root: a folder, itself reached by whatever links lead to it.
        name: a path relative to it.

    Raises:
        OSError: it is no plain relative path, a folder is not there, or a link is in the way.
    """
    if not is_path(name):
        raise OSError(errno.EINVAL, "is no plain relative path", name)
    *folders, last = name.split("/")
    handle = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle, last
    finally:
        os.close(handle)


# --- Removal ----------------------------------------------------------------------------------------


def remove(root: str | os.PathLike[str], name: str, keep: str = "") -> None:
    """Remove a file below a folder if it is there, and the folders between that are empty then.

    Args:
        root: the folder.
        name: a path relative to it.
        keep: a folder that stays, relative likewise; "": none.

    Raises:
        StoreError: it cannot be removed, or a link is in the way.
    """
    with contextlib.suppress(FileNotFoundError), _removing(root, name) as (folder, last):
        os.unlink(last, dir_fd=folder)
        os.fsync(folder)
    _tidy_above(root, name, keep)


def remove_if(
    root: str | os.PathLike[str],
    name: str,
    is_expected: Callable[[os.stat_result], bool],
    keep: str = "",
) -> bool:
    """Remove a file that others write, too, unless it is another than expected by then.

    Args:
        root, name, keep: as of `remove`.
        is_expected: told what stands there.

    Returns:
        Whether it is gone; if not, what stands there is another program's.

    Raises:
        StoreError: it cannot be removed, or a link is in the way.
    """
    taken = temporary_name()
    is_ours = True
    with contextlib.suppress(FileNotFoundError), _removing(root, name) as (folder, last):
        if not is_expected(os.stat(last, dir_fd=folder)):
            return False
        os.rename(last, taken, src_dir_fd=folder, dst_dir_fd=folder)
        is_ours = is_expected(os.stat(taken, dir_fd=folder))
        if not is_ours:
            with contextlib.suppress(FileExistsError):  # then there is a newer one
                os.link(taken, last, src_dir_fd=folder, dst_dir_fd=folder)
        os.unlink(taken, dir_fd=folder)
        os.fsync(folder)
    if is_ours:
        _tidy_above(root, name, keep)
    return is_ours


@contextlib.contextmanager
def _removing(root: str | os.PathLike[str], name: str) -> Iterator[tuple[int, str]]:
    """`parent` of what is to be removed; what the system refuses is told, but that nothing is there."""
    try:
        with parent(root, name) as found:
            yield found
    except FileNotFoundError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            why = "a link or a file is in the way: expected folders"
        raise StoreError(f"could not remove {os.path.join(root, name)}: {why}") from error


def _tidy_above(root: str | os.PathLike[str], name: str, keep: str) -> None:
    """Remove the folders above a file that is gone, as long as they are empty."""
    with contextlib.suppress(OSError):  # not empty, or somebody else was quicker
        while (above := name.rpartition("/")[0]) not in {"", keep}:
            name = above
            with parent(root, name) as (folder, last):
                os.rmdir(last, dir_fd=folder)


def remove_tree(root: str | os.PathLike[str], name: str) -> None:
    """Remove what is at a path below a folder of loki's own, with all in it, however deep; whatever can be.

    Args:
        root: a workspace's folder, ``.loki``, or the folder of this user's scratch folders.
        name: a path relative to it; nothing need be there. A link is removed, never followed.

    Raises:
        StoreError: ``root`` is no folder of loki's own, a link is in the way, or something in it
            cannot be removed; all else is gone then.
    """
    if not _OWN.fullmatch(os.path.basename(os.path.abspath(root))):
        raise StoreError(
            f"would not remove {name!r} in {os.fspath(root)}: expected a folder of loki's own, "
            f".loki or {scratch_name()}"
        )
    with contextlib.suppress(FileNotFoundError), _removing(root, name) as (folder, last):
        _remove_below(folder, last)


def _remove_below(above: int, name: str) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=above)
        return
    trunk = _opened(above, name)
    refused: list[OSError] = []
    try:
        folders = _clear(trunk, trunk, refused)
        while folders:
            folder = folders.pop()
            try:
                branch = _opened(trunk, folder)
                try:
                    folders += _clear(branch, trunk, refused)
                finally:
                    os.close(branch)
                os.rmdir(folder, dir_fd=trunk)
            except OSError as error:
                refused.append(error)
    finally:
        os.close(trunk)
    if refused:
        raise refused[0]
    os.rmdir(name, dir_fd=above)


def _clear(branch: int, trunk: int, refused: list[OSError]) -> list[str]:
    """Remove the files of a folder, and bring its folders up to the trunk; their names there.

    So no depth needs more than two handles, no recursion, and no way back up that could have been
    moved meanwhile. What is mounted in it cannot be moved, and is refused.
    """
    folders = []
    with os.scandir(branch) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        try:
            if not is_folder:
                os.unlink(name, dir_fd=branch)
                continue
            if branch != trunk:
                moved = f".{secrets.token_hex(8)}"
                _rename(name, branch, moved, trunk)
                name = moved  # noqa: PLW2901 - that is its name now
            folders.append(name)
        except OSError as error:
            refused.append(error)
    return folders


def _rename(name: str, branch: int, moved: str, trunk: int) -> None:
    try:
        os.rename(name, moved, src_dir_fd=branch, dst_dir_fd=trunk)
    except PermissionError:  # its own ".." is written, too
        os.close(_opened(branch, name))
        os.rename(name, moved, src_dir_fd=branch, dst_dir_fd=trunk)


def _opened(above: int, name: str) -> int:
    """Handle of a folder that can be emptied: agents leave what cannot, such as module caches."""
    try:
        handle = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        seen = os.open(name, _FOLDER | getattr(os, "O_PATH", 0), dir_fd=above)
        try:
            os.chmod(f"/proc/self/fd/{seen}", _ALL)  # a handle that only points allows no fchmod
        finally:
            os.close(seen)
        handle = os.open(name, _FOLDER, dir_fd=above)
    if os.fstat(handle).st_mode & _ALL != _ALL:
        with contextlib.suppress(OSError):
            os.fchmod(handle, _ALL)
    return handle


def folders(root: str | os.PathLike[str], leave: frozenset[str] = frozenset()) -> Iterator[str]:
    """Paths of a folder and all below it, relative to it (itself: ""), however deep; no link is followed.

    Args:
        root: the folder; what cannot be read in it is passed over.
        leave: names of folders that are left out, with all in them.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        yield folder
        with contextlib.suppress(OSError), os.scandir(os.path.join(root, folder)) as found:
            pending += [
                f"{folder}/{entry.name}" if folder else entry.name
                for entry in found
                if entry.name not in leave and entry.is_dir(follow_symlinks=False)
            ]


def files(
    root: str | os.PathLike[str], start: str = "", refuse: Callable[[OSError], None] | None = None
) -> Iterator[str]:
    """Paths of all files below a folder, relative to it, in no order; no link to a folder is followed.

    Args:
        root: the folder.
        start: a folder below it to begin at; "" is the root.
        refuse: is told why a folder cannot be read; without it such folders are passed over.
    """
    folders = [start]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as found:
                for entry in found:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(name)
                    elif not (entry.is_symlink() and entry.is_dir()):
                        yield name
        except OSError as error:
            # No name of loki's own is too long for the system: what nests so deeply is a stranger's.
            if refuse is not None and error.errno != errno.ENAMETOOLONG:
                refuse(error)


def sweep(root: str | os.PathLike[str], before: float = math.inf) -> None:
    """Remove what writers that were killed left half written, in a folder and below.

    Args:
        root: the folder; what cannot be read or removed is passed over.
        before: seconds since the epoch. Where nobody can tell here whether a file's writer lives (it
            is of another machine, or of a boot before), a later one may still be written. By default
            all go: nobody writes there now.
    """
    for name in files(root):
        last = name.rpartition("/")[2]
        if is_temporary(last) and (before == math.inf or has_ended(last) is not False):
            with contextlib.suppress(OSError), parent(root, name) as (folder, _):
                seen = os.stat(last, dir_fd=folder, follow_symlinks=False)
                if has_ended(last) or seen.st_mtime < before:
                    os.unlink(last, dir_fd=folder)
