"""Which files of the project a Python import names.

Python looks along a path that is set from outside: an installed package, ``src/``, the folder of a
script, what a test runner adds. So every folder is tried that could be on it: first those above the
importing file, then usual roots, then any other one; a false "missing" would be worse than a stray edge.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable

from loki.action.imports.files import Files, above
from loki.action.imports.location import EXTERNAL, FOUND, MISSING, Location
from loki.action.imports.statement import Import

ROOTS = ("src", "lib", "python", "")
"""Folders that are usually on the path, besides those above the importing file."""

SOURCES = (".py", ".pyi", ".pyx")
COMPILED = (".so", ".pyd")


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where a Python import leads."""
    if import_.level:
        return _relative(import_, importer, files)
    first, *rest = import_.module.split(".")
    for root in _roots(first, importer, files):
        reached = _step(posixpath.join(root, first), files)
        if reached is not None:
            return _inside(import_, posixpath.join(root, first), rest, files)
    return Location(EXTERNAL)


def _relative(import_: Import, importer: str, files: Files) -> Location:
    folder = importer
    for _ in range(import_.level):
        if not folder:
            return Location(MISSING, missing=import_.written)
        folder = folder.rpartition("/")[0]
    return _inside(import_, folder, import_.module.split(".") if import_.module else [], files)


def _inside(import_: Import, start: str, rest: list[str], files: Files) -> Location:
    """Follow the rest of a module's name from a module or package that is there."""
    base = start
    for name in rest:
        base = posixpath.join(base, name)
        if _step(base, files) is None:
            if not _is_open(posixpath.dirname(base), files):
                return Location(FOUND, _step(posixpath.dirname(base), files) or ())
            expected = (base + ".py", posixpath.join(base, "__init__.py"))
            return Location(MISSING, (), import_.written, expected)
    module = _step(base, files) or ()
    modules = [
        found for name in import_.names if (found := _step(posixpath.join(base, name), files))
    ]
    paths = [path for found in modules for path in found]
    if len(modules) < len(import_.names) or not import_.names:
        paths += module
    return Location(FOUND, tuple(dict.fromkeys(paths)))


def _step(base: str, files: Files) -> tuple[str, ...] | None:
    """The file of a module or package; () for a folder without one; None where there is neither."""
    for suffix in SOURCES:
        package = posixpath.join(base, "__init__" + suffix)
        if package in files:
            return (package,)
    for suffix in SOURCES:
        if base + suffix in files:
            return (base + suffix,)
    folder, _, stem = base.rpartition("/")
    for name in files.names(folder):
        if name.startswith(stem + ".") and name.endswith(COMPILED):
            return (posixpath.join(folder, name),)
    return () if files.is_folder(base) else None


def _is_open(folder: str, files: Files) -> bool:
    """Whether modules of a package can only be files in its folder, so that one can be missing.

    A module (no folder) may be anything after it has run: ``os.path`` is no file. Nor can a missing
    one be told where the package says itself where to look.
    """
    if not files.is_folder(folder):
        return False
    init = next(
        (c for s in SOURCES if (c := posixpath.join(folder, "__init__" + s)) in files), None
    )
    if init is None:
        return True
    text = files.read(init) or b""
    return not any(word in text for word in (b"__path__", b"sys.modules", b"__getattr__"))


def _roots(first: str, importer: str, files: Files) -> Iterable[str]:
    """Folders to look for a top-level name in, the likeliest first."""
    tried = dict.fromkeys(
        folder
        for folder in (*above(importer), *ROOTS)
        if not _is_package(folder, files) and files.is_folder(folder)
    )
    yield from tried
    if first in sys.stdlib_module_names:
        return
    for name in (f"{first}.py", f"{first}.pyi"):
        for path in files.called(name):
            folder = path.rpartition("/")[0]
            if not _is_package(folder, files) and folder not in tried:
                yield folder
    for path in files.called("__init__.py"):
        package = path.rpartition("/")[0]
        folder, _, name = package.rpartition("/")
        if name == first and not _is_package(folder, files) and folder not in tried:
            yield folder


def _is_package(folder: str, files: Files) -> bool:
    return posixpath.join(folder, "__init__.py") in files
