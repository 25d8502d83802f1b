"""A failed call is heard once, also where loki stands in two of an agent's settings; light."""

from __future__ import annotations

import os
from urllib.parse import quote

from loki.base import locks

FOLDER = "state/heard"
"""Where numbers of calls are, in ``.loki/``; a file for each session."""

MAX_CALLS = 64
"""Calls of a session that are remembered, the newest. Chosen, not measured."""


def is_first_report(folder: str, session: str, id_: str) -> bool:
    """Whether nobody has heard of a call yet; of one without a number, and where nothing can be kept, always.

    Args:
        folder: the project's.
        session: as the monitor knows it.
        id_: the agent's number of the call, or "".
    """
    base = os.path.join(folder, ".loki")
    if not id_ or not os.path.isfile(os.path.join(base, ".gitignore")):
        return True
    path = os.path.join(base, FOLDER, quote(session[:80], safe=""))
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "r+b") as file:
            locks.take(handle, timeout=None)
            known = file.read().split(b"\n")
            number = quote(id_[:80]).encode()
            if number in known:
                return False
            if known == [b""]:
                from loki.adapters.hooks.session_cleanup import remove_stale_sessions

                remove_stale_sessions(os.path.dirname(path))
            file.seek(0)
            file.truncate()
            file.write(b"\n".join([*known[-MAX_CALLS:], number]))
    except OSError:
        return True
    return True
