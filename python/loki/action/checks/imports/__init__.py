"""What files import, and which files of the project that is; pure, over paths and a function that reads.

`imports_of` extracts (Python, JavaScript, TypeScript, Go); `locate` and `resolve` say which files of the
project an import names. `Files` is the project: paths, and how to read one. JavaScript, TypeScript and Go are
read by tree-sitter's grammars: without that extra (`loki.base.grammar`) their imports are not known.
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
from loki.base.grammar import Grammar, is_installed

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
    "unread",
]

LANGUAGES = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys(javascript_imports.GRAMMARS, "javascript"),
    ".go": "go",
}
"""Language by file extension; TypeScript's imports are JavaScript's."""

_LOCATE: dict[str, Callable[[Import, str, Files], Location]] = {
    "python": python_imports.locate,
    "javascript": node_resolution.locate,
    "go": go_imports.locate,
}


def language_of(path: str) -> str | None:
    """The language whose imports a file has; None where loki cannot know them."""
    return LANGUAGES.get(_extension(path)) if unread(path) is None else None


def unread(path: str) -> Grammar | None:
    """The grammar that is not installed, and without which nobody knows what a file imports."""
    extension = _extension(path)
    grammars = {**javascript_imports.GRAMMARS, ".go": go_imports.GRAMMAR}
    grammar = grammars.get(extension)
    return None if grammar is None or is_installed(grammar) else grammar


def _extension(path: str) -> str:
    return posixpath.splitext(path)[1].lower()


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
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ()
    if language == "python":
        return python_imports.imports_of(text)
    if language == "javascript":
        return javascript_imports.imports_of(path, text.encode())
    return go_imports.imports_of(text.encode()) if language == "go" else ()


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where an import leads.

    Args:
        import_: as `imports_of` gave it.
        importer: path of the file that it stands in; its extension tells the language.
        files: the project.
    """
    language = LANGUAGES.get(_extension(importer))
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
