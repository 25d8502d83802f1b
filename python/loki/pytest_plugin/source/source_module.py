"""Python files of a project, and what the names in them mean, as far as that stands in their text.

Nothing is imported or run.
"""

from __future__ import annotations

import ast
import builtins
import posixpath
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from loki.base.python_tree import python_tree
from loki.recognition.failure import is_test_path

ROOTS = ("src", "lib", "python", "")
"""Folders that are usually on Python's path, besides those above the importing file."""

DEEPEST = 20
"""Steps from a name to what it means: more are a circle. Chosen."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function or method that the project defines.

    Attributes:
        module: the file it stands in.
        node: its definition.
        owner: its class, or None.
    """

    module: Module
    node: FunctionNode
    owner: ast.ClassDef | None = None


@dataclass(frozen=True)
class Class:
    """A class that the project defines."""

    module: Module
    node: ast.ClassDef

    def member(self, name: str, steps: int = 0) -> Function | None:
        """A method or property by its name, its base classes' too."""
        for node in self.node.body:
            if isinstance(node, FunctionNode) and node.name == name:
                return Function(self.module, node, self.node)
        for base in self.node.bases if steps < DEEPEST else ():
            known = self.module.meaning(base)
            if isinstance(known, Class) and (found := known.member(name, steps + 1)):
                return found
        return None


@dataclass(frozen=True)
class Value:
    """What else a name stands for: an expression in a file."""

    module: Module
    node: ast.expr


@dataclass(frozen=True)
class Library:
    """Something that is not the project's: built in, or installed."""


Meaning = Function | Class | Value | Library
"""What a name may mean; a module of the project is a `Module`."""

LIBRARY = Library()


class Module:
    """A file of the project, parsed.

    Args:
        path: relative to the project, with ``/``.
        tree: what it says.
        sources: where others are found.
    """

    def __init__(self, path: str, tree: ast.Module, sources: Sources) -> None:
        self.path = path
        self.tree = tree
        self.sources = sources
        self.is_test = is_test_path(path)

    @cached_property
    def names(self) -> dict[str, tuple[ast.AST, ast.alias | None]]:
        """What is bound at its top level: the statement, and of an import which part."""
        return dict(bound(self.tree.body))

    @cached_property
    def _stars(self) -> list[ast.ImportFrom]:
        """Imports of all names of a module, the last one first: it counts."""
        found = [node for name, (node, _) in bound(self.tree.body) if name == "*"]
        return [node for node in reversed(found) if isinstance(node, ast.ImportFrom)]

    def function(self, names: Sequence[str]) -> Function | None:
        """A test by the names in its node id: classes, then the function."""
        body, owner = self.tree.body, None
        for name in names[:-1]:
            owner = next((o for o in body if isinstance(o, ast.ClassDef) and o.name == name), None)
            if owner is None:
                return None
            body = owner.body
        found = [o for o in body if isinstance(o, FunctionNode) and o.name == names[-1]]
        return Function(self, found[-1], owner) if found else None

    def meaning(
        self,
        expression: ast.expr,
        local: dict[str, tuple[ast.AST, ast.alias | None]] | None = None,
    ) -> Meaning | Module | None:
        """What a name, or names with dots between them, mean here; None: that cannot be said.

        Args:
            expression: the names.
            local: what a function binds by imports of its own.
        """
        if isinstance(expression, ast.Name):
            if local and expression.id in local:
                return self._bound(*local[expression.id], 0)
            return self.named(expression.id)
        if isinstance(expression, ast.Attribute):
            known = self.meaning(expression.value, local)
            if isinstance(known, Module):
                return known.named(expression.attr) or known.below(expression.attr)
            if isinstance(known, Class):
                return known.member(expression.attr)
            return LIBRARY if isinstance(known, Library) else None
        return None

    def named(self, name: str, steps: int = 0) -> Meaning | Module | None:
        """What a name means at the top level of this file."""
        if steps >= DEEPEST:
            return None
        if name in self.names:
            return self._bound(*self.names[name], steps)
        for node in self._stars:
            module = self.sources.imported(node.module or "", self.path, node.level)
            found = module.named(name, steps + 1) if isinstance(module, Module) else None
            if found is not None and found != LIBRARY:
                return found
        return LIBRARY if hasattr(builtins, name) else None

    def below(self, name: str) -> Module | None:
        """A module of this package."""
        if posixpath.basename(self.path) != "__init__.py":
            return None
        return self.sources.file_of(posixpath.join(posixpath.dirname(self.path), name))

    def _bound(self, node: ast.AST, alias: ast.alias | None, steps: int) -> Meaning | Module | None:
        if alias is not None:
            return self._imported(node, alias, steps)
        if isinstance(node, FunctionNode):
            return Function(self, node)
        if isinstance(node, ast.ClassDef):
            return Class(self, node)
        if isinstance(node, ast.Name):  # another name for it
            return self.named(node.id, steps + 1)
        return Value(self, node) if isinstance(node, ast.expr) else None

    def _imported(self, node: ast.AST, alias: ast.alias, steps: int) -> Meaning | Module | None:
        if isinstance(node, ast.ImportFrom):
            module = self.sources.imported(node.module or "", self.path, node.level)
            if not isinstance(module, Module):
                return module
            return module.named(alias.name, steps + 1) or module.below(alias.name)
        wanted = alias.name if alias.asname else alias.name.partition(".")[0]
        return self.sources.imported(wanted, self.path, 0)


