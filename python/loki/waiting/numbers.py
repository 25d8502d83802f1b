"""Numbers for what waits, given out once: a number that was shown never comes to mean something else.

A number belongs to one request, by what it is, what it asks and since when, and not to a place in a
list: an answer to something that has changed, or is over, is told so. Kept in ``state/waiting.json``,
with what a person has seen and wants left as it is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loki.base.error import StoreError, UsageError
from loki.memory import store as documents
from loki.people.request import Request
from loki.waiting.kind import Result, Said

if TYPE_CHECKING:
    from loki.workspace import Workspace

DOCUMENT = "state/waiting.json"

KEPT = 2_000
"""Numbers that are remembered, the last ones; chosen, not measured."""

logger = logging.getLogger("loki")


def numbered(
    workspace: Workspace, there: Sequence[Request], *, gives: bool = True
) -> list[Request]:
    """What waits, with its numbers.

    Args:
        workspace: the project.
        there: what waits.
        gives: what has no number gets one; else it has 0, and nothing is written.
    """
    given: dict[str, Any] = _read(workspace, workspace.store.get(DOCUMENT))["given"]
    if gives and any(one.key not in given for one in there):
        given = _give(workspace, there)
    return [replace(one, number=given.get(one.key, (0, ""))[0]) for one in there]


def _give(workspace: Workspace, there: Sequence[Request]) -> dict[str, Any]:
    given: dict[str, Any] = {}

    def add(text: str | None) -> str:
        data = _read(workspace, text)
        for one in there:
            if one.key not in data["given"]:
                data["given"][one.key] = (data["next"], f"{one.kind} {one.id}")
                data["next"] += 1
        data["given"] = dict(list(data["given"].items())[-max(KEPT, len(there)) :])
        given.update(data["given"])
        return json.dumps(data) + "\n"

    try:
        workspace.store.update(DOCUMENT, add)
    except StoreError as error:
        logger.warning("Could not persist: %s. What waits has no numbers.", error)
    return given


def of_number(workspace: Workspace, there: Sequence[Request], number: int) -> Request:
    """What a number was given to.

    Raises:
        UsageError: it was given to nothing, or that waits no longer as it was shown.
    """
    known = _read(workspace, workspace.store.get(DOCUMENT))["given"]
    for one in there:
        if known.get(one.key, (0, ""))[0] == number:
            return one
    told = next((name for given, name in known.values() if given == number), "")
    if told:
        raise UsageError(
            f"{number} was {told}, which waits no longer as it was shown: `loki status` shows what does"
        )
    raise UsageError(f"no {number} was shown: `loki status` numbers what waits")


def left(workspace: Workspace) -> frozenset[str]:
    """Keys of what a person wants left as it is."""
    return frozenset(_read(workspace, workspace.store.get(DOCUMENT))["left"])


def leave(workspace: Workspace, one: Request, _said: Said) -> Result:
    """A person has seen it, and wants it left as it is: it is shown again once it has changed."""

    def add(text: str | None) -> str:
        data = _read(workspace, text)
        data["left"] = [*data["left"], one.key][-KEPT:]
        return json.dumps(data) + "\n"

    workspace.store.update(DOCUMENT, add)
    return Result(f"left as it is: {one.id}; it is shown again once something about it has changed")


def _read(workspace: Workspace, text: str | None) -> dict[str, Any]:
    """What is kept; of a file that somebody broke, what can be read of it."""
    data = documents.read(workspace.store, DOCUMENT, text) or {"given": {}, "left": [], "next": 1}
    least = max((number for number, _ in data["given"].values()), default=0) + 1
    return {"next": max(data["next"], least), "given": data["given"], "left": data["left"]}
