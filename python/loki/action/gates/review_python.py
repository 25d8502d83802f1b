"""Faults in Python that its syntax tree shows, and names imported from edited modules in vain.

Only what is certain: a module whose names are made at run time, or come from another by a star, is
not judged. Whether modules are there at all is another gate's question.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from bisect import bisect_left
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from loki.action.gates.added_lines import Addition, Reader, lex, shown
from loki.action.gates.gate import ADVISORY, BLOCKING, Finding, knowledge
from loki.action.gates.python_ast import (
    Built,
    Context,
    Function,
    built,
    dotted,
    expressions,
    imports_module,
    is_safe,
    place_of,
    string_of,
    walk,
    written,
)
from loki.base.python_tree import python_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# --- Functions that have been named but not written ---------------------------------------------------

_ELSEWHERE = frozenset({"test", "example", "vendored"})
"""Places in which only a left debugger is a fault."""


def stub_findings(addition: Addition, tree: ast.Module) -> Iterator[Finding]:
    """Functions without a body in a file, as far as they are not meant to be so.

    Blocking is one that stands where a body was, and one that says of itself that it is not
    written; a function that only passes may be meant so.
    """
    if addition.places & _ELSEWHERE:
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
                "stub", "unfinished_code", addition.path, *place_of(node),
                f"{node.name}() {description}", severity, key=name,
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


# --- Swallowed errors, debug leftovers, injection -----------------------------------------------------

_BROAD = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})
_ECHO = re.compile(r"\{[^{}!:\n\"']{1,80}[\w)\]]\s?=\s?[}!:]")
_SQL_VALUE = re.compile(r"(?:[=<>(,']|\b(?:like|in|values))\s*['\"%(]{0,3}\{\}", re.IGNORECASE)


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

    # --- Swallowed errors ---

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

    # --- Debug leftovers ---

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
        elif module := known.modules["debug_calls"].get(called):
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

    # --- Injection ---

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
        if module := knowledge().modules["loader_calls"].get(called):
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
        key = " ".join((key or written(node)).split())
        where = (self.addition.path, *place_of(node))
        return Finding(rule, concern, *where, description, severity, fix, key, unusual)


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


def _parameters(function: Function) -> list[str]:
    arguments = function.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


# --- Names imported from edited modules that do not define them ---------------------------------------

_MODULE_NAMES = frozenset(
    [
        "__name__",
        "__doc__",
        "__file__",
        "__path__",
        "__package__",
        "__spec__",
        "__loader__",
        "__dict__",
        "__builtins__",
        "__annotations__",
        "__cached__",
    ]
)
_MAKERS = frozenset({"globals", "vars", "locals", "setattr", "exec", "__import__", "lazy_import"})
_SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")


class Imports:
    """Looks names up in the modules that a change edits, each read once."""

    def __init__(self, reader: Reader, additions: list[Addition]) -> None:
        self._reader = reader
        self._edited = {addition.path: addition for addition in additions}
        paths = [PurePosixPath(path) for path in self._edited]
        self._stems = {path.stem for path in paths} | {path.parent.name for path in paths}
        self._names: dict[str, frozenset[str] | None] = {}

    def _defined(
        self, path: str, names_in: Callable[[str], frozenset[str] | None]
    ) -> frozenset[str] | None:
        if path not in self._names:
            self._names[path] = names_in(self._edited[path].after)
        return self._names[path]

    def findings(self, addition: Addition) -> Iterator[Finding]:
        """The names that a file imports in vain."""
        name = addition.language.name if addition.language else ""
        if name == "python":
            yield from self._of_python(addition)
        elif name == "javascript":
            yield from self._of_script(addition)

    # --- Python ---

    def _of_python(self, addition: Addition) -> Iterator[Finding]:
        if not self._may_import(addition.after) or (tree := python_tree(addition.after)) is None:
            return
        for node, context in walk(tree):
            is_guarded = context.is_guarded or (context.functions and "test" in addition.places)
            if not isinstance(node, ast.ImportFrom) or is_guarded:
                continue
            path = self._module(addition.path, node)
            if path is None or path not in self._edited or path == addition.path:
                continue
            for alias in node.names:
                if alias.name != "*" and not self._defines(path, alias.name):
                    yield self._finding(addition, place_of(node), alias.name, path)

    def _may_import(self, text: str) -> bool:
        """Whether the last part of a module's name is that of an edited one; parsing costs more."""
        return any(
            (match[1].rpartition(".")[2] or "__init__") in self._stems
            for match in _FROM_IMPORT.finditer(text)
        )

    def _module(self, importer: str, node: ast.ImportFrom) -> str | None:
        """The file that a statement imports from, where only one can be meant."""
        parts = node.module.split(".") if node.module else []
        if node.level:
            folder = importer.split("/")[:-1]
            if node.level - 1 > len(folder):
                return None
            base = folder[: len(folder) - node.level + 1] + parts
            return self._file("/".join(base))
        if parts and parts[0] in sys.stdlib_module_names:
            return None
        folder = importer.split("/")[:-1]
        # The package's own root is the folder above the topmost one with an __init__.
        while folder and self._reader.exists_after("/".join((*folder, "__init__.py"))):
            folder.pop()
        roots = {"/".join(folder), "", "src", "lib"}
        found = {f for root in roots if (f := self._file("/".join((root, *parts)).lstrip("/")))}
        return found.pop() if len(found) == 1 else None

    def _file(self, base: str) -> str | None:
        files = [f"{base}.py".lstrip("/"), f"{base}/__init__.py".lstrip("/")]
        found = [path for path in files if self._reader.exists_after(path)]
        return found[0] if len(found) == 1 else None

    def _defines(self, path: str, name: str) -> bool:
        names = self._defined(path, _bound)
        if names is None or name in names or name in _MODULE_NAMES:
            return True
        if not path.endswith("/__init__.py") and path != "__init__.py":
            return False
        folder = path.rpartition("/")[0]
        base = f"{folder}/{name}".lstrip("/")
        known = (*self._reader.tree.entries, *self._reader.change.paths)
        return any(p.startswith((f"{base}.", f"{base}/")) for p in known)

    # --- JavaScript, TypeScript ---

    def _of_script(self, addition: Addition) -> Iterator[Finding]:
        lexed = addition.lexed
        if "import" not in lexed.code:
            return
        for match in _NAMED_IMPORT.finditer(lexed.source):
            if lexed.code[match.start()] != "i" or "/*" in lexed.text[match.start() : match.end()]:
                continue
            path = self._script_file(addition.path, match["from"])
            if path is None or path == addition.path:
                continue
            names = self._defined(path, _exported)
            if names is None:
                continue
            first = lexed.line(match.start())
            where = (first, lexed.column(match.start()), lexed.line(match.end() - 1))
            for part in match["names"].split(","):
                name = re.sub(r"^\s*type\s+(?=\w)", "", part).split(" as ")[0].strip()
                if re.fullmatch(r"[\w$]+", name) and name not in names:
                    yield self._finding(addition, where, name, path)

    def _script_file(self, importer: str, said: str) -> str | None:
        base = posixpath.normpath(posixpath.join(posixpath.dirname(importer), said))
        stem = re.sub(r"\.[cm]?jsx?$", "", base)
        wanted = [base, *(s + x for s in (base, stem) for x in _SUFFIXES)]
        wanted += [f"{base}/index{suffix}" for suffix in _SUFFIXES]
        found = [path for path in dict.fromkeys(wanted) if self._reader.exists_after(path)]
        return found[0] if len(found) == 1 and found[0] in self._edited else None

    def _finding(
        self, addition: Addition, where: tuple[int, int, int], name: str, path: str
    ) -> Finding:
        description = f"{path} does not define {name!r}"
        return Finding(
            "import", "broken_import", addition.path, *where, description, ADVISORY,
            key=f"{path}:{name}",
        )  # fmt: skip


