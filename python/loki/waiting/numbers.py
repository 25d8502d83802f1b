"""Numbers for what waits, given out once: a number that was shown never comes to mean something else.

A number belongs to one request, by what it is, what it asks and since when, and not to a place in a
list: an answer to something that has changed, or is over, is told so. Kept in ``state/waiting.json``,
with what a person has seen and wants left as it is.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loki.base.error import StoreError, UsageError
from loki.memory import store as documents
from loki.people.waiting import Waiting

if TYPE_CHECKING:
    from loki.workspace import Workspace

DOCUMENT = "state/waiting.json"

KEPT = 2_000
"""Numbers that are remembered, the last ones; chosen, not measured."""

logger = logging.getLogger("loki")


def numbered(
    workspace: Workspace, there: Sequence[Waiting], *, gives: bool = True
) -> list[Waiting]:
    """What waits, with its numbers.

    Args:
        workspace: the project.
        there: what waits.
        gives: what has no number gets one; else it has 0, and nothing is written.
    """
    given: dict[str, Any] = _read(workspace, workspace.store.get(DOCUMENT))["given"]
    if gives and any(key(one) not in given for one in there):
        given = _give(workspace, there)
    return [replace(one, number=given.get(key(one), (0, ""))[0]) for one in there]


def _give(workspace: Workspace, there: Sequence[Waiting]) -> dict[str, Any]:
    given: dict[str, Any] = {}

    def add(text: str | None) -> str:
        data = _read(workspace, text)
        for one in there:
            if key(one) not in data["given"]:
                data["given"][key(one)] = (data["next"], f"{one.kind} {one.id}")
                data["next"] += 1
        data["given"] = dict(list(data["given"].items())[-max(KEPT, len(there)) :])
        given.update(data["given"])
        return json.dumps(data) + "\n"

    try:
        workspace.store.update(DOCUMENT, add)
    except StoreError as error:
        logger.warning("Could not persist: %s. What waits has no numbers.", error)
    return given


def of_number(workspace: Workspace, there: Sequence[Waiting], number: int) -> Waiting:
    """What a number was given to.

    Raises:
        UsageError: it was given to nothing, or that waits no longer as it was shown.
    """
    known = _read(workspace, workspace.store.get(DOCUMENT))["given"]
    for one in there:
        if known.get(key(one), (0, ""))[0] == number:
            return one
    told = next((name for given, name in known.values() if given == number), "")
    if told:
        raise UsageError(
            f"{number} was {told}, which waits no longer as it was shown: `loki status` shows what does"
        )
    raise UsageError(f"no {number} was shown: `loki status` numbers what waits")


def key(one: Waiting) -> str:
    """What tells a request from every other, and from itself where it asks something else by now."""
    text = "\0".join((one.kind, one.id, one.since, one.asked))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def left(workspace: Workspace) -> frozenset[str]:
    """Keys of what a person wants left as it is."""
    return frozenset(_read(workspace, workspace.store.get(DOCUMENT))["left"])


def leave(workspace: Workspace, one: Waiting) -> None:
    """A person has seen it, and wants it left as it is: it is shown again once it has changed."""

    def add(text: str | None) -> str:
        data = _read(workspace, text)
        data["left"] = [*data["left"], key(one)][-KEPT:]
        return json.dumps(data) + "\n"

    workspace.store.update(DOCUMENT, add)


def _read(workspace: Workspace, text: str | None) -> dict[str, Any]:
    """What is kept; of a file that somebody broke, what can be read of it."""
    data = documents.read(workspace.store, DOCUMENT, text) or {"given": {}, "left": [], "next": 1}
    least = max((number for number, _ in data["given"].values()), default=0) + 1
    return {"next": max(data["next"], least), "given": data["given"], "left": data["left"]}
