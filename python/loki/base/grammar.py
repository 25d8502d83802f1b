"""Texts of other languages read as trees, by tree-sitter's grammars: https://tree-sitter.github.io/py-tree-sitter/

They are an extra; whoever asks says what was not looked at where it is not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Node

INSTALL = "pip install 'loki-core[gates]'"
"""How to get what is missing."""

MAX_BYTES = 2_000_000
"""Of a text that is parsed; chosen, not measured: a second's work."""

MAX_SECONDS = 5.0
"""That a text is parsed for: what is broken may take the square of its length. Chosen, not measured."""


class Grammar(NamedTuple):
    """A module that has a grammar, and its function that gives it."""

    package: str
    function: str = "language"


@cache
def is_installed(grammar: Grammar) -> bool:
    """Whether texts can be read by a grammar; nothing is loaded to find out."""
    return all(importlib.util.find_spec(name) for name in ("tree_sitter", grammar.package))


def parse(grammar: Grammar, content: bytes) -> Node | None:
    """The root of a text's tree, whatever it holds; None where it cannot be read.

    Args:
        grammar: of its language.
        content: UTF-8; what is larger than `MAX_BYTES`, or takes over `MAX_SECONDS`, is not read.
    """
    language = _language(grammar)
    if language is None or len(content) > MAX_BYTES:
        return None
    parser = importlib.import_module("tree_sitter").Parser(language)
    end = time.monotonic() + MAX_SECONDS
    try:
        tree = parser.parse(
            lambda offset, _: content[offset : offset + _CHUNK],
            progress_callback=lambda _, __: time.monotonic() > end,
        )
    except ValueError:  # it was ended
        return None
    root: Node = tree.root_node
    return root


_CHUNK = 4_096  # small, as the text of each node asked is read by it, too
_NEAR = 1_000


def place(node: Node, content: bytes) -> tuple[int, int]:
    """Line and column where a node begins, from 1; the tree counts columns in bytes.

    So does this, of what stands more than `_NEAR` of them before it: a file may be one line.
    """
    start, column = node.start_byte, node.start_point.column
    near = content[start - min(column, _NEAR) : start]
    characters = len(near.decode("utf-8", "replace"))
    return node.start_point.row + 1, column - len(near) + characters + 1


@cache
def _language(grammar: Grammar) -> Language | None:
    if not is_installed(grammar):
        return None
    tree_sitter = importlib.import_module("tree_sitter")
    package = importlib.import_module(grammar.package)
    language: Language = tree_sitter.Language(getattr(package, grammar.function)())
    return language
