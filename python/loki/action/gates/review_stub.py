"""Functions in Python that have been named but not written."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from loki.action.gates.finding import Finding
from loki.action.gates.gate import ADVISORY, BLOCKING
from loki.action.gates.python_ast import Context, Function, dotted, string_of, walk, written
from loki.action.gates.review_rules import knowledge
from loki.base.python_tree import python_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.added_lines import Addition

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
        comments = _comments(addition, node)
        is_likely = kind == "pass" or (kind == "return" and not ast.get_docstring(node))
        wanted = "todo_comment" if is_likely or kind == "raise" else "todo_body"
        found = (knowledge().python[wanted].search(comment) for comment in comments)
        comment = next((match[0] for match in found if match), "")
        if had is None:
            had = _bodies(addition.before or "")
        name = f"{context.name}.{node.name}".lstrip(".")
        was_written = had.get(name, False)
        said = _said(kind, comment, bool(comments), was_written, node, context)
        if said is not None:
            description, severity = said
            yield Finding(
                "stub", "unfinished_code", addition.path, node.lineno, node.col_offset + 1,
                node.end_lineno or node.lineno, f"{node.name}() {description}", severity, key=name,
            )  # fmt: skip


def _said(
    kind: str,
    comment: str,
    has_comment: bool,
    was_written: bool,
    node: Function,
    context: Context,
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
    is_bare = kind == "pass" and not (context.functions or node.decorator_list or has_comment)
    is_bare = is_bare and bool(node.args.args)  # what takes nothing may well do nothing
    return ("does nothing", ADVISORY) if is_bare and not is_named_so else None


def _said_of_raise(
    comment: str, was_written: bool, node: Function, context: Context
) -> tuple[str, str] | None:
    known, message = knowledge().python, _message(node)
    if known["excused_text"].search(f"{message} {ast.get_docstring(node) or ''}"):
        return None
    if context.is_optional:
        return None
    if context.classes:
        is_for_later = known["later_text"].search(message) is not None
        return ("is not written", ADVISORY) if is_for_later else None
    if was_written:
        return "is not written any more: it had a body before", BLOCKING
    if known["unfinished_text"].search(message) or comment:
        return "is not written", BLOCKING
    return None if message or node.decorator_list else ("is not written", ADVISORY)


def _is_meant(node: Function, context: Context) -> bool:
    abstract = knowledge().python["abstract_bases"]
    decorators = " ".join(written(decorator) for decorator in node.decorator_list)
    if re.search(r"abstract|overload|override|deprecated|singledispatch", decorators):
        return True
    if any("TYPE_CHECKING" in written(test) for test in context.tests):
        return True
    if not context.classes and [a.arg for a in node.args.args[:1]] in (["self"], ["cls"]):
        return True  # it is put into a class later
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


def _comments(addition: Addition, node: Function) -> list[str]:
    """The comments in the body of a function; what follows it, but is indented, counts."""
    lexed, arguments = addition.lexed, node.args
    ends = [
        node.lineno,
        *(a.end_lineno or 0 for a in ast.walk(arguments) if isinstance(a, ast.expr)),
    ]
    ends += [a.end_lineno or 0 for a in ast.walk(arguments) if isinstance(a, ast.arg)]
    first, last = max(ends), node.end_lineno or node.lineno
    begins = lexed.starts
    begin = bisect_left(lexed.comments, (begins[first - 1], 0))
    found = []
    for start, end in lexed.comments[begin:]:
        line = lexed.line(start)
        column = lexed.column(start) - 1
        if line > last + 1 or (line > last and column <= node.col_offset):
            break
        found.append(lexed.text[start:end])
    return [text for text in found if "pragma" not in text and "noqa" not in text]


def _bodies(before: str) -> dict[str, bool]:
    """Each function of a text, and whether it has a body of its own."""
    tree = python_tree(before)
    if tree is None:
        return {}
    return {
        f"{context.name}.{node.name}".lstrip("."): not _stub_kind(node)
        for node, context in walk(tree)
        if isinstance(node, Function)
    }
