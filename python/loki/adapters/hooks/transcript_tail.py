"""The end of files that agents write: transcripts, which are JSON by line, and what commands print."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

NEWEST = 1 << 20
"""Bytes of a file's end that are looked at; chosen, not measured."""


def end_of(path: str) -> str:
    """The end of a text; "" where it cannot be read."""
    return _end(path).decode("utf-8", "replace")


def _end(path: str) -> bytes:
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - NEWEST))
            return file.read(NEWEST)
    except (OSError, ValueError):
        return b""


def newest(path: str, holding: str) -> Iterator[dict[str, Any]]:
    """Lines of a transcript's end that hold a text, the newest first; none where it cannot be read.

    Args:
        path: the transcript.
        holding: what stands in such a line, as it is written.
    """
    mark = holding.encode()
    for line in reversed(_end(path).split(b"\n")):
        if mark not in line:
            continue
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue  # torn, or cut at the beginning
        if isinstance(said, dict):
            yield said