def bound(body: Iterable[ast.stmt]) -> Iterator[tuple[str, tuple[ast.AST, ast.alias | None]]]:
    """What statements bind, those in ``if``, ``try`` and ``with`` included; later ones count.

    Args:
        body: of a module or function.
    """
    for node in body:
        if isinstance(node, (FunctionNode, ast.ClassDef)):
            yield node.name, (node, None)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name
                yield name if alias.asname else name.partition(".")[0], (node, alias)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            yield from ((name, (node.value, None)) for name in names if node.value is not None)
        else:
            for part in ("orelse", "handlers", "finalbody", "body"):  # what comes first counts last
                for inner in getattr(node, part, ()):
                    is_handler = isinstance(inner, ast.ExceptHandler)
                    yield from bound(inner.body if is_handler else [inner])


class Sources:
    """Reads and parses a project's Python files, each once.

    Args:
        read: the text of a file, by its path relative to the project; None where it cannot be read.
        roots: more folders that modules are looked for in.
    """

    def __init__(self, read: Callable[[str], str | None], roots: Iterable[str] = ()) -> None:
        self._read = read
        self._roots = tuple(dict.fromkeys((*roots, *ROOTS)))
        self._texts: dict[str, str | None] = {}
        self._modules: dict[str, Module | None] = {}

    def text(self, path: str) -> str | None:
        """What stands in a file."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def module(self, path: str) -> Module | None:
        """A file, parsed; None where it is not there or no Python."""
        if path not in self._modules:
            text = self.text(path)
            tree = python_tree(text) if text is not None else None
            self._modules[path] = Module(path, tree, self) if tree is not None else None
        return self._modules[path]

    def file_of(self, base: str) -> Module | None:
        """The file of a module, by its path without an ending."""
        return next(filter(None, map(self.module, _files(base))), None)

    def imported(self, dotted: str, importer: str, level: int) -> Module | Library | None:
        """The module that an import names; None: one of the project that is not found.

        Args:
            dotted: its name.
            importer: path of the importing file.
            level: dots before the name.
        """
        parts = dotted.split(".") if dotted else []
        if level:
            folder = importer
            for _ in range(level):
                folder = posixpath.dirname(folder)
            return self.file_of(posixpath.join(folder, *parts))
        if not parts or parts[0] in sys.stdlib_module_names:
            return LIBRARY
        for root in (*_above(importer), *self._roots):
            module = self.file_of(posixpath.join(root, *parts))
            tops = map(self.text, _files(posixpath.join(root, parts[0])))
            if module is not None or any(text is not None for text in tops):
                return module
        return LIBRARY


def _files(base: str) -> tuple[str, str]:
    """Where a module may be."""
    return f"{base}.py", posixpath.join(base, "__init__.py")


def conftests(path: str) -> Iterator[str]:
    """Paths of the ``conftest.py`` that count for a file, the nearest first.

    Example:
        >>> list(conftests("tests/test_a.py"))
        ['tests/conftest.py', 'conftest.py']
    """
    for folder in _above(path):
        yield posixpath.join(folder, "conftest.py")


def _above(path: str) -> Iterator[str]:
    while path:
        path = posixpath.dirname(path)
        yield path
