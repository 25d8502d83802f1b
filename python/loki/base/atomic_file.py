"""The one place that writes files: whole or not at all, on disk when it says so."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from loki.base import locks
from loki.base.error import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


def make_folder(path: str | os.PathLike[str]) -> None:
    """Create a folder and its missing parents, all 0700; one that exists is left as it is.

    Raises:
        StoreError: it cannot be created.
    """
    if os.path.isdir(path):  # as nearly always
        return
    with telling("could not create the folder", path):
        missing = []
        folder = os.path.abspath(path)
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(missing):
            with suppress(FileExistsError):  # somebody else was quicker
                os.mkdir(folder, 0o700)
                sync_folder(os.path.dirname(folder))
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "is a file, not a folder")


def write_atomic(
    path: str | os.PathLike[str],
    data: bytes,
    mode: int = 0o600,
    *,
    of: str = "",
    durable: bool = True,
) -> None:
    """Replace a file: after a crash at any moment it holds all of the old or all of the new.

    Args:
        path: the file; missing folders are created, 0700.
        data: its new content.
        mode: permission bits, whatever the umask says.
        of: for the name of the temporary file, as `temporary_name` takes it.
        durable: whether it must hold all of the old or the new also if the machine, not only this
            process, goes down right after; else its content may be lost then.

    Raises:
        StoreError: it could not be written; the old file is still there.
    """
    path = os.path.abspath(path)
    folder, name = os.path.split(path)
    make_folder(folder)
    temporary = temporary_name(of)
    with telling("could not write", path), _opened(folder, _FOLDER) as handle:
        try:
            write_new(temporary, data, mode, folder=handle, durable=durable)
            if durable or not _exchange(temporary, name, handle):
                os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            remove_quietly(temporary, folder=handle)
            raise
        if durable:
            os.fsync(handle)


RENAME_EXCHANGE = 2
"""Of renameat2(2): both names stay, each with the other's file."""


@cache
def _renameat2() -> Callable[..., int] | None:
    """The call, where there is one: not everywhere is Linux with a newer C library."""
    return getattr(ctypes.CDLL(None), "renameat2", None)


def _exchange(temporary: str, name: str, folder: int) -> bool:
    """Put a file in the place of another in one step, as `os.replace`; whether that could be done.

    ext4 writes a file out at once that a rename puts in the place of another (``auto_da_alloc``), in
    case nobody has brought it to the disk. Who need not wait for the disk is not to wait for that.
    """
    if not _swap(temporary, name, folder):
        return False  # the system cannot, or there is no file yet
    os.unlink(temporary, dir_fd=folder)
    return True


def _swap(one: str, other: str, folder: int) -> bool:
    """Let two files change places in one step; whether that could be done."""
    call, flag = _renameat2(), RENAME_EXCHANGE
    return (
        call is not None and call(folder, os.fsencode(one), folder, os.fsencode(other), flag) == 0
    )


def replace_if(
    path: str | os.PathLike[str],
    data: bytes,
    is_expected: Callable[[os.stat_result | None], bool],
    *,
    durable: bool = False,
) -> bool:
    """Replace a file that others write, too, unless it is another than expected by then.

    The two change places in one step, so that what was displaced is seen: if it is another program's,
    it goes back to where it was.

    Args:
        path: the file; its folder exists.
        data: its new content; its permission bits are 0600.
        is_expected: told what stands there, or None: nothing.
        durable: whether to wait for the disk.

    Returns:
        Whether it was replaced; if not, what stands there is another program's.

    Raises:
        StoreError: it could not be written.
    """
    path = os.path.abspath(path)
    folder, name = os.path.split(path)
    temporary = temporary_name()
    with telling("could not write", path), _opened(folder, _FOLDER) as handle:
        if not is_expected(_look(name, handle)):
            return False
        write_new(temporary, data, 0o600, folder=handle, durable=durable)
        try:
            is_done = _replace_if(temporary, name, handle, is_expected)
        finally:
            remove_quietly(temporary, folder=handle)
        if durable and is_done:
            os.fsync(handle)
        return is_done


def _replace_if(
    temporary: str, name: str, folder: int, is_expected: Callable[[os.stat_result | None], bool]
) -> bool:
    if _look(name, folder) is None:
        try:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        except OSError:  # not everywhere: what comes right now is not seen
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    if not _swap(temporary, name, folder):  # not everywhere: what comes right now is not seen
        if is_ours := is_expected(_look(name, folder)):
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return is_ours
    is_ours = is_expected(_look(temporary, folder))
    if not is_ours:
        _swap(temporary, name, folder)
    return is_ours


def _look(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder)
    except FileNotFoundError:
        return None


