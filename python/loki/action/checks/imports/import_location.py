"""Where an import leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["found", "missing", "external"]
FOUND: Final = "found"
MISSING: Final = "missing"
EXTERNAL: Final = "external"


@dataclass(frozen=True, slots=True)
class Location:
    """Where an import leads.

    Attributes:
        state: found: it names files or folders of the project; missing: it can only name something
            of the project, which is not there; external: it names something else.
        paths: the files, the most telling first; empty also for a folder of Python's that has no
            ``__init__``.
        missing: what was looked for: the module, or the name in it, as it is written.
        expected: paths of which one should be there, where it is missing.
    """

    state: State
    paths: tuple[str, ...] = ()
    missing: str = ""
    expected: tuple[str, ...] = ()
