"""Faults in Python that its syntax tree shows: swallowed errors, debug leftovers, injection."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from loki.action.gates.finding import Finding
from loki.action.gates.gate import ADVISORY, BLOCKING
from loki.action.gates.python_ast import (
    Built,
    Context,
    built,
    dotted,
    expressions,
    imports_module,
    is_safe,
    string_of,
    walk,
    written,
)
from loki.action.gates.review_rules import knowledge
from loki.action.gates.review_stub import stub_findings
from loki.action.gates.review_text import shown
from loki.base.python_tree import python_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.added_lines import Addition

_BROAD = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})
_ECHO = re.compile(r"\{[^{}!:\n\"']{1,80}[\w)\]]\s?=\s?[}!:]")
_SQL_VALUE = re.compile(r"(?:[=<>(,']|\b(?:like|in|values))\s*['\"%(]{0,3}\{\}", re.IGNORECASE)
_ELSEWHERE = frozenset({"test", "example", "vendored"})


def python_findings(addition: Addition) -> Iterator[Finding]:
    """What the syntax tree of a whole file shows; nothing where it is no Python."""
    if addition.language is None or addition.language.name != "python":
        return
    tree = python_tree(addition.after)
    if tree is None:
        return
    review = _Review(addition, tree)
    for statement, context in walk(tree):
        yield from review.look(statement, context)
    yield from stub_findings(addition, tree)


class _Review:
    def __init__(self, addition: Addition, tree: ast.Module) -> None:
        self.addition = addition
        self.is_elsewhere = bool(addition.places & _ELSEWHERE)
        self.is_script = "script" in addition.places
        self.tree = tree
        calls = knowledge().python["injecting"].search(addition.after)
        self.may_inject = calls is not None and not self.is_elsewhere and not self.is_script

    def look(self, node: ast.stmt, context: Context) -> Iterator[Finding]:
        """What is wrong with one statement."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from self._debugging(node.value, context)
        if self.is_elsewhere:
            return
        if isinstance(node, ast.Try):
            yield from self._swallowed(node, context)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self._suppressed(node, context)
        if self.may_inject:
            for part in expressions(node):
                if isinstance(part, ast.Call):
                    yield from self._injected(part, context)

    # --- swallowed errors ---

    def _swallowed(self, node: ast.Try, context: Context) -> Iterator[Finding]:
        for handler in node.handlers:
            kind = _broad(handler.type)
            if not kind or node.orelse or not _does_nothing(handler.body, kind):
                continue
            if self._is_excused(node.body, context) or self._explained(node, handler):
                continue
            # Going on without a word may be meant; so it is told from an oversight by more.
            is_careless = kind != "Exception" or handler.name or self._wraps(node, handler)
            if not is_careless and not _ends_function(node, context):
                continue
            said = "except:" if handler.type is None else f"except {kind}:"
            description = f"'{said}' drops every error without a word"
            key = written(handler)
            yield self._finding("swallowed", "swallowed_error", handler, description, key=key)

    def _wraps(self, node: ast.Try, handler: ast.ExceptHandler) -> bool:
        """Whether code that was there before without a guard has been put into this one."""
        added, last = self.addition.added, node.body[-1].end_lineno or node.lineno
        body = set(range(node.body[0].lineno, last + 1))
        return self.addition.before is not None and handler.lineno in added and not body & added

    def _suppressed(self, node: ast.With | ast.AsyncWith, context: Context) -> Iterator[Finding]:
        for item in node.items:
            call = item.context_expr
            if not isinstance(call, ast.Call) or not dotted(call.func).endswith("suppress"):
                continue
            if not any(_broad(argument) for argument in call.args):
                continue
            if self._is_excused(node.body, context) or self._comments(node.lineno - 1, node):
                continue
            if not _ends_function(node, context) or isinstance(node.body[-1], ast.Return):
                continue
            description = f"{shown(written(call))} drops every error without a word"
            yield self._finding("suppressed", "swallowed_error", call, description)

    def _is_excused(self, body: list[ast.stmt], context: Context) -> bool:
        """Cleaning up, and probing for what may be missing, may fail."""
        known = knowledge().python
        for function in context.functions:
            if known["lenient"].search(function.name) or known["cleaning"].search(function.name):
                return True
            if known["lenient_text"].search(ast.get_docstring(function) or ""):
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
            about = f"{context.name} {self.addition.path}"
            if "example" in self.addition.places or known.python["debugging"].search(about):
                return
            description = f"{called}() stops the program"
            fix = "Remove it."
            yield self._finding(
                "debugger", "debug_leftover", call, description, BLOCKING, fix, called
            )
        elif self.is_elsewhere or self.is_script or context.is_program:
            return
        elif module := known.names["debug_calls"].get(called):
            if imports_module(self.tree, module):
                said = f"{called}() is for debugging"
                yield self._finding("debug_call", "debug_leftover", call, said)
        elif called in known.names["debug_prints"]:
            yield from self._printed(call, context)

    def _printed(self, call: ast.Call, context: Context) -> Iterator[Finding]:
        known = knowledge().python
        about = f"{context.name} {self.addition.path.rpartition('/')[2]}"
        asked = " ".join(written(test) for test in context.tests)
        if any(k.arg not in {"sep", "end", "flush"} for k in call.keywords) or (
            known["tracing"].search(f"{about} {asked}")
        ):
            return
        if any(self._is_debug_text(argument) for argument in call.args):
            is_rule = len(call.args) == 1 and _is_rule(call.args[0])
            if not is_rule:
                description = f"{shown(written(call))} is for debugging"
                yield self._finding("debug_print", "debug_leftover", call, description)
            return
        # A new file may be there to print.
        is_new = self.addition.before is None
        is_program = "program" in self.addition.places or not context.functions
        if is_new or is_program or context.is_handler or known["printing"].search(about):
            return
        if len(call.args) == 1 and _is_plain(call.args[0]):
            description = f"{shown(written(call))} in a library"
            yield self._finding("print", "debug_leftover", call, description, unusual=True)

    def _is_debug_text(self, argument: ast.expr) -> bool:
        if isinstance(argument, ast.JoinedStr):
            # ``f"{x=}"``: the tree has no sign of it.
            last = argument.end_lineno or argument.lineno
            line = self.addition.lexed.span(argument.lineno, last)
            first = argument.values[:1]
            return _ECHO.search(line) is not None or any(map(self._is_debug_text, first))
        if isinstance(argument, ast.BinOp) and isinstance(argument.op, (ast.Add, ast.Mod)):
            return self._is_debug_text(argument.left)
        text = string_of(argument)
        is_debug = text is not None and knowledge().python["debug_text"].search(text) is not None
        return is_debug or _is_rule(argument)

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
        yield self._finding("shell", "injection", call, description, fix=fix, key=command.words)

    def _sql(self, call: ast.Call, statement: Built | None) -> Iterator[Finding]:
        known = knowledge().python
        if statement is None or not known["sql_text"].search(statement.plain[:2_000]):
            return
        names = re.findall(r"%\((\w{1,80})\)", statement.text)
        if not _SQL_VALUE.search(statement.plain) or any(map(known["safe_sql"].search, names)):
            return
        if any(is_safe(value, known["safe_sql"]) for value in statement.values):
            return
        description = f"an SQL statement is put together from values: {shown(statement.text)}"
        fix = "Pass the values as parameters of the statement."
        yield self._finding("sql", "injection", call, description, fix=fix, key=statement.words)

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
        names = knowledge().names
        if module := names["loader_calls"].get(called):
            loaders = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "Loader")]
            is_unsafe = not loaders or dotted(loaders[0]) in names["unsafe_loaders"]
            if is_unsafe and imports_module(self.tree, module) and len(call.keywords) <= 1:
                description = f"{called}() makes any object that the text asks for"
                fix = "Read it with the safe loader."
                yield self._finding("loader", "injection", call, description, fix=fix)
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


def _ends_function(node: ast.stmt, context: Context) -> bool:
    """Whether nothing of the function follows but the answer that there is none."""
    if not context.functions or context.functions[-1].body != list(context.block):
        return False
    following = context.block[context.block.index(node) + 1 :]
    return all(isinstance(s, ast.Return) and _is_nothing(s.value) for s in following)


def _is_nothing(value: ast.expr | None) -> bool:
    if isinstance(value, (ast.List, ast.Tuple)):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _is_plain(argument: ast.expr) -> bool:
    return isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript)) or (
        isinstance(argument, ast.Call) and dotted(argument.func) in {"len", "type", "repr", "str"}
    )


def _is_rule(argument: ast.expr) -> bool:
    if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Mult):
        return re.fullmatch(r"[=\-#*~>+!]+", string_of(argument.left) or "") is not None
    text = string_of(argument) or ""
    return re.fullmatch(r"(?:[=\-#*~>+!]{3,}|>>)\s*", text) is not None


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
