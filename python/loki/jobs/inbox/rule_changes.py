"""Files that decide, that a command changed and that were put back: a person says whether that was right."""

from __future__ import annotations

import logging
import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.processes.protected_rules import ASIDE, LOG, RestoredRule, State, put
from loki.base import codec, path_containment
from loki.base.error import UsageError
from loki.base.time import isoformat
from loki.execution.assembly import guard
from loki.jobs.inbox.request_kind import Kind, Result, Said
from loki.people.request import Option, Request

if TYPE_CHECKING:
    from loki.jobs.inbox.project_snapshot import ProjectSnapshot
    from loki.workspace import Workspace

logger = logging.getLogger("loki")


def tell(workspace: Workspace, one: RestoredRule) -> None:
    """Tell people of a file that was put back, as the project's ``[notify]`` says."""
    from loki.action.processes.command_guard import restored_text
    from loki.execution.notify_channels import notifier

    notifier(workspace).notify("human_review", restored_text(one), id=one.id, answer="loki status")


def rules(workspace: Workspace, _: ProjectSnapshot) -> list[Request]:
    """What was put back and nobody has looked at yet."""
    return [
        Request(
            one.id,
            "rule",
            os.path.relpath(one.path, workspace.project),
            f"`{one.command}` {'changed' if one.found else 'deleted'} it, which decides how loki or git "
            "work; it was put back. Is it to be as the command left it?",
            one.at,
            (
                Option("no, leave it", f"loki reject {shlex.quote(one.id)}"),
                Option("yes, it was me", f"loki approve {shlex.quote(one.id)}"),
            ),
            page=one.kept,
            target=one.path,
        )
        for one in _open(workspace).values()
    ]


def _answer(workspace: Workspace, one: Request, said: Said, *, accepted: bool) -> Result:
    """Keep a person's answer; what was put back is as the command left it where that was right."""
    put_back = _open(workspace).get(one.id)
    if put_back is None:
        raise UsageError(f"{one.id} waits no longer")
    if accepted:
        _as_it_was_left(workspace, put_back)
    record = {"answered": one.id, "accepted": accepted, "by": said.by}
    workspace.store.append(LOG, {**record, "at": isoformat(workspace.clock.now())})
    how = "is as the command left it" if accepted else "stays as it is"
    return Result(f"{put_back.path} {how}")


def _as_it_was_left(workspace: Workspace, one: RestoredRule) -> None:
    if not one.kept:
        os.unlink(one.path)
        return
    kept = Path(path_containment.path(workspace.folder, one.kept))
    try:
        content, mode = kept.read_bytes(), kept.stat().st_mode & 0o777
    except OSError as error:
        raise UsageError(f"{kept}: cannot be read any more: {error.strerror}") from error
    put(one.path, State("file", content, mode))


def _open(workspace: Workspace) -> dict[str, RestoredRule]:
    found: dict[str, RestoredRule] = {}
    declined: set[str] = set()  # the same change again is put back without a question
    records = workspace.store.records(LOG)
    decides = guard(workspace).rules.decides if records else None
    for record in records:
        if "answered" in record:
            id_ = str(record["answered"])
            found.pop(id_, None)
            (declined.discard if record.get("accepted") else declined.add)(id_)
            continue
        try:
            one = codec.parse(RestoredRule, record)
        except ValueError:
            continue
        if not one.is_asked or one.id in declined:
            continue
        # Whatever a program has written into the log: a person's yes writes or removes nothing else.
        is_kept = not one.kept or (
            one.kept.startswith(f"{ASIDE}/") and path_containment.is_path(one.kept)
        )
        if is_kept and decides is not None and decides(one.path):
            found.setdefault(one.id, one)
        else:
            said = "%s: left out %s: it names %s, expected a file that decides how loki or git work"
            logger.warning(said, LOG, one.id, one.path)
    return found


RULE = Kind(
    "rule changed", rules, partial(_answer, accepted=True), partial(_answer, accepted=False)
)
