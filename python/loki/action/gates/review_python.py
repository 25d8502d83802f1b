"""Faults in Python that its syntax tree shows: swallowed errors, debug leftovers, injection."""

from __future__ import annotations

import ast
import itertools
import re
from typing import TYPE_CHECKING

from loki.action.gate import ADVISORY, BLOCKING
from loki.action.gates.finding import Finding
from loki.action.gates.knowledge import knowledge
from loki.action.gates.python_text import (
    Built,
    Context,
    built,
    dotted,
    imported_modules,
    is_safe,
    parse,
    string_of,
    walk,
    written,
)
from loki.action.gates.review_stub import stub_findings
from loki.action.gates.review_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.addition import Addition

_BROAD = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})
_ELSEWHERE = frozenset({"test", "example", "vendored"})


def python_findings(addition: Addition) -> Iterator[Finding]:
    """What the syntax tree of a whole file shows; nothing where it is no Python."""
    if addition.language is None or addition.language.name != "python":
        return
    tree = parse(addition.after)
    if tree is None:
        return
    review = _Review(addition, tree)
    for node, context in walk(tree):
        yield from review.look(node, context)
    yield from stub_findings(addition, tree)


class _Review:
    def __init__(self, addition: Addition, tree: ast.Module) -> None:
        self.addition = addition
        self.is_elsewhere = bool(addition.places & _ELSEWHERE)
        self.is_script = "script" in addition.places
        self.modules = imported_modules(tree)

    def look(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        """What is wrong with one node."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from self._debugging(node.value, context)
        if self.is_elsewhere:
            return
        if isinstance(node, ast.Try):
            yield from self._swallowed(node, context)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self._suppressed(node, context)
        elif isinstance(node, ast.Call) and not self.is_script:
            yield from self._injected(node, context)

    # --- swallowed errors ---

    def _swallowed(self, node: ast.Try, context: Context) -> Iterator[Finding]:
        for handler in node.handlers:
            kind = _broad(handler.type)
            if not kind or node.orelse or not _does_nothing(handler.body, kind):
                continue
            if self._is_excused(node.body, context) or self._explained(node, handler):
                continue
            if kind == "Exception" and _falls_back(node, context):
                continue
            said = "except:" if handler.type is None else f"except {kind}:"
            description = f"'{said}' drops every error without a word"
            key = written(handler)
            yield self._finding("swallowed", "swallowed_error", handler, description, key=key)

    def _suppressed(self, node: ast.With | ast.AsyncWith, context: Context) -> Iterator[Finding]:
        for item in node.items:
            call = item.context_expr
            if not isinstance(call, ast.Call) or not dotted(call.func).endswith("suppress"):
                continue
            if not any(_broad(argument) for argument in call.args):
                continue
            if self._is_excused(node.body, context) or self._comments(node.lineno - 1, node):
                continue
            description = f"{shown(written(call))} drops every error without a word"
            yield self._finding("suppressed", "swallowed_error", call, description)

    def _is_excused(self, body: list[ast.stmt], context: Context) -> bool:
        """Cleaning up, and probing for what may be missing, may fail."""
        known = knowledge().python
        around = [function.name for function in context.functions]
        if any(known["lenient"].search(n) or known["cleaning"].search(n) for n in around):
            return True
        if all(isinstance(s, (ast.Import, ast.ImportFrom, ast.Assign)) for s in body):
            return True
        calls = [call for s in body for call in ast.walk(s) if isinstance(call, ast.Call)]
        names = [getattr(c.func, "attr", "") or dotted(c.func) for c in calls]
        return any(known["cleaning"].search(name) for name in names)

    def _explained(self, node: ast.Try, handler: ast.ExceptHandler) -> bool:
        return self._comments(handler.lineno - 1, handler) or self._comments(
            node.lineno - 1, node, node.lineno
        )

    def _comments(self, first: int, node: ast.AST, last: int = 0) -> bool:
        """Whether a comment stands in the lines from `first` to the node's last, or behind it."""
        lexed = self.addition.lexed
        last = last or getattr(node, "end_lineno", first)
        after = lexed.span(last + 1, last + 1).lstrip()
        return after.startswith("#") or any(
            first <= lexed.line(begin) <= last for begin, _ in lexed.comments
        )

    # --- debug leftovers ---

    def _debugging(self, call: ast.Call, context: Context) -> Iterator[Finding]:
        known, called = knowledge(), dotted(call.func)
        if called in known.names["debugger_calls"]:
            if "example" in self.addition.places or re.search("debug|pdb", context.name):
                return
            if self.is_script and self.addition.path.find("debug") >= 0:
                return
            description = f"{called}() stops the program"
            fix = "Remove it."
            yield self._finding(
                "debugger", "debug_leftover", call, description, BLOCKING, fix, called
            )
        elif self.is_elsewhere or self.is_script or context.is_program:
            return
        elif called in known.names["debug_calls"] and called.partition(".")[0] in self.modules:
            yield self._finding(
                "debug_call", "debug_leftover", call, f"{called}() is for debugging"
            )
        elif called in known.names["debug_prints"]:
            yield from self._printed(call, context)

    def _printed(self, call: ast.Call, context: Context) -> Iterator[Finding]:
        if any(keyword.arg == "file" for keyword in call.keywords):
            return
        if any(_is_debug_text(argument) for argument in call.args):
            description = f"{shown(written(call))} is for debugging"
            yield self._finding("debug_print", "debug_leftover", call, description)
            return
        printing = knowledge().python["printing"]
        about = f"{context.name} {self.addition.path.rpartition('/')[2]}"
        if "program" in self.addition.places or not context.functions or printing.search(about):
            return
        if not call.args or len(call.args) > 1 or not _is_plain(call.args[0]):
            return
        description = f"{shown(written(call))} in a library"
        yield self._finding("print", "debug_leftover", call, description, unusual=True)

    # --- injection ---

    def _injected(self, call: ast.Call, context: Context) -> Iterator[Finding]:
        known, called = knowledge().names, dotted(call.func)
        method = getattr(call.func, "attr", called)
        first = call.args[0] if call.args else None
        if first is None:
            return
        if called in known["shell_calls"] or (called in known["process_calls"] and _shell(call)):
            yield from self._shell(call, built(first, context))
        elif method in known["sql_methods"]:
            yield from self._sql(call, built(first, context))
        elif called in {"eval", "exec"}:
            yield from self._evaluated(call, first, context)
        elif called in known["loads"]:
            yield from self._loaded(call, called, first)

    def _shell(self, call: ast.Call, command: Built | None) -> Iterator[Finding]:
        safe = knowledge().python["safe_shell"]
        if command is None or all(is_safe(value, safe) for value in command.values):
            return
        description = f"a shell command is put together from values: {shown(command.text)}"
        fix = "Pass a list of arguments, without a shell."
        yield self._finding("shell", "injection", call, description, fix=fix)

    def _sql(self, call: ast.Call, statement: Built | None) -> Iterator[Finding]:
        known = knowledge().python
        if statement is None or not known["sql_text"].search(statement.text[:2_000]):
            return
        if any(is_safe(value, known["safe_sql"]) for value in statement.values):
            return
        description = f"an SQL statement is put together from values: {shown(statement.text)}"
        fix = "Pass the values as parameters of the statement."
        yield self._finding("sql", "injection", call, description, fix=fix)

    def _evaluated(self, call: ast.Call, first: ast.expr, context: Context) -> Iterator[Finding]:
        is_tainted = knowledge().python["tainted"].search(written(first)) is not None
        is_parameter = (
            dotted(call.func) == "eval"
            and len(call.args) == 1
            and not call.keywords
            and isinstance(first, ast.Name)
            and bool(context.functions)
            and first.id in _parameters(context.functions[-1])
        )
        if is_tainted or is_parameter:
            description = f"{shown(written(call))} runs what it is given as code"
            fix = "Parse the value, as ast.literal_eval() does for literals."
            yield self._finding("eval", "injection", call, description, fix=fix)

    def _loaded(self, call: ast.Call, called: str, first: ast.expr) -> Iterator[Finding]:
        if called == "yaml.load":
            loaders = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "Loader")]
            unsafe = {"yaml.Loader", "yaml.UnsafeLoader"}
            is_unsafe = not loaders or dotted(loaders[0]) in unsafe
            if "yaml" in self.modules and is_unsafe and len(call.keywords) <= 1:
                description = "yaml.load() makes any object that the text asks for"
                fix = "Use yaml.safe_load()."
                yield self._finding("yaml", "injection", call, description, fix=fix)
        elif knowledge().python["tainted"].search(written(first)):
            description = f"{called}() runs code that the data brings along"
            yield self._finding("pickle", "injection", call, description, fix="Use JSON.")

    def _finding(
        self,
        rule: str,
        concern: str,
        node: ast.expr | ast.ExceptHandler,
        description: str,
        severity: str = ADVISORY,
        fix: str = "",
        key: str = "",
        unusual: bool = False,
    ) -> Finding:
        where = (node.lineno, node.col_offset + 1, node.end_lineno or node.lineno)
        key = " ".join((key or written(node)).split())
        path = self.addition.path
        return Finding(rule, concern, path, *where, description, severity, fix, key, unusual)


