"""Syntax errors by tree-sitter, for languages whose own parser is not here.

A grammar is an optional package (``pip install loki-core[gates]``); which one a language has stands in
``syntax-check.yml``. https://tree-sitter.github.io/py-tree-sitter/
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from loki.action.gates.data_parsers import Problem

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_BYTES = 2_000_000
"""Of a text that is parsed; chosen, not measured: a second's work."""

_SHOWN = 30


class NoGrammar(Exception):
    """The package with a grammar is not installed."""


def check(package: str, function: str, content: bytes) -> None:
    """Raise a `Problem` at the first place where a text does not fit a grammar.

    Args:
        package: the module that has the grammar.
        function: of it, that gives the grammar.
        content: the text, UTF-8.

    Raises:
        NoGrammar: the grammar, or tree-sitter itself, is not installed.
        Problem: the text does not fit.
    """
    tree = _parser(package, function).parse(content)
    root = tree.root_node
    if not root.has_error:
        return
    node = next(_errors(root), root)
    row, column = node.start_point
    line = content.split(b"\n")[row]
    place = (row + 1, len(line[:column].decode("utf-8", "replace")) + 1)
    raise Problem(_message(node, content), *place)


def has_node(package: str, function: str, content: bytes, kinds: frozenset[str]) -> bool:
    """Whether a text has a piece of one of these kinds."""
    tree = _parser(package, function).parse(content)
    return any(node.type in kinds for node in _walk(tree.root_node))


@cache
def _parser(package: str, function: str) -> Parser:
    try:
        tree_sitter = importlib.import_module("tree_sitter")
        grammar = importlib.import_module(package)
    except ImportError as error:
        raise NoGrammar(str(error)) from None
    parser: Parser = tree_sitter.Parser(tree_sitter.Language(getattr(grammar, function)()))
    return parser


def _errors(root: Node) -> Iterator[Node]:
    """The errors, the first in the text first; of nested ones the innermost."""
    stack = [root]
    while stack:
        node = stack.pop()
        inside = [child for child in node.children if child.has_error or child.is_missing]
        if node.is_missing or (node.is_error and not inside):
            yield node
        stack += reversed(inside)


def _walk(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children


def _message(node: Node, content: bytes) -> str:
    if node.is_missing:
        return f"syntax error: expected {node.type!r}"
    text = content[node.start_byte : node.end_byte].decode("utf-8", "replace")
    first = text.strip().split("\n")[0]
    shown = first if len(first) <= _SHOWN else first[:_SHOWN] + "…"
    return f"syntax error: unexpected {shown!r}" if shown else "syntax error"
