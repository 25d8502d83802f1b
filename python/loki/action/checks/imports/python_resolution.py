"""Which files of the project a Python import names.

Python looks along a path that is set from outside: an installed package, ``src/``, the folder of a
script, what a test runner adds. So every folder is tried that could be on it: first those above the
importing file, then usual roots, then any other one; a false "missing" would be worse than a stray edge.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable

from loki.action.checks.imports.import_location import EXTERNAL, FOUND, MISSING, Location
from loki.action.checks.imports.import_statement import Import
from loki.action.checks.imports.project_files import Files, above

ROOTS = ("src", "lib", "python", "")
"""Folders that are usually on the path, besides those above the importing file."""

SOURCES = (".py", ".pyi", ".pyx")
COMPILED = (".so", ".pyd")


def locate(import_: Import, importer: str, files: Files) -> Location:
    """Where a Python import leads.

    One is missing only where nothing else can be meant: below a package that has an ``__init__``,
    in a folder that is surely on the path. A folder without one may share its name with anything.
    """
    if import_.level:
        return _relative(import_, importer, files)
    first, *rest = import_.module.split(".")
    missing = None
    for root, is_sure in _roots(first, importer, files):
        base = posixpath.join(root, first)
        if _step(base, files) is None:
            continue
        location = _inside(import_, base, rest, files)
        if location.state == FOUND and (location.paths or not rest):
            return location
        if is_sure and location.state == MISSING and _is_package(base, files):
            missing = missing or location
    return missing or Location(EXTERNAL)


def _relative(import_: Import, importer: str, files: Files) -> Location:
    folder = importer
    for _ in range(import_.level):
        if not folder:
            return Location(EXTERNAL)
        folder = folder.rpartition("/")[0]
    location = _inside(import_, folder, import_.module.split(".") if import_.module else [], files)
    if location.state == MISSING and not _is_package(importer.rpartition("/")[0], files):
        return Location(EXTERNAL)  # of no package, as far as can be seen: a sample, a template
    return location


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


def _roots(first: str, importer: str, files: Files) -> Iterable[tuple[str, bool]]:
    """(folder to look for a top-level name in, whether it is surely on the path), likeliest first."""
    tried = dict.fromkeys(
        folder
        for folder in (*above(importer), *ROOTS)
        if not _is_package(folder, files) and files.is_folder(folder)
    )
    yield from ((folder, True) for folder in tried)
    if first in sys.stdlib_module_names:
        return
    found = [path.rpartition("/")[0] for s in SOURCES for path in files.called(first + s)]
    packages = (path.rpartition("/")[0] for path in files.called("__init__.py"))
    found += [p.rpartition("/")[0] for p in packages if p.rpartition("/")[2] == first]
    for folder in dict.fromkeys(found):
        if folder not in tried and not _is_package(folder, files):
            yield folder, False


def _is_package(folder: str, files: Files) -> bool:
    return posixpath.join(folder, "__init__.py") in files
