"""Landlock: what a process and all that it starts may write, and no way back. Linux 5.13 and later.

By system calls, with nothing but the standard library: the supervisor of commands loads this file by its
path, without loki. https://docs.kernel.org/userspace-api/landlock.html, whose numbers these are.

Not restricted by it: reading (unless asked for), chmod and chown, and what another process is asked to
do.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# System calls: the same on all architectures but alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # flag of landlock_create_ruleset: only say which version there is
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38  # prctl(2)

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_MAKE_AND_REMOVE = 0b1_1111_1111 << 4  # REMOVE_DIR … MAKE_SYM
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_SIGNALS = 2

REFER_SINCE, TRUNCATE_SINCE, NETWORK_SINCE, SCOPE_SINCE = 2, 3, 4, 6
"""The first version that knows it."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Which version of Landlock this kernel has; 0: none.

    Example:
        >>> version() >= 0
        True
    """
    if not sys.platform.startswith("linux"):  # elsewhere the number is another call's
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    except (OSError, AttributeError):
        return 0


def rights(known: int) -> int:
    """All that writing is, as far as a version of Landlock knows it.

    Args:
        known: the version.

    Example:
        >>> rights(1) & REFER, bool(rights(2) & REFER), bool(rights(3) & TRUNCATE)
        (0, True, True)
    """
    found = WRITE_FILE | _MAKE_AND_REMOVE
    found |= REFER if known >= REFER_SINCE else 0
    return found | (TRUNCATE if known >= TRUNCATE_SINCE else 0)


def restrict(said: Mapping[str, Any], known: int) -> None:
    """Let this process, and all that it will start, write only here and there; for good.

    Args:
        said: ``write``: paths, each with all below it; ``read``: the same for reading, or None, where all
            may be read; ``network``: whether it may bind and connect TCP sockets.
        known: Landlock's version.

    Raises:
        OSError: it cannot be.
    """
    writing = rights(known)
    handled = writing | (READ_FILE if said["read"] is not None else 0)
    attributes = _Ruleset(handled, 0, 0)
    size = 8
    if known >= NETWORK_SINCE:
        size = 16
        attributes.handled_access_net = 0 if said["network"] else _BIND_TCP | _CONNECT_TCP
    if known >= SCOPE_SINCE:
        size = 24
        attributes.scoped = _SCOPE_SIGNALS
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        _allow(ruleset, said["write"], handled)
        _allow(ruleset, said["read"] or (), READ_FILE)
        if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Sequence[str], access: int) -> None:
    for path in paths:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is not there needs no leave
        try:
            is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
            rule = _PathBeneath(access if is_folder else access & _OF_FILES, handle)
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(handle)


def _call(number: int, *arguments: Any) -> int:
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(_libc().syscall(ctypes.c_long(number), *wide))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, errno.errorcode.get(code, ""))
    return result


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
