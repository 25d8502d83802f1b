"""What the journal keeps of one thing that was done to a project: which paths, from what to what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from loki.action.changes.safe_path import PathState
from loki.base import codec
from loki.base.path_containment import path_in

Kind: TypeAlias = Literal["change", "command", "undo"]
Stage: TypeAlias = Literal["applying", "running", "applied", "rolled back"]

STAGES = ("applying", "running", "applied", "rolled back")
_VERSION = 1
_UNSAID = dict.fromkeys(("steps", "made", "folders", "temporaries"), "is missing")


def _inside(folders: Mapping[str, int]) -> Mapping[str, int]:
    return {path_in(path): mode for path, mode in folders.items()}


Inside: TypeAlias = Annotated[str, path_in]
"""A path that leads nowhere else."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one path was and became; None: nothing was there."""

    path: Inside
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
    made: tuple[Inside, ...] = ()
    folders: Annotated[Mapping[str, int], _inside] = field(default_factory=dict)
    temporaries: tuple[Inside, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        said = codec.fields_of(self)
        return {"record": said.pop("number"), "version": _VERSION, **said}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """What `to_dict` gave.

        Raises:
            ValueError: it is damaged, or of a later version.
        """
        if data.get("version") != _VERSION:
            raise ValueError("of a version that this loki does not know")
        found, flaws = codec.read(cls, {**_UNSAID, **data, "number": data.get("record")})
        if found is None or flaws:
            raise ValueError(f"not a record of loki: {flaws[0]}")
        return found
