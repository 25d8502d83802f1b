"""Folders of the place where an agent works, and what they are here: those of a container."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

from loki.base.error import UsageError

_BEFORE = r"(\x1b\[[0-?]*[ -/]*[@-~]|file://|(?<![\w.~@+%/\\-]))"
"""A colour, or the beginning of an address; else nothing that may belong to a path."""

_AFTER = r"(?=[/\s\"'`:,;)\]>]|\Z)"


def mapped_folders(mapped: Mapping[str, str] | None, root: Path) -> dict[str, str]:
    """Folders there, and the absolute ones that they are here.

    Args:
        mapped: as a person gives them: what they are here is relative to the project.
        root: the project's folder.

    Raises:
        UsageError: one of them is no absolute path, or is ``/``, or what it is here is no path.

    Example:
        >>> mapped_folders({"/workspace/": "."}, Path("/home/me/shop"))
        {'/workspace': '/home/me/shop'}
    """
    found: dict[str, str] = {}
    for there, here in (mapped or {}).items():
        if not isinstance(there, str) or not is_folder_there(there):
            raise UsageError(
                f"mapped: found {there!r}, expected an absolute path of a folder other than /, "
                "such as /workspace"
            )
        if not isinstance(here, str) or "\0" in here:
            raise UsageError(
                f"mapped[{there!r}]: found {here!r}, expected a folder relative to the project, "
                'such as "."'
            )
        found[_plain(there)] = os.path.normpath(os.path.join(root, here))
    return found


def is_folder_there(path: str) -> bool:
    """Whether a path can be mapped.

    Example:
        >>> [is_folder_there(one) for one in ("/app", "/", "", "app", "C:\\\\w")]
        [True, False, False, False, False]
    """
    return path.startswith("/") and "\0" not in path and _plain(path) != "/"


def _plain(path: str) -> str:
    return "/" + posixpath.normpath(path).strip("/")


def as_here(text: str, mapped: Mapping[str, str]) -> str:
    """A text with the folders here for those there, where one begins a path.

    Example:
        >>> as_here("/app/x.py imports /usr/src/app/y.py", {"/app": "/home/me"})
        '/home/me/x.py imports /usr/src/app/y.py'
    """
    there = [one for one in mapped if one in text]
    if not there:
        return text
    names = "|".join(re.escape(one) for one in sorted(there, key=len, reverse=True))
    return re.sub(f"{_BEFORE}({names}){_AFTER}", lambda m: m[1] + mapped[m[2]].rstrip("/"), text)
