"""Which files of the project an import names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from loki.action.checks.imports.project_files import Files, Import

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


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where an import leads.

    Args:
        import_: as `imports_of` gave it.
        importer: path of the file that it stands in; its extension tells the language.
        files: the project.
    """
    from loki.action.checks.imports import go_imports, node_resolution, python_imports
    from loki.action.checks.imports.import_extraction import language_of

    locators: dict[str, Callable[[Import, str, Files], Location]] = {
        "python": python_imports.locate,
        "javascript": node_resolution.locate,
        "go": go_imports.locate,
    }
    language = language_of(importer)
    return locators[language](import_, importer, files) if language else Location(EXTERNAL)


def resolve(import_: Import, importer: str, files: Files) -> tuple[str, ...]:
    """The files of the project that an import names; none where it names something else.

    Of Python, the module itself or, for names that are modules, those; not the packages above it,
    whose ``__init__`` runs too. Of Go, every file of the package but its tests.

    Args:
        import_: as `imports_of` gave it.
        importer: path of the file that it stands in.
        files: the project.

    Example:
        >>> from loki.action.checks.imports import imports_of
        >>> files = Files(["src/pkg/__init__.py", "src/pkg/a.py", "src/pkg/b.py"], lambda path: b"")
        >>> (import_,) = imports_of("src/pkg/a.py", b"from . import b, VERSION")
        >>> resolve(import_, "src/pkg/a.py", files)
        ('src/pkg/b.py', 'src/pkg/__init__.py')
    """
    return locate(import_, importer, files).paths
