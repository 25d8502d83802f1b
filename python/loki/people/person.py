"""Who decides where nobody else is named."""

from __future__ import annotations

import getpass
import os


def user() -> str:
    """The user of this machine, as decisions name them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return f"uid {os.getuid()}"
