"""Functions in Python that have been named but not written."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from loki.action.gate import ADVISORY, BLOCKING
from loki.action.gates.finding import Finding
from loki.action.gates.knowledge import knowledge
from loki.action.gates.python_text import Context, Function, dotted, parse, string_of, walk, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.addition import Addition

_SILENT_IN = frozenset({"test", "example", "vendored"})


def stub_findings(addition: Addition, tree: ast.Module) -> Iterator[Finding]:
    """Functions without a body in a file, as far as they are not meant to be so.

    Blocking is one that stands where a body was, and one that says of itself that it is not
    written; a function that only passes may be meant so.
    """
    if addition.places & _SILENT_IN:
        return
    had: dict[str, bool] | None = None
    for node, context in walk(tree):
        if not isinstance(node, Function) or _is_meant(node, context):
            continue
        kind = _stub_kind(node)
        if not kind:
            continue
        comment = _todo(addition, node)
        if had is None:
            had = _bodies(addition.before or "")
        name = f"{context.name}.{node.name}".lstrip(".")
        was_written = had.get(name, False)
        said = _said(kind, comment, was_written, node, context)
        if said is not None:
            description, severity = said
            yield Finding(
                "stub", "unfinished_code", addition.path, node.lineno, node.col_offset + 1,
                node.end_lineno or node.lineno, f"{node.name}() {description}", severity, key=name,
            )  # fmt: skip


def _said(
    kind: str, comment: str, was_written: bool, node: Function, context: Context
) -> tuple[str, str] | None:
    """What to say of a stub, and how sure that is; None: nothing."""
    if kind == "raise":
        return _said_of_raise(comment, was_written, node, context)
    if comment:
        return "has a comment in place of its body", BLOCKING
    is_inner = bool(context.classes or context.is_optional)
    if is_inner or ast.get_docstring(node):
        return None
    if was_written:
        return "does nothing any more: it had a body before", BLOCKING
    is_named_so = knowledge().python["stub_names"].search(node.name) is not None
    if kind != "pass" or is_named_so or context.functions or node.decorator_list:
        return None
    return "does nothing", ADVISORY


def _said_of_raise(
    comment: str, was_written: bool, node: Function, context: Context
) -> tuple[str, str] | None:
    known, message = knowledge().python, _message(node)
    if known["excused_text"].search(f"{message} {ast.get_docstring(node) or ''}"):
        return None
    if context.classes or context.is_optional:
        return None
    if was_written:
        return "is not written any more: it had a body before", BLOCKING
    says_so = known["unfinished_text"].search(message) or comment
    return "is not written", BLOCKING if says_so else ADVISORY


def _is_meant(node: Function, context: Context) -> bool:
    abstract = knowledge().python["abstract_bases"]
    decorators = " ".join(written(decorator) for decorator in node.decorator_list)
    if re.search(r"abstract|overload|override|deprecated|singledispatch", decorators):
        return True
    return any(
        abstract.search(name)
        for cls in context.classes
        for name in (cls.name, *(dotted(b).rpartition(".")[2] for b in cls.bases), *_metaclass(cls))
    )


def _metaclass(cls: ast.ClassDef) -> Iterator[str]:
    for keyword in cls.keywords:
        if keyword.arg == "metaclass":
            yield dotted(keyword.value).rpartition(".")[2]


def _stub_kind(node: Function) -> str:
    """``pass``, ``...``, ``raise``, or ``doc`` where only a docstring is there; "" for no stub."""
    body = [
        s for s in node.body if not (isinstance(s, ast.Expr) and string_of(s.value) is not None)
    ]
    if not body:
        return "doc"
    if len(body) > 1:
        return ""
    only = body[0]
    if isinstance(only, ast.Pass):
        return "pass"
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant):
        return "..." if only.value.value is ... else ""
    if isinstance(only, ast.Raise) and only.exc is not None:
        exception = only.exc.func if isinstance(only.exc, ast.Call) else only.exc
        return "raise" if dotted(exception) == "NotImplementedError" else ""
    is_nothing = isinstance(only, ast.Return) and (
        only.value is None or (isinstance(only.value, ast.Constant) and only.value.value is None)
    )
    return "return" if is_nothing else ""


def _message(node: Function) -> str:
    only = node.body[-1]
    if isinstance(only, ast.Raise) and isinstance(only.exc, ast.Call):
        return " ".join(written(argument) for argument in only.exc.args)
    return ""


def _todo(addition: Addition, node: Function) -> str:
    """The comment in a function that says what is still to be written."""
    text = addition.lexed.span(node.lineno, (node.end_lineno or node.lineno) + 1)
    lines = [line for line in text.split("\n") if line.lstrip().startswith("#") or "#" in line]
    indent = node.col_offset
    for line in lines:
        begin = line.find("#")
        match = knowledge().python["todo_comment"].search(line[begin:])
        if match and begin > indent and "pragma" not in line:
            return match[0]
    return ""


def _bodies(before: str) -> dict[str, bool]:
    """Each function of a text, and whether it has a body of its own."""
    tree = parse(before)
    if tree is None:
        return {}
    return {
        f"{context.name}.{node.name}".lstrip("."): not _stub_kind(node)
        for node, context in walk(tree)
        if isinstance(node, Function)
    }
