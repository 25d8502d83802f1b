"""Python read as a tree, whatever stands in it."""

from __future__ import annotations

import ast
import warnings

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_tree(text: str) -> ast.Module | None:
    """The tree of a text; None where it is no Python.

    Example:
        >>> python_tree("a = 1") is None, python_tree("a = ") is None
        (False, True)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes, which are nobody's mistake here
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` of a name; "" of anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def written(node: ast.AST) -> str:
    """A node as source text; "" where it is too deep."""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return ""


def string_of(node: ast.AST) -> str | None:
    """The text of a string literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
