"""The imports of a file, whatever its language."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from loki.action.checks.imports import go_imports, javascript_imports, python_imports
from loki.action.checks.imports.project_files import Import

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