def _bound(text: str) -> frozenset[str] | None:
    """Every name that a module may bind; None where that cannot be known."""
    tree = python_tree(text)
    if tree is None:
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            if node.name == "__getattr__":
                return None
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if any(alias.name == "*" for alias in node.names):
                return None
            names.update((a.asname or a.name.partition(".")[0]) for a in node.names)
        elif (isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MAKERS) or (
            isinstance(node, ast.Attribute) and dotted(node) == "sys.modules"
        ):
            return None
        elif isinstance(node, ast.Global):
            names.update(node.names)
        else:
            names.update(_other_names(node))
    return frozenset(names)


def _other_names(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if type(node).__name__ == "TypeAlias":
        return [getattr(node, "name").id]  # noqa: B009 - not in every Python's ast
    return []


_FROM_IMPORT = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import\b", re.MULTILINE)
_NAMED_IMPORT = re.compile(
    r"^[ \t]*import\s+(?:type\s+)?(?:[\w$]{1,80}\s*,\s*)?\{(?P<names>[^{}]{1,4000})\}\s*"
    r"from\s*[\"'](?P<from>\.[^\"'\n]{0,200})[\"']",
    re.MULTILINE,
)
_UNKNOWABLE = re.compile(
    r"\bexport\s*\*\s*from\b|\bmodule\.exports\b|\bexports\s*[.\[]|\bexport\s*="
    r"|\bexport\s+(?:const|let|var)\s*[{\[]|\bObject\.defineProperty\(\s*exports"
)
_EXPORT = re.compile(
    r"\bexport\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\s*\*?|class|interface|type|const\s+enum|enum|namespace|module)\s*(?P<name>[\w$]+)"
)
_VALUES = re.compile(
    r"\bexport\s+(?:declare\s+)?(?:const|let|var)\s+(?!enum\b)(?P<rest>[^;]{1,4000})"
)
_LIST = re.compile(r"\bexport\s+(?:type\s+)?\{(?P<names>[^{}]{0,8000})\}")
_NAMESPACE = re.compile(r"\bexport\s*\*\s*as\s+(?P<name>[\w$]+)")


def _exported(text: str) -> frozenset[str] | None:
    """The names that a module exports; None where that cannot be known."""
    code = lex(text, "javascript").code
    if _UNKNOWABLE.search(code):
        return None
    names = {match["name"] for match in _EXPORT.finditer(code)}
    names |= {match["name"] for match in _NAMESPACE.finditer(code)}
    for match in _VALUES.finditer(code):
        # Too many rather than too few: every word behind the first counts as a name.
        names |= set(re.findall(r"[\w$]+", match["rest"]))
    for match in _LIST.finditer(code):
        for part in match["names"].split(","):
            names.add(re.split(r"\s+as\s+", part.strip())[-1].strip())
    if re.search(r"\bexport\s+default\b", code):
        names.add("default")
    return frozenset(names)
