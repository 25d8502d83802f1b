"""What is there on the disk, as a question that pure code can be handed."""

from __future__ import annotations

import os
from collections.abc import Callable


def path_exists(root: str | os.PathLike[str]) -> Callable[[str], bool]:
    """Whether a path relative to a folder is there.

    Args:
        root: the folder.

    Example:
        >>> path_exists("/")("usr"), path_exists("/")("no such")
        (True, False)
    """
    base = os.fspath(root)
    return lambda path: os.path.lexists(os.path.join(base, path))
