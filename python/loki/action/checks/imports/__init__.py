"""What files import, and which files of the project that is; pure, over paths and a function that reads.

`imports_of` extracts (Python, JavaScript, TypeScript, Go); `locate` and `resolve` say which files of the
project an import names. `Files` is the project: paths, and how to read one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from loki.action.checks.imports import (
    go_imports,
    javascript_imports,
    node_resolution,
    python_imports,
)
from loki.action.checks.imports.import_location import EXTERNAL, FOUND, MISSING, Location
from loki.action.checks.imports.project_files import Files, Import

__all__ = [
    "EXTERNAL",
    "FOUND",
    "MISSING",
    "Files",
    "Import",
    "Location",
    "imports_of",
    "language_of",
    "locate",
    "resolve",
]

LANGUAGES = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), "javascript"),
    ".go": "go",
}
"""Language by file extension; TypeScript's imports are JavaScript's."""

_EXTRACT: dict[str, Callable[[str], tuple[Import, ...]]] = {
    "python": python_imports.imports_of,
    "javascript": javascript_imports.imports_of,
    "go": go_imports.imports_of,
}
_LOCATE: dict[str, Callable[[Import, str, Files], Location]] = {
    "python": python_imports.locate,
    "javascript": node_resolution.locate,
    "go": go_imports.locate,
}


def language_of(path: str) -> str | None:
    """The language whose imports a file has; None where loki does not know them."""
    return LANGUAGES.get(posixpath.splitext(path)[1].lower())


def imports_of(path: str, content: bytes) -> tuple[Import, ...]:
    """What a file imports, in the order of the text.

    Args:
        path: tells the language by its extension.
        content: of the file; whatever is in it, nothing is raised. What does not parse, or is not
            UTF-8, imports nothing that can be told.

    Example:
        >>> [i.written for i in imports_of("a.py", b"import os\\nfrom . import b\\n")]
        ['os', '.']
        >>> [(i.module, i.line, i.column) for i in imports_of("a.ts", b"import {x} from './b';")]
        [('./b', 1, 17)]
    """
    language = language_of(path)
    if language is None:
        return ()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ()
    return _EXTRACT[language](text)


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where an import leads.

    Args:
        import_: as `imports_of` gave it.
        importer: path of the file that it stands in; its extension tells the language.
        files: the project.
    """
    language = language_of(importer)
    return _LOCATE[language](import_, importer, files) if language else Location(EXTERNAL)


def resolve(import_: Import, importer: str, files: Files) -> tuple[str, ...]:
    """The files of the project that an import names; none where it names something else.

    Of Python, the module itself or, for names that are modules, those; not the packages above it,
    whose ``__init__`` runs too. Of Go, every file of the package but its tests.

    Args:
        import_: as `imports_of` gave it.
        importer: path of the file that it stands in.
        files: the project.

    Example:
        >>> files = Files(["src/pkg/__init__.py", "src/pkg/a.py", "src/pkg/b.py"], lambda path: b"")
        >>> (import_,) = imports_of("src/pkg/a.py", b"from . import b, VERSION")
        >>> resolve(import_, "src/pkg/a.py", files)
        ('src/pkg/b.py', 'src/pkg/__init__.py')
    """
    return locate(import_, importer, files).paths
