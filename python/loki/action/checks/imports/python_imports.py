"""The imports of a Python file, by its syntax tree, and which files of the project they name.

Python looks along a path that is set from outside: an installed package, ``src/``, the folder of a
script, what a test runner adds. So every folder is tried that could be on it: first those above the
importing file, then usual roots, then any other one; a false "missing" would be worse than a stray edge.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from collections.abc import Iterable, Sequence

from loki.action.checks.imports.import_location import EXTERNAL, FOUND, MISSING, Location
from loki.action.checks.imports.project_files import Files, Import, above
from loki.base.python_tree import python_tree

FORGIVING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
"""What one catches to go on without a module."""

BY_NAME = {"import_module", "__import__", "importorskip"}
"""Functions whose first argument is a module's name."""

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_BREAK = re.compile("\r\n|[\r\n]")
_BRANCHES = (ast.If, ast.Match, ast.While, ast.For)


def imports_of(text: str) -> tuple[Import, ...]:
    """What a Python file imports; nothing where it does not parse."""
    tree = python_tree(text)
    if tree is None:
        return ()
    # Expressions hold imports only as calls of these; without any, statements are enough to look at.
    visitor = _Visitor(_BREAK.split(text), any(name in text for name in BY_NAME))
    visitor.walk(tree.body)
    return tuple(sorted(visitor.found, key=lambda i: (i.line, i.column)))


class _Visitor:
    """Walks statements without recursion: a long ``elif`` chain is as deep as it is long."""

    def __init__(self, lines: list[str], is_deep: bool) -> None:
        self.lines, self.is_deep = lines, is_deep
        self.found: list[Import] = []

    def walk(self, body: Iterable[ast.AST]) -> None:
        stack = [(node, False, False) for node in reversed(list(body))]
        while stack:
            node, optional, typing = stack.pop()
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.found.append(
                        Import(alias.name, *self._place(alias), 0, (), typing, optional)
                    )
            elif isinstance(node, ast.ImportFrom):
                self._add_from(node, optional, typing)
            else:
                if isinstance(node, ast.Call):
                    self._call(node)
                stack += [
                    (child, optional or may_fail, typing or for_types)
                    for child, may_fail, for_types in _children(node, self.is_deep)
                ]

    def _add_from(self, node: ast.ImportFrom, optional: bool, typing: bool) -> None:
        module, names = node.module or "", tuple(alias.name for alias in node.names)
        line, column = self._place(node)
        # The module stands behind "from", dots and blanks; where a backslash parts them, the
        # statement's own begin is near enough.
        found = self.lines[line - 1].find(module or ".", column + 4)
        column = found - node.level * bool(module) + 1 if found >= 0 else column
        self.found.append(Import(module, line, column, node.level, names, typing, optional))

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in BY_NAME or not node.args:
            return
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value:
            module = first.value
            if all(part.isidentifier() for part in module.split(".")):
                self.found.append(Import(module, *self._place(first), is_optional=True))

    def _place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column, from 1; the tree counts columns in bytes of UTF-8."""
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        before = text.encode("utf-8", "surrogatepass")[:offset]
        return line, len(before.decode("utf-8", "ignore")) + 1


def _children(node: ast.AST, is_deep: bool) -> Sequence[tuple[ast.AST, bool, bool]]:
    """(child, whether it may fail or not run, whether for types only), the last one first."""
    if isinstance(node, ast.Try) or (sys.version_info >= (3, 11) and isinstance(node, ast.TryStar)):
        forgiving = any(_forgives(handler.type) for handler in node.handlers)
        inside = [*node.body, *node.handlers, *node.orelse]
        last = [(child, False, False) for child in node.finalbody]
        return [(child, forgiving, False) for child in inside] + last
    if isinstance(node, ast.With):
        forgiving = any(
            isinstance(call := item.context_expr, ast.Call) and any(map(_forgives, call.args))
            for item in node.items
        )
        items = node.items if is_deep else ()
        return [(child, forgiving, False) for child in (*items, *node.body)]
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        for_types = [(child, False, True) for child in node.body]
        return [(child, True, False) for child in node.orelse] + for_types
    branches = isinstance(node, _BRANCHES)
    if is_deep:
        return [(child, branches, False) for child in ast.iter_child_nodes(node)]
    blocks = (getattr(node, name, None) for name in _BLOCKS)
    return [(c, branches, False) for block in blocks if isinstance(block, list) for c in block]


def _forgives(caught: ast.expr | None) -> bool:
    """Whether an ``except`` with this expression goes on without a module."""
    if caught is None:
        return True
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(getattr(part, "attr", getattr(part, "id", "")) in FORGIVING for part in parts)


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING"


# --- Where an import leads ----------------------------------------------------------------------------

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
    for start in (posixpath.join(base, "__init__"), base):
        if source := _source(start, files):
            return (source,)
    folder, _, stem = base.rpartition("/")
    for name in files.names(folder):
        if name.startswith(stem + ".") and name.endswith(COMPILED):
            return (posixpath.join(folder, name),)
    return () if files.is_folder(base) else None


def _source(base: str, files: Files) -> str | None:
    return next((base + suffix for suffix in SOURCES if base + suffix in files), None)


def _is_open(folder: str, files: Files) -> bool:
    """Whether modules of a package can only be files in its folder, so that one can be missing.

    A module (no folder) may be anything after it has run: ``os.path`` is no file. Nor can a missing
    one be told where the package says itself where to look.
    """
    if not files.is_folder(folder):
        return False
    init = _source(posixpath.join(folder, "__init__"), files)
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