def append_line(path: str | os.PathLike[str], data: bytes, *, durable: bool = True) -> None:
    """Add a line to a file; when this returns, the line is on disk, if ``durable``.

    A torn last line (its writer died) is ended first, so that it spoils no line but itself; what
    was written of it stays. Readers skip what they cannot parse.

    Args:
        path: the file; it and missing folders are created, 0600 and 0700.
        data: the line, without line feed.
        durable: whether it must be there if the machine, not only this process, goes down.

    Raises:
        ValueError: the line contains a line feed.
        StoreError: it could not be written; the file is as it was.
    """
    if b"\n" in data:
        raise ValueError("a line cannot contain a line feed: expected one line")
    make_folder(os.path.dirname(os.path.abspath(path)))
    line, flags = data + b"\n", os.O_RDWR | os.O_CREAT | os.O_APPEND
    with locks.hold(path), telling("could not append to", path):
        with _opened(path, flags) as handle:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line
            _add(handle, size, line, durable)
        if size == 0:  # its name, too, may be new
            sync_folder(os.path.dirname(os.path.abspath(path)))


def _add(handle: int, size: int, data: bytes, durable: bool) -> None:
    """Write to the end of a file of ``size`` bytes: all, or nothing."""
    try:
        write_all(handle, data)
        if durable:
            os.fsync(handle)
    except OSError:
        # A full disk: half a line is worse than none. The lock says nobody wrote after us.
        os.ftruncate(handle, size)
        raise


def append_at(path: str | os.PathLike[str], end: int, data: bytes, *, durable: bool = True) -> None:
    """Add bytes to a file whose lock is held; when this returns, they are on disk, if ``durable``.

    Args:
        path: the file; it is created, 0600; its folder exists.
        end: bytes of it that count; what a writer that died left behind them is cut off.
        data: what is added.
        durable: whether they must be there if the machine, not only this process, goes down; the
            next durable bytes bring them along.

    Raises:
        StoreError: it could not be written; the file ends at ``end``.
    """
    with telling("could not append to", path):
        with _opened(path, os.O_WRONLY | os.O_CREAT) as handle:
            if os.fstat(handle).st_size > end:
                os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            _add(handle, end, data, durable)
        if end == 0:  # its name, too, may be new
            sync_folder(os.path.dirname(os.path.abspath(path)))


def scan_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file, one by one, so that its size does not matter; none where there is none.

    Yields:
        A line with its line feed; only a torn last one has none.

    Raises:
        StoreError: it cannot be read.
    """
    with telling("could not read", path), suppress(FileNotFoundError), open(path, "rb") as file:
        yield from file


# --- Steps that writers outside the workspace share -----------------------------------------------


def temporary_name(of: str = "") -> str:
    """A name for a file that is about to be renamed; trees leave such names out.

    Args:
        of: what its name begins with, for whoever looks for such files of one kind.
    """
    return f".loki-{of and f'{of}-'}{locks.mark()}-{secrets.token_hex(8)}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a file name is one that `temporary_name` makes."""
    return name.startswith(".loki-") and name.endswith(".tmp")


def write_new(
    name: str, data: bytes, mode: int, *, folder: int | None = None, durable: bool = True
) -> None:
    """Create a file that must not exist, with exactly these permission bits, and put it on disk.

    Args:
        name: path, relative to ``folder``.
        data: content.
        mode: permission bits.
        folder: descriptor of the folder that ``name`` is relative to; None: the working folder.
        durable: whether to wait for the disk.

    Raises:
        OSError: it could not be written; what there is of it may be left.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with _opened(name, flags, folder) as handle:
        write_all(handle, data)
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            os.fchmod(handle, mode)
        if durable:
            os.fsync(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes: one `os.write` may write fewer than it was given."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def remove_quietly(name: str, *, folder: int | None = None) -> None:
    """Remove a file if it is there and can be removed."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def sync(path: str | os.PathLike[str]) -> None:
    """Put on disk what was written to a file.

    Raises:
        StoreError: it cannot be.
    """
    with telling("could not write", path), _opened(path, os.O_RDONLY) as handle:
        os.fsync(handle)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Put a folder's names on disk: a rename or a new file counts only then."""
    with _opened(path, _FOLDER) as handle:
        os.fsync(handle)


@contextmanager
def _opened(path: str | os.PathLike[str], flags: int, folder: int | None = None) -> Iterator[int]:
    """The descriptor of a file, 0600 where it is created, or of a folder."""
    handle = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def telling(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Say what could not be done to a file, and why, where the system refuses it.

    Args:
        what: how the sentence begins, up to the path.
        path: of the file.

    Raises:
        StoreError: the system refused it.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what} {os.fspath(path)}: {error.strerror or error}") from error
