"""What leads from a project as it is back to how a task found it: the inverse of its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.action.changes.change import file_diff
from loki.action.changes.journal_record import Record, Step
from loki.action.changes.journal_storage import JournalStorage
from loki.action.changes.transaction import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from loki.action.changes.safe_path import PathState, SafeFolder


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo did.

    Attributes:
        restored: paths that are again as they were before the task.
        conflicts: paths that somebody else has changed; where there are any and nobody insisted,
            nothing was restored at all.
        damaged: a sentence about each record that cannot be read.
    """

    restored: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetChange:
    """What the records say about one path, from first to last.

    Attributes:
        start: what it was before the task.
        end: what the task has made of it.
        is_foreign: not every record began where the one before it had ended: somebody else
            changed the path in between.
    """

    start: PathState | None
    end: PathState | None
    is_foreign: bool = False


def net(records: Iterable[Record]) -> dict[str, NetChange]:
    """What the applied records have done, by path; what an undo took back is forgotten."""
    found: dict[str, NetChange] = {}
    for record in records:
        for step in record.steps if record.stage == "applied" else ():
            known = found.get(step.path)
            if known is None:
                found[step.path] = NetChange(step.before, step.after)
            elif step.after == known.start and record.kind == "undo":
                del found[step.path]
            else:
                is_foreign = known.is_foreign or known.end != step.before
                found[step.path] = NetChange(known.start, step.after, is_foreign)
    return found


def kinds(known: Mapping[str, NetChange]) -> dict[str, str]:
    """How each path that is different was changed: created, modified or deleted."""
    return {
        path: "created" if one.start is None else "modified" if one.end else "deleted"
        for path, one in known.items()
        if one.start != one.end
    }


def diff(known: Mapping[str, NetChange], get: Callable[[str], bytes | None]) -> str:
    """A unified diff of what was done, for people to read.

    Args:
        known: by path, as `net` gives it.
        get: the content of a hash.
    """
    parts = []
    for path, one in sorted(known.items()):
        if one.start != one.end:
            old, new = (get(state.hash) if state else None for state in (one.start, one.end))
            parts.append(file_diff(path, old, new))
    return "".join(parts)


def before(
    known: Mapping[str, NetChange], get: Callable[[str], bytes | None]
) -> dict[str, tuple[PathState, bytes] | None]:
    """What the paths that are different were before; None: nothing was there.

    Args:
        known: by path, as `net` gives it.
        get: the content of a hash; a path whose content is missing is left out.
    """
    found: dict[str, tuple[PathState, bytes] | None] = {}
    for path, one in known.items():
        content = get(one.start.hash) if one.start else None
        if one.start == one.end:
            continue
        if one.start is None:
            found[path] = None
        elif content is not None:
            found[path] = (one.start, content)
    return found


def steps_to_start(
    records: Iterable[Record], place: SafeFolder, storage: JournalStorage, *, force: bool
) -> tuple[list[Step], list[Conflict], dict[str, bytes]]:
    """How to get back to the start.

    Args:
        records: of the task.
        place: the project.
        storage: where its contents are kept.
        force: go back over what somebody else has done, too.

    Returns:
        The steps, the paths where somebody else has changed something or the content to go back to
        is missing, and what the paths of the steps hold now, by hash.
    """
    steps: list[Step] = []
    conflicts: list[Conflict] = []
    contents: dict[str, bytes] = {}
    for path, known in sorted(net(records).items()):
        try:
            found = place.read(path)
        except OSError as error:
            conflicts.append(Conflict(path, f"cannot be read: {error.strerror or error}"))
            continue
        present = found[0] if found else None
        if present == known.start:
            continue
        can_restore = known.start is None or storage.get(known.start.hash) is not None
        reason = _objection(present, known)
        if not can_restore:
            conflicts.append(Conflict(path, "what it was before is missing or damaged"))
        elif reason:
            conflicts.append(Conflict(path, reason))
        if can_restore and (force or not reason):
            steps.append(Step(path, present, known.start))
            contents.update({found[0].hash: found[1]} if found else {})
    return steps, conflicts, contents


def _objection(present: PathState | None, known: NetChange) -> str:
    if present != known.end:
        return "somebody has changed it since" if present else "somebody has deleted it since"
    return "somebody changed it between two attempts" if known.is_foreign else ""
