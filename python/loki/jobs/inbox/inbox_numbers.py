"""Numbers for what waits, given out once: a number that was shown never comes to mean something else.

A number belongs to one request, by what it is, what it asks and since when, and not to a place in a
list: an answer to something that has changed, or is over, is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.jobs.inbox.request_kind import Result, Said
from loki.people.request import Request
from loki.people.request_log import RequestLog

if TYPE_CHECKING:
    from loki.workspace import Workspace


def log_of(workspace: Workspace) -> RequestLog:
    """The log of what waits in a project."""
    return RequestLog(workspace.store, workspace.clock)


def numbered(
    workspace: Workspace, there: Sequence[Request], *, gives: bool = True
) -> list[Request]:
    """What waits, with its numbers.

    Args:
        workspace: the project.
        there: what waits.
        gives: what has no number gets one; else it has 0, and nothing is written.
    """
    wanted = {one.key: f"{one.kind} {one.id}" for one in there} if gives else {}
    given = log_of(workspace).number(wanted)
    return [replace(one, number=given.get(one.key, (0, ""))[0]) for one in there]


def of_number(workspace: Workspace, there: Sequence[Request], number: int) -> Request:
    """What a number was given to.

    Raises:
        UsageError: it was given to nothing, or that waits no longer as it was shown.
    """
    told = {
        key: name for key, (given, name) in log_of(workspace).numbers().items() if given == number
    }
    for one in there:
        if one.key in told:
            return one
    for name in told.values():
        raise UsageError(
            f"{number} was {name}, which waits no longer as it was shown: `loki status` shows what does"
        )
    raise UsageError(f"no {number} was shown: `loki status` numbers what waits")


def leave(workspace: Workspace, one: Request, said: Said) -> Result:
    """A person has seen it, and wants it left as it is: it is shown again once it has changed."""
    log_of(workspace).add("left", one.id, key=one.key, by=said.by)
    return Result(f"left as it is: {one.id}; it is shown again once something about it has changed")
