"""The imports of a JavaScript or TypeScript file, by its syntax tree."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from loki.action.checks.imports.project_files import Import
from loki.base.grammar import Grammar, parse, place

if TYPE_CHECKING:
    from tree_sitter import Node

GRAMMARS = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), Grammar("tree_sitter_javascript")),
    **dict.fromkeys(
        (".ts", ".mts", ".cts"), Grammar("tree_sitter_typescript", "language_typescript")
    ),
    ".tsx": Grammar("tree_sitter_typescript", "language_tsx"),
}
"""The grammar by a file's extension."""

_KEYWORD = re.compile(rb"\b(?:require|import|export)\b")
"""Where none of these stands, nothing is imported: such a part of a file need not be looked at."""

_RUNS = frozenset(
    [
        "program",
        "expression_statement",
        "export_statement",
        "lexical_declaration",
        "variable_declaration",
        "variable_declarator",
        "assignment_expression",
        "call_expression",
        "await_expression",
        "member_expression",
        "sequence_expression",
        "as_expression",
        "satisfies_expression",
        "non_null_expression",
    ]
)
"""What stands round a call that surely runs when the file is loaded."""


def imports_of(path: str, content: bytes) -> tuple[Import, ...]:
    """What a file imports: statements, ``require`` and ``import()``."""
    root = parse(GRAMMARS[posixpath.splitext(path)[1].lower()], content)
    if root is None:
        return ()
    found = []
    keywords = [match.start() for match in _KEYWORD.finditer(content)]
    stack = [(root, True)]  # a node, and whether it surely runs
    while stack:
        node, runs = stack.pop()
        source = _source(node)
        if source is not None and (module := _text_of(source)):
            is_call = node.type == "call_expression"
            names, is_type = ((), False) if is_call else _names(node)
            says = (*place(source, content), 0, names, is_type, is_call and not runs)
            found.append(Import(module, *says))
        first = bisect_left(keywords, node.start_byte)
        if first < len(keywords) and keywords[first] < node.end_byte:
            inside = runs and node.type in _RUNS and not _is_caught(node)
            stack += [(child, inside) for child in reversed(node.named_children)]
    return tuple(found)


def _source(node: Node) -> Node | None:
    """The string by which a node imports a module; None where it imports none."""
    if node.type in {"import_statement", "export_statement", "import_require_clause"}:
        return node.child_by_field_name("source")
    if node.type == "call_expression":
        called = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if called and called.text in {b"require", b"import"} and arguments:
            said = (child for child in arguments.named_children if child.type != "comment")
            first = next(said, None)
            return first if first and first.type in {"string", "template_string"} else None
    return None


def _is_caught(node: Node) -> bool:
    name = node.child_by_field_name("property")
    return name is not None and name.text == b"catch"


def _text_of(string: Node) -> str:
    """What a string says; "" where it is put together, or holds escapes, as no module's name does."""
    parts = string.named_children
    if len(parts) != 1 or parts[0].type != "string_fragment":
        return ""
    return (parts[0].text or b"").decode()


def _names(statement: Node) -> tuple[tuple[str, ...], bool]:
    """What a statement takes from the module, and whether it is erased before the program runs."""
    names: list[str] = []
    is_type = any(child.type == "type" for child in statement.children)
    types: list[bool] = []
    for clause in statement.children:
        for part in (clause, *clause.children) if clause.type == "import_clause" else (clause,):
            if part.type == "identifier":
                names.append("default")
            elif part.type in {"namespace_import", "namespace_export", "*"}:
                names.append("*")
            elif part.type in {"named_imports", "export_clause"}:
                for specifier in part.named_children:
                    name = specifier.child_by_field_name("name")
                    if name is not None and name.text is not None:
                        names.append(name.text.decode().strip("'\""))
                        types.append(specifier.children[0].type == "type")
    return tuple(names), is_type or (bool(types) and all(types) and len(types) == len(names))
