"""Functions of Python that have been named but not written."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from loki.action.gates.added_lines import Addition, Finding
from loki.action.gates.gate import BLOCKING
from loki.base.python_tree import Function, dotted, python_tree, string_of, written
from loki.base.yaml_document import Strict, read_beside


class _Knowledge(Strict):
    version: int
    unfinished_text: re.Pattern[str]
    excused_text: re.Pattern[str]
    todo_comment: re.Pattern[str]
    todo_body: re.Pattern[str]
    abstract_bases: re.Pattern[str]


@cache
def _known() -> _Knowledge:
    return read_beside(__file__, "stubs.yml", _Knowledge)


_ELSEWHERE = frozenset({"test", "example", "vendored"})
"""Places in which a function without a body is no fault."""


def stub_findings(addition: Addition) -> Iterator[Finding]:
    """Functions of Python in a file that had a body, or say of themselves that they are not written."""
    is_python = addition.language is not None and addition.language.name == "python"
    if not is_python or addition.places & _ELSEWHERE:
        return
    tree = python_tree(addition.after)
    had: dict[str, bool] | None = None
    for node, context in walk(tree) if tree else ():
        if not isinstance(node, Function) or not (kind := _stub_kind(node)):
            continue
        if had is None:
            had = _bodies(addition.before or "")
        name = f"{context.name}.{node.name}".lstrip(".")
        said = _said(kind, node, context, _comments(addition, node), had.get(name, False))
        if said and not _is_meant(node, context):
            where = (node.lineno, node.col_offset + 1, node.end_lineno or node.lineno)
            description = f"{node.name}() {said}"
            yield Finding(
                "stub", "unfinished_code", addition.path, *where, description, BLOCKING, key=name
            )


def _said(
    kind: str, node: Function, context: Context, comments: list[str], was_written: bool
) -> str:
    """What to say of a stub; "" where it may be meant so."""
    known, is_documented = _known(), ast.get_docstring(node) is not None
    is_inner = bool(context.classes or context.is_optional)
    is_raised = kind == "raise"
    is_bare = kind == "pass" or (kind == "return" and not is_documented)
    wanted = known.todo_comment if is_bare or is_raised else known.todo_body
    is_todo = any(wanted.search(comment) for comment in comments)
    if is_raised:
        message = _message(node)
        told = f"{message} {ast.get_docstring(node) or ''}"
        if is_inner or known.excused_text.search(told):
            return ""
        if is_todo or known.unfinished_text.search(message):
            return "is not written"
    elif is_todo:
        return "has a comment in place of its body"
    if not was_written or is_inner or (is_documented and not is_raised):
        return ""
    return "has no body any more: it had one before"


def _is_meant(node: Function, context: Context) -> bool:
    abstract = _known().abstract_bases
    decorators = " ".join(written(decorator) for decorator in node.decorator_list)
    if re.search(r"abstract|overload|override|deprecated|singledispatch", decorators):
        return True
    if any("TYPE_CHECKING" in written(test) for test in context.tests):
        return True
    if not context.classes and [a.arg for a in node.args.args[:1]] in (["self"], ["cls"]):
        return True  # it is put into a class later
    for cls in context.classes:
        above = [*cls.bases, *(k.value for k in cls.keywords if k.arg == "metaclass")]
        names = (cls.name, *(dotted(node).rpartition(".")[2] for node in above))
        if any(map(abstract.search, names)):
            return True
    return False


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
    lexed = addition.lexed
    arguments = [a for a in ast.walk(node.args) if isinstance(a, (ast.expr, ast.arg))]
    first = max([node.lineno, *(a.end_lineno or 0 for a in arguments)])
    last = node.end_lineno or node.lineno
    begin = bisect_left(lexed.comments, (lexed.starts[first - 1], 0))
    found = []
    for start, end in lexed.comments[begin:]:
        line, column = lexed.line(start), lexed.column(start) - 1
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


# --- Every statement, and what stands round it --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Context:
    """What stands round a statement.

    Attributes:
        functions: those it is in, outermost first.
        classes: likewise.
        is_optional: in an ``if``, ``try`` or the like, outside of any function.
        tests: the conditions under which it runs, those of its function only.
    """

    functions: tuple[Function, ...] = ()
    classes: tuple[ast.ClassDef, ...] = ()
    is_optional: bool = False
    tests: tuple[ast.expr, ...] = ()

    @property
    def name(self) -> str:
        """The dotted name of the place."""
        return ".".join(node.name for node in (*self.classes, *self.functions))


def walk(tree: ast.Module) -> Iterator[tuple[ast.stmt, Context]]:
    """Every statement with what stands round it; without recursion, as hostile trees are deep."""
    stack: list[tuple[list[ast.stmt], Context]] = [(tree.body, Context())]
    while stack:
        block, context = stack.pop()
        for statement in block:
            yield statement, context
            inside = _inside(statement, context)
            stack.extend((below, inside) for below in _below(statement))


def _below(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _inside(node: ast.stmt, context: Context) -> Context:
    if isinstance(node, Function):
        functions = (*context.functions, node)
        return replace(context, functions=functions, is_optional=False, tests=())
    if isinstance(node, ast.ClassDef):
        return replace(context, classes=(*context.classes, node))
    if isinstance(node, ast.If):
        return replace(context, is_optional=True, tests=(*context.tests, node.test))
    is_branch = isinstance(node, (ast.Try, ast.With, ast.AsyncWith, ast.Match))
    return replace(context, is_optional=True) if is_branch else context
