"""The imports of a Python file, by its syntax tree."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Sequence

from loki.action.checks.imports.import_statement import Import
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
                    self._add(alias.name, alias, 0, (), optional, typing)
            elif isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                self._add(node.module or "", node, node.level, names, optional, typing)
            else:
                if isinstance(node, ast.Call):
                    self._call(node)
                stack += [
                    (child, optional or may_fail, typing or for_types)
                    for child, may_fail, for_types in _children(node, self.is_deep)
                ]

    def _add(
        self,
        module: str,
        node: ast.AST,
        level: int,
        names: tuple[str, ...],
        optional: bool,
        typing: bool,
    ) -> None:
        line, column = self._place(node)
        if isinstance(node, ast.ImportFrom):
            # The module stands behind "from", dots and blanks; where a backslash parts them, the
            # statement's own begin is near enough.
            found = self.lines[line - 1].find(module or ".", column + 4) if line else -1
            column = found - level * bool(module) + 1 if found >= 0 else column
        self.found.append(Import(module, line, column, level, names, typing, optional))

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in BY_NAME or not node.args:
            return
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value:
            module = first.value
            if all(part.isidentifier() for part in module.split(".")):
                line, column = self._place(first)
                self.found.append(Import(module, line, column, is_optional=True))

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
        return [(child, forgiving, False) for child in inside] + [
            (c, False, False) for c in node.finalbody
        ]
    if isinstance(node, ast.With):
        forgiving = any(
            isinstance(call := item.context_expr, ast.Call) and any(map(_forgives, call.args))
            for item in node.items
        )
        items = node.items if is_deep else ()
        return [(child, forgiving, False) for child in (*items, *node.body)]
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        return [(child, True, False) for child in node.orelse] + [
            (c, False, True) for c in node.body
        ]
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