def _broad(kind: ast.expr | None) -> str:
    if kind is None:
        return "BaseException"
    if isinstance(kind, ast.Tuple):
        return next((name for item in kind.elts if (name := _broad(item))), "")
    name = dotted(kind)
    return name.rpartition(".")[2] if name in _BROAD else ""


def _does_nothing(body: list[ast.stmt], kind: str) -> bool:
    for statement in body:
        if isinstance(statement, ast.Return) and kind == "BaseException":
            if statement.value is not None and not isinstance(statement.value, ast.Constant):
                return False
        elif isinstance(statement, ast.Expr):
            if not isinstance(statement.value, ast.Constant):
                return False
        elif not isinstance(statement, (ast.Pass, ast.Continue)):
            return False
    return True


def _falls_back(node: ast.Try, context: Context) -> bool:
    """``try: return a`` with another answer behind it is a choice, not an oversight."""
    is_last = bool(context.block) and context.block[-1] is node
    return isinstance(node.body[-1], ast.Return) and not is_last


def _is_plain(argument: ast.expr) -> bool:
    return isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript)) or (
        isinstance(argument, ast.Call) and dotted(argument.func) in {"len", "type", "repr", "str"}
    )


def _is_debug_text(argument: ast.expr) -> bool:
    if isinstance(argument, ast.JoinedStr):
        return _echoes(argument) or (bool(argument.values) and _is_debug_text(argument.values[0]))
    if isinstance(argument, ast.BinOp) and isinstance(argument.op, (ast.Mult, ast.Add, ast.Mod)):
        text = string_of(argument.left)
        is_rule = text is not None and re.fullmatch(r"[=\-#*~>]{1,3}", text) is not None
        return is_rule or (not isinstance(argument.op, ast.Mult) and _is_debug_text(argument.left))
    text = string_of(argument)
    return text is not None and knowledge().python["debug_text"].search(text) is not None


def _echoes(text: ast.JoinedStr) -> bool:
    """``f"{x=}"``: the parser writes it as the literal ``x=`` and the value by `repr`."""
    return any(
        isinstance(value, ast.FormattedValue)
        and value.conversion == ord("r")
        and (string_of(head) or "").endswith(f"{written(value.value)}=")
        for head, value in itertools.pairwise(text.values)
    )


def _shell(call: ast.Call) -> bool:
    return any(
        k.arg == "shell" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    arguments = function.args
    return frozenset(
        a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )
