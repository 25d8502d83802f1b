"""Python read as a tree, whatever stands in it."""

from __future__ import annotations

import ast
import warnings


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
