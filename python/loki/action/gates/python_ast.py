"""Python read as a tree, with what the rules ask of it: names, built texts, comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from loki.action.gates.gate import knowledge

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Context:
    """What stands round a node.

    Attributes:
        functions: those it is in, outermost first.
        classes: likewise.
        block: the statements among which it stands.
        is_optional: in an ``if``, ``try`` or the like, outside of any function.
        is_program: below ``if __name__ == "__main__"``.
        tests: the conditions under which it runs, those of its function only.
        is_handler: it handles an exception.
        is_guarded: in a ``try`` or ``with``, where an exception may be expected.
    """

    functions: tuple[Function, ...] = ()
    classes: tuple[ast.ClassDef, ...] = ()
    block: tuple[ast.stmt, ...] = ()
    is_optional: bool = False
    is_program: bool = False
    tests: tuple[ast.expr, ...] = ()
    is_handler: bool = False
    is_guarded: bool = False

    @property
    def name(self) -> str:
        """The dotted name of the place."""
        return ".".join(node.name for node in (*self.classes, *self.functions))


def walk(tree: ast.Module) -> Iterator[tuple[ast.stmt, Context]]:
    """Every statement with what stands round it; without recursion, as hostile trees are deep."""
    stack: list[tuple[list[ast.stmt], Context]] = [(tree.body, Context())]
    while stack:
        block, context = stack.pop()
        here = replace(context, block=tuple(block))
        for statement in block:
            yield statement, here
            inside = _inside(statement, here)
            stack.extend((below, inside) for below in _below(statement))
            handling = replace(inside, is_handler=True)
            stack.extend((h.body, handling) for h in getattr(statement, "handlers", ()))


def _below(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in _BLOCKS:
        if block := getattr(statement, name, None):
            yield block
    for case in getattr(statement, "cases", ()):
        yield case.body


_BLOCKS = ("body", "orelse", "finalbody")


def expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Every part of a statement that is no statement below it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from ast.walk(child)


def _inside(node: ast.stmt, context: Context) -> Context:
    if isinstance(node, Function):
        functions = (*context.functions, node)
        return replace(context, functions=functions, is_optional=False, tests=(), is_handler=False)
    if isinstance(node, ast.ClassDef):
        return replace(context, classes=(*context.classes, node))
    if isinstance(node, ast.If):
        is_program = context.is_program or _asks_for_main(node.test)
        tests = (*context.tests, node.test)
        return replace(context, is_optional=True, is_program=is_program, tests=tests)
    if isinstance(node, (ast.Try, ast.With, ast.AsyncWith)):
        return replace(context, is_optional=True, is_guarded=True)
    return replace(context, is_optional=True) if isinstance(node, ast.Match) else context


def _asks_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


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


def imports_module(tree: ast.Module, name: str) -> bool:
    """Whether a file imports a module anywhere, or something below it."""
    for node, _ in walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        if any(imported.partition(".")[0] == name for imported in names):
            return True
    return False


def place_of(node: ast.stmt | ast.expr | ast.ExceptHandler) -> tuple[int, int, int]:
    """Line and column where a node begins, from 1, and the line in which it ends."""
    return node.lineno, node.col_offset + 1, node.end_lineno or node.lineno


def string_of(node: ast.AST) -> str | None:
    """The text of a string literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


@dataclass(frozen=True, slots=True)
class Built:
    """A text put together from values: its literal parts, and the values."""

    text: str
    values: tuple[ast.expr, ...]

    @property
    def plain(self) -> str:
        """The text with ``{}`` for each value, however it was put in."""
        text = re.sub(
            r"\{[^{}]{0,80}\}|%\(\w{1,80}\)[a-z]|%[a-z]", "{}", self.text.replace("%%", "")
        )
        return " ".join(text.split())

    @property
    def words(self) -> str:
        """What stays the same where the text is quoted or formatted otherwise."""
        return " ".join(re.findall(r"\w+", self.plain)) or "{}"


def built(node: ast.expr, context: Context) -> Built | None:
    """The text that an expression puts together; None where it does not.

    A name is followed to the one place in its function that assigns it.
    """
    if isinstance(node, ast.Name) and context.functions:
        node = _assigned(node.id, context.functions[-1]) or node
    if isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    ):
        return _sum(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        text = string_of(node.left)
        right = node.right
        values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
        return Built(text, tuple(values)) if text else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        text = string_of(node.func.value) if node.func.attr == "format" else None
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        return Built(text, tuple(values)) if text and values else None
    return None


def _sum(left: ast.expr) -> Built | None:
    parts: list[ast.expr] = []
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
        parts.append(left.right)
        left = left.left
    parts.append(left)
    parts.reverse()
    if not any(string_of(part) or isinstance(part, ast.JoinedStr) for part in parts):
        return None
    text, values = "", []
    for part in parts:
        if isinstance(part, ast.JoinedStr):
            text += "".join(string_of(piece) or "{}" for piece in part.values)
            values += [p.value for p in part.values if isinstance(p, ast.FormattedValue)]
        elif (literal := string_of(part)) is not None:
            text += literal
        else:
            text += "{}"
            values.append(part)
    return Built(text, tuple(values)) if values else None


def _assigned(name: str, function: Function) -> ast.expr | None:
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                found.append(node.value)
        elif (
            isinstance(node, (ast.AugAssign, ast.For, ast.NamedExpr))
            and isinstance(node.target, ast.Name)
            and node.target.id == name
        ):
            return None
    return found[0] if len(found) == 1 else None


def is_safe(value: ast.expr, names: re.Pattern[str]) -> bool:
    """Whether a value in a text cannot carry what does not belong there, as far as names tell."""
    if isinstance(value, ast.Call):
        return _is_safe_call(value, names)
    if isinstance(value, ast.IfExp):
        return is_safe(value.body, names) and is_safe(value.orelse, names)
    if isinstance(value, ast.BinOp):
        return is_safe(value.left, names) and is_safe(value.right, names)
    if isinstance(value, ast.Subscript):
        return is_safe(value.value, names)
    last = dotted(value).rpartition(".")[2]
    return isinstance(value, ast.Constant) or (last != "" and names.search(last) is not None)


def _is_safe_call(call: ast.Call, names: re.Pattern[str]) -> bool:
    called = dotted(call.func)
    last = called.rpartition(".")[2] or getattr(call.func, "attr", "")
    if called in knowledge().names["safe_calls"] or names.search(last):
        return True
    return last == "join" and bool(call.args) and names.search(written(call.args[0])) is not None
