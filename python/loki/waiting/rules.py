"""Files that decide, that a command changed and that were put back: a person says whether that was right."""

from __future__ import annotations

import logging
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.rules import ASIDE, LOG, PutBack, State, put
from loki.base import below
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.people.waiting import Answer, Waiting

if TYPE_CHECKING:
    from loki.waiting.look import Look
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


def tell(workspace: Workspace, one: PutBack) -> None:
    """Tell people of a file that was put back, as the project's ``[notify]`` says."""
    from loki.action.ward import told
    from loki.waiting.notify import notifier

    notifier(workspace).notify("human_review", told(one), id=one.id, answer="loki status")


def rules(workspace: Workspace, _: Look) -> list[Waiting]:
    """What was put back and nobody has looked at yet."""
    return [
        Waiting(
            one.id,
            "rule",
            os.path.relpath(one.path, workspace.project),
            f"`{one.command}` {'changed' if one.found else 'deleted'} it, which decides how loki or git "
            "work; it was put back. Is it to be as the command left it?",
            one.at,
            (
                Answer("no, leave it", f"loki reject {shlex.quote(one.id)}"),
                Answer("yes, it was me", f"loki approve {shlex.quote(one.id)}"),
            ),
            page=one.kept,
            target=one.path,
        )
        for one in _open(workspace).values()
    ]


def answer(workspace: Workspace, id_: str, by: str, *, accepted: bool) -> str:
    """Keep a person's answer; what was put back is as the command left it where that was right.

    Returns:
        What was done.

    Raises:
        UsageError: it waits no longer, or what the command left is gone.
        StoreError, OSError: it could not be written.
    """
    one = _open(workspace).get(id_)
    if one is None:
        raise UsageError(f"{id_} waits no longer")
    if accepted:
        _as_it_was_left(workspace, one)
    record = {"answered": id_, "accepted": accepted, "by": by}
    workspace.store.append(LOG, {**record, "at": isoformat(workspace.clock.now())})
    return f"{one.path} {'is as the command left it' if accepted else 'stays as it is'}"


def _as_it_was_left(workspace: Workspace, one: PutBack) -> None:
    if not one.kept:
        os.unlink(one.path)
        return
    kept = Path(below.path(workspace.folder, one.kept))
    try:
        content, mode = kept.read_bytes(), kept.stat().st_mode & 0o777
    except OSError as error:
        raise UsageError(f"{kept}: cannot be read any more: {error.strerror}") from error
    put(one.path, State("file", content, mode))


def _open(workspace: Workspace) -> dict[str, PutBack]:
    found: dict[str, PutBack] = {}
    declined: set[str] = set()  # the same change again is put back without a question
    records = workspace.store.records(LOG)
    decides = workspace.ward.rules.decides if records else None
    for record in records:
        if "answered" in record:
            id_ = str(record["answered"])
            found.pop(id_, None)
            (declined.discard if record.get("accepted") else declined.add)(id_)
            continue
        try:
            one = PutBack.from_dict(record)
        except ValueError:
            continue
        if not one.is_asked or one.id in declined:
            continue
        # Whatever a program has written into the log: a person's yes writes or removes nothing else.
        is_kept = not one.kept or (one.kept.startswith(f"{ASIDE}/") and below.is_path(one.kept))
        if is_kept and decides is not None and decides(one.path):
            found.setdefault(one.id, one)
        else:
            said = "%s: left out %s: it names %s, expected a file that decides how loki or git work"
            logger.warning(said, LOG, one.id, one.path)
    return found
