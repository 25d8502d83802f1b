"""What the journal keeps of one thing that was done to a project: which paths, from what to what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from loki.action.changes.safe_path import PathState
from loki.base.path_containment import path_in

Kind: TypeAlias = Literal["change", "command", "undo"]
Stage: TypeAlias = Literal["applying", "running", "applied", "rolled back"]

STAGES = ("applying", "running", "applied", "rolled back")
_VERSION = 1
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Step:
    """What one path was and became; None: nothing was there."""

    path: str
    before: PathState | None
    after: PathState | None

    def reversed(self) -> Step:
        """The step back."""
        return Step(self.path, self.after, self.before)


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that was done to the project.

    Attributes:
        number: counts from 1 within the task.
        kind: an agent's change, a command, or an undo.
        stage: how far it got.
        steps: paths, what they were, what they become. Of a command that is running: every file,
            with what it was.
        made: folders that it creates.
        folders: permission bits of folders that it may remove.
        temporaries: files that exist only while it is being applied.
    """

    number: int
    kind: Kind
    stage: Stage
    steps: tuple[Step, ...] = ()
    made: tuple[str, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict)
    temporaries: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "record": self.number,
            "version": _VERSION,
            "kind": self.kind,
            "stage": self.stage,
            "steps": [
                {"path": s.path, "before": _from_state(s.before), "after": _from_state(s.after)}
                for s in self.steps
            ],
            "made": list(self.made),
            "folders": dict(self.folders),
            "temporaries": list(self.temporaries),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """What `to_dict` gave.

        Raises:
            ValueError: it is damaged, or of a later version.
        """
        try:
            if data["version"] != _VERSION or data["stage"] not in STAGES:
                raise ValueError("of a version that this loki does not know")
            steps = (
                Step(path_in(s["path"]), _to_state(s["before"]), _to_state(s["after"]))
                for s in data["steps"]
            )
            return cls(
                int(data["record"]),
                cast("Kind", data["kind"]),
                cast("Stage", data["stage"]),
                tuple(steps),
                tuple(map(path_in, data["made"])),
                {path_in(path): int(mode) for path, mode in data["folders"].items()},
                tuple(map(path_in, data["temporaries"])),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a record of loki: {error!r}") from error


def _from_state(state: PathState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"hash": state.hash, "mode": f"{state.mode:o}", "symlink": state.is_symlink}


def _to_state(data: Any) -> PathState | None:
    if data is None:
        return None
    if not _HASH.fullmatch(data["hash"]):
        raise ValueError(f"found {data['hash']!r}, expected a SHA-256 in hex")
    return PathState(data["hash"], int(data["mode"], 8), bool(data["symlink"]))
