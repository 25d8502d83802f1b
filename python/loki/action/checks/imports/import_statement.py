"""One import, as it is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Import:
    """What one import statement, or one of its parts, names.

    Attributes:
        module: as it is written, without the dots of a relative Python import: ``pkg.sub``,
            ``./util``, ``example.com/lib``.
        line, column: where the module's name, or its opening quote, stands; both from 1, in
            characters.
        level: number of leading dots of a relative Python import; 0 elsewhere.
        names: what is taken from the module: ``default`` and ``*`` are JavaScript's default export
            and the whole; empty where the module itself is imported.
        is_type_only: erased before the program runs, or looked at by type checkers only.
        is_optional: whether it runs at all, or may fail, depends on more than the file says: in
            ``try``, under a condition, or by way of a function that takes the name as text.
    """

    module: str
    line: int
    column: int
    level: int = 0
    names: tuple[str, ...] = ()
    is_type_only: bool = False
    is_optional: bool = False

    @property
    def written(self) -> str:
        """The module with its leading dots."""
        return "." * self.level + self.module
