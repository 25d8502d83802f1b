"""The newest lines of an agent's transcript, which is JSON by line; never all of a long one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

NEWEST = 1 << 20
"""Bytes of a transcript's end that are looked at; chosen, not measured."""


def newest(path: str, holding: str) -> Iterator[dict[str, Any]]:
    """Lines of a transcript's end that hold a text, the newest first; none where it cannot be read.

    Args:
        path: the transcript.
        holding: what stands in such a line, as it is written.
    """
    if not path:
        return
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - NEWEST))
            data = file.read(NEWEST)
    except (OSError, ValueError):
        return
    mark = holding.encode()
    for line in reversed(data.split(b"\n")):
        if mark not in line:
            continue
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue  # torn, or cut at the beginning
        if isinstance(said, dict):
            yield said
