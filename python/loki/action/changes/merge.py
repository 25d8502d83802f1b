"""Bringing what was worked out in a copy into the project: what is asked for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.recognition.failure import Failure


@dataclass(frozen=True, slots=True)
class Merge:
    """Bring the work into the project, all or none; answered by `Merged`."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of it.

    Attributes:
        moved: the project has changed elsewhere since the copy was taken. The copy is of the newer
            project now, the work in it: it has to be checked once more. Nothing has landed yet.
        failure: the work does not fit the project any more. The copy is of the newer project now,
            without the work.
    """

    moved: bool = False
    failure: Failure | None = None
