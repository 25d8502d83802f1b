"""Which functions of the project the failing statement of a test looks at the results of.

A backward slice, from the text alone: the statement, what was assigned to its names in the test, what
fixtures and the tests' own helpers return. The slice has to be understood as a whole: where it holds
a call of something unknown, where an object was changed before, nothing is said.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import suppress

from loki.pytest_plugin.source.source_module import (
    Class,
    Function,
    FunctionNode,
    Library,
    Meaning,
    Module,
    Value,
    bound,
)
from loki.recognition.root_cause import Asserted, Call, Callee

# --- The statements of one function -------------------------------------------------------------------

RAISES = frozenset(
    {"raises", "warns", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex"}
)
"""Names of what asserts in a ``with`` statement on its body."""

Chain = tuple[tuple[ast.stmt, str], ...]
"""The branches that a statement stands in, outermost first."""


def statement_at(function: FunctionNode, line: int) -> ast.stmt | None:
    """The innermost statement at a line; of a compound one its head."""
    found = None
    for node, _ in _walk(function.body, ()):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node
    return found


def parameters(function: FunctionNode) -> frozenset[str]:
    """Names of a function's parameters."""
    own = function.args
    listed = [*own.posonlyargs, *own.args, *own.kwonlyargs]
    listed += [one for one in (own.vararg, own.kwarg) if one is not None]
    return frozenset(one.arg for one in listed)


def reaching(function: FunctionNode, name: str, line: int) -> list[ast.expr]:
    """What may have been assigned to a name when a line is reached; none: nothing in this function."""
    home: Chain = ()
    before = []
    for node, chain in _walk(function.body, ()):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            home = chain
        if node.lineno < line:
            before.append((node, chain))
    found: list[ast.expr] = []
    for node, chain in reversed(before):
        values = _assigned(node, name)
        found += values
        is_sure = _branches(home)[: len(_branches(chain))] == _branches(chain)
        if values and is_sure and not isinstance(node, ast.AugAssign):
            break
    return found


def results(function: FunctionNode) -> list[ast.expr]:
    """What a function returns or yields."""
    found = []
    for node, _ in _walk(function.body, ()):
        given: ast.AST = node.value if isinstance(node, ast.Expr) else node
        if isinstance(given, (ast.Return, ast.Yield)) and given.value is not None:
            found.append(given.value)
    return found


def effects(function: FunctionNode, line: int) -> Iterator[ast.expr]:
    """What may have changed something before a line: calls whose result is dropped, parts assigned to."""
    for node, chain in _walk(function.body, ()):
        if node.lineno >= line or any(_asserts(outer) for outer, _ in chain):
            continue
        if isinstance(node, ast.Expr):
            call = node.value.value if isinstance(node.value, ast.Await) else node.value
            if isinstance(call, ast.Call):
                yield call
        elif isinstance(node, (ast.With, ast.AsyncWith)) and not _asserts(node):
            yield from (item.context_expr for item in node.items if item.optional_vars is None)
        else:
            for target in _targets(node):
                for part in ast.walk(target):
                    if isinstance(part, (ast.Attribute, ast.Subscript)):
                        yield part


def results_in(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """What the statements of a body come to, those of ``with`` inside it too."""
    for node in body:
        if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign)) and node.value is not None:
            yield node.value
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from (item.context_expr for item in node.items)
            yield from results_in(node.body)


def binders(node: ast.expr) -> Iterator[str]:
    """Names that an expression binds for itself: parameters of a lambda, of a comprehension."""
    if isinstance(node, ast.Lambda):
        yield from (one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg))
    for inner in getattr(node, "generators", ()):
        yield from _names(inner.target)


def is_parametrized(function: FunctionNode, name: str) -> bool:
    """Whether a parameter is given by the test's decorators."""
    decorators = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    texts = [part for one in decorators for part in ast.walk(one) if isinstance(part, ast.Constant)]
    return any(
        isinstance(text.value, str) and name in text.value.replace(",", " ").split()
        for text in texts
    )


def fixture_named(function: Function, name: str) -> Function | None:
    """The fixture that a test or fixture is given: its class's, its file's, those of conftest.py."""
    if function.owner is not None:
        member = Class(function.module, function.owner).member(name)
        if member is not None and is_fixture(member.node):
            return member
    module, folder = function.module, function.module.path
    while True:
        known = module.named(name) if module is not None else None
        if isinstance(known, Function) and is_fixture(known.node):
            return None if known.node is function.node else known
        if not folder:
            return None
        folder = posixpath.dirname(folder)
        conftest = function.module.sources.module(posixpath.join(folder, "conftest.py"))
        module = conftest if conftest is not None else function.module


def is_fixture(node: FunctionNode) -> bool:
    """Whether a function is one, by its decorators."""
    heads = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return any(ast.unparse(head).rpartition(".")[2] == "fixture" for head in heads)


def _walk(body: Iterable[ast.stmt], chain: Chain) -> Iterator[tuple[ast.stmt, Chain]]:
    """All statements in order, with the branches they stand in; not those of functions inside."""
    for node in body:
        yield node, chain
        if isinstance(node, (FunctionNode, ast.ClassDef)):
            continue
        for branch in ("body", "handlers", "orelse", "finalbody"):
            inner = getattr(node, branch, ())
            for part in inner:
                stands = part.body if isinstance(part, ast.ExceptHandler) else [part]
                yield from _walk(stands, (*chain, (node, branch)))


def _branches(chain: Chain) -> Chain:
    return tuple(one for one in chain if not isinstance(one[0], (ast.With, ast.AsyncWith)))


def _assigned(node: ast.stmt, name: str) -> list[ast.expr]:
    """What a statement assigns to a name."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        mine = [o for o in node.items if o.optional_vars and name in _names(o.optional_vars)]
        found = [item.context_expr for item in mine]
        return [*found, *(results_in(node.body) if mine and _asserts(node) else ())]
    found = []
    if any(name in _names(target) for target in _targets(node)):
        is_loop = isinstance(node, (ast.For, ast.AsyncFor))
        value = getattr(node, "iter" if is_loop else "value", None)
        found = [value] if value is not None else []
    if not hasattr(node, "body"):
        found += [
            part.value
            for part in ast.walk(node)
            if isinstance(part, ast.NamedExpr) and part.target.id == name
        ]
    return found


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, (ast.Assign, ast.Delete)):
        return node.targets
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        return [node.target]
    return []


def _names(target: ast.expr) -> set[str]:
    """The names that a target binds; not those of which it binds a part."""
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*map(_names, target.elts))
    return _names(target.value) if isinstance(target, ast.Starred) else set()


def _asserts(node: ast.stmt) -> bool:
    """Whether it is a ``with`` statement that asserts on its body."""
    if not isinstance(node, (ast.With, ast.AsyncWith)):
        return False
    heads = [o.context_expr.func for o in node.items if isinstance(o.context_expr, ast.Call)]
    return any(ast.unparse(head).rpartition(".")[2] in RAISES for head in heads)


# --- What the failing statement looks at --------------------------------------------------------------

DEEPEST = 12
"""Helpers and fixtures that are followed one into the other. Chosen."""

MOST = 1_000
"""Expressions that are read for one test: names that are each made of two others double with each. Chosen."""

DATA = frozenset(
    {"tmp_path", "tmp_path_factory", "tmpdir", "capsys", "caplog", "monkeypatch", "recwarn"}
)
"""pytest's own fixtures: nothing of the project's."""

_OF_TEXTS = "strip lstrip rstrip removeprefix removesuffix lower upper casefold capitalize swapcase"
_OF_PARTS = (
    "split rsplit splitlines startswith endswith isdigit isalpha isalnum isspace keys values items"
)
METHODS = frozenset((_OF_TEXTS + " " + _OF_PARTS).split())
"""Methods of texts and mappings alone: what comes of a result by one of them is no other function's. Not
`get` or `count`, which many a class of a project has, too."""

Calls = frozenset[Call]
NONE: Calls = frozenset()


class UnclearError(Exception):
    """The text does not say what a statement looks at."""


def asserted(test: Function, name: str, line: int) -> Asserted | None:
    """What the statement of a test at a line looks at; None: the text does not say.

    Args:
        test: the test.
        name: its node id, without parameters.
        line: where it failed.
    """
    statement = statement_at(test.node, line)
    if statement is None:
        return None
    reader = Reader(test, statement.lineno)
    try:
        calls = reader.statement(statement)
    except (UnclearError, RecursionError):
        return None
    return Asserted(name, calls, frozenset(reader.through)) if calls else None


class Reader:
    """Reads one function of a test file.

    Args:
        function: a test, a fixture or a helper.
        line: what is bound below it does not count.
        depth: helpers that led to this one.
        steps: expressions that may be read yet.
    """

    def __init__(
        self, function: Function, line: int, depth: int = 0, steps: Iterator[int] | None = None
    ) -> None:
        self._function = function
        self._module = function.module
        self._node = function.node
        self._line = line
        self._depth = depth
        self._steps = iter(range(MOST)) if steps is None else steps
        body = function.node.body
        imports = (ast.Import, ast.ImportFrom)
        self._local = {name: what for name, what in bound(body) if isinstance(what[0], imports)}
        self._inner = {o.name for o in body if isinstance(o, (FunctionNode, ast.ClassDef))}
        self._parameters = parameters(function.node)
        self._bound: set[str] = set()
        self._open: set[str] = set()
        self.through: set[Callee] = set()

    def statement(self, node: ast.stmt) -> Calls:
        """The calls that a failing statement looks at the results of.

        Raises:
            UnclearError: it cannot be said.
        """
        self.refuse_effects()
        if isinstance(node, (ast.Assert, ast.If, ast.While)):
            return self.value(node.test)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            heads = [item.context_expr for item in node.items]
            self._line = (node.end_lineno or node.lineno) + 1
            return self._all([*heads, *results_in(node.body)])
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self.value(node.iter)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)) and node.value:
            return self.value(node.value)
        raise UnclearError

    def value(self, node: ast.expr) -> Calls:
        """The calls that an expression's value comes from, as far as the project made it."""
        self._step()
        if isinstance(node, ast.Constant):
            return NONE
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.NamedExpr):
            return self.value(node.value)
        self._bound |= set(binders(node))
        return self._all(_parts(node))

    def _step(self) -> None:
        if next(self._steps, None) is None:
            raise UnclearError

    def _all(self, nodes: Iterable[ast.expr]) -> Calls:
        return NONE.union(*(self.value(node) for node in nodes))

    # --- names -----------------------------------------------------------------------------------

    def _name(self, name: str) -> Calls:
        if name in self._bound:
            return NONE
        if name in self._inner or name in self._open:
            raise UnclearError
        self._open.add(name)
        try:
            assigned = reaching(self._node, name, self._line)
            if assigned:
                return self._all(assigned)
            if name in self._parameters:
                return self._parameter(name)
            return self._meant(self._module.meaning(ast.Name(name), self._local))
        finally:
            self._open.discard(name)

    def _parameter(self, name: str) -> Calls:
        fixture = None if is_parametrized(self._node, name) else fixture_named(self._function, name)
        return self._returned(fixture) if fixture is not None else NONE

    def _meant(self, known: Meaning | Module | None) -> Calls:
        """What a name stands for, where it is not called."""
        if isinstance(known, Function):
            if self._is_own(known):
                return NONE
            if known.node.decorator_list and not _is_property(known):
                raise UnclearError  # a command that a runner is given: any of its subcommands
            return frozenset([Call(callee_of(known))])
        if isinstance(known, (Class, Library, Module)):
            return NONE
        if isinstance(known, Value):
            calls = [part for part in ast.walk(known.node) if isinstance(part, ast.Call)]
            if all(isinstance(known.module.meaning(one.func), (Class, Library)) for one in calls):
                return NONE
        raise UnclearError

    def _attribute(self, node: ast.Attribute) -> Calls:
        known = self._meaning(node)
        if known is not None:
            return self._meant(known)
        kind = self._class_of(node.value)
        if kind is not None:
            member = kind.member(node.attr)
            if member is None or not _is_property(member):
                raise UnclearError
            return frozenset([Call(callee_of(member))])
        calls = self.value(node.value)
        if not calls and not self._is_plain(node.value):
            raise UnclearError
        return calls

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Calls:
        given = [*(one.value if isinstance(one, ast.Starred) else one for one in node.args)]
        given += [keyword.value for keyword in node.keywords]
        known = self._meaning(node.func)
        if isinstance(known, Function) and not self._is_own(known):
            return self._of_project(known, node, given)
        arguments = self._all(given)
        if isinstance(known, Function):
            return arguments | self._returned(known)
        if isinstance(known, (Class, Library)):
            return arguments
        if not isinstance(node.func, ast.Attribute):
            raise UnclearError
        return self._method(node, node.func, given, arguments)

    def _method(
        self, node: ast.Call, func: ast.Attribute, given: list[ast.expr], arguments: Calls
    ) -> Calls:
        if isinstance(func.value, ast.Name) and func.value.id in {"self", "cls"}:
            return arguments | self._own_method(func.attr)
        kind = self._class_of(func.value)
        if kind is not None:
            member = kind.member(func.attr)
            if member is None:
                raise UnclearError
            return self._of_project(member, node, given)
        receiver = self.value(func.value)
        if func.attr in METHODS if receiver else self._is_plain(func.value):
            return receiver | arguments
        raise UnclearError

    def _own_method(self, name: str) -> Calls:
        """A method of the test's own class: it asserts, or it helps."""
        owner = self._function.owner
        member = Class(self._module, owner).member(name) if owner else None
        if member is not None:
            return self._returned(member)
        if not name.startswith("assert"):
            raise UnclearError
        return NONE

    def _of_project(self, known: Function, node: ast.Call, given: list[ast.expr]) -> Calls:
        with suppress(UnclearError):  # whatever it was given: this call's result is looked at
            self.through |= {call.callee for call in self._all(given)}
        return frozenset([Call(callee_of(known), options_of(known, node))])

    def _returned(self, helper: Function) -> Calls:
        """What a helper of the tests, or a fixture, gives back."""
        if self._depth >= DEEPEST:
            raise UnclearError
        inner = self._inside(helper)
        found = inner._all(results(helper.node))
        self.through |= inner.through
        return found

    def _inside(self, helper: Function) -> Reader:
        """What reads a whole function that this one calls or is given."""
        end = helper.node.end_lineno or helper.node.lineno
        inner = Reader(helper, end + 1, self._depth + 1, self._steps)
        inner.refuse_effects()
        return inner

    # --- what is what ----------------------------------------------------------------------------

    def _meaning(self, node: ast.expr) -> Meaning | Module | None:
        """What dotted names mean that the function does not bind itself."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if (
            not isinstance(root, ast.Name)
            or root.id in self._parameters | self._bound | self._inner
        ):
            return None
        if root.id not in self._local and reaching(self._node, root.id, self._line):
            return None
        return self._module.meaning(node, self._local)

    def _class_of(self, node: ast.expr) -> Class | None:
        """The class of the project that an expression makes an instance of."""
        if isinstance(node, ast.Call):
            known = self._meaning(node.func)
            return known if isinstance(known, Class) and not known.module.is_test else None
        if not isinstance(node, ast.Name) or node.id in self._bound:
            return None
        assigned = reaching(self._node, node.id, self._line)
        if assigned:
            return self._class_of(assigned[0]) if len(assigned) == 1 else None
        if node.id not in self._parameters or is_parametrized(self._node, node.id):
            return None
        fixture = fixture_named(self._function, node.id)
        given = results(fixture.node) if fixture is not None else []
        if fixture is None or len(given) != 1 or self._depth >= DEEPEST:
            return None
        return self._inside(fixture)._class_of(given[0])

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether a value is a library's, or a test's data: no other function of the project's."""
        self._step()
        if isinstance(node, ast.Call):
            known = self._meaning(node.func)
            if known is None and isinstance(node.func, ast.Attribute):
                return self._is_plain(node.func.value)
            return isinstance(known, Library)
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Await)):
            return isinstance(self._meaning(node), Library) or self._is_plain(node.value)
        if isinstance(node, ast.Name):
            assigned = reaching(self._node, node.id, self._line)
            if assigned and node.id not in self._open:
                return all(self._is_plain(one) for one in assigned)
            return node.id in DATA or is_parametrized(self._node, node.id) or node.id in self._bound
        return all(self._is_plain(part) for part in _parts(node))

    def _is_own(self, known: Function) -> bool:
        return known.module.is_test or known.module is self._module

    def refuse_effects(self) -> None:
        """See that nothing before the line may have changed what is looked at.

        Raises:
            UnclearError: something was called whose result nobody took, or part of it was replaced.
        """
        for node in effects(self._node, self._line):
            if isinstance(node, ast.Call):
                known = self._meaning(node.func)
                own = isinstance(known, Function) and self._is_own(known)
                if own or isinstance(known, Library) or self._is_harmless(node.func):
                    continue
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and self._is_plain(node.value):
                continue
            raise UnclearError

    def _is_harmless(self, func: ast.expr) -> bool:
        if not isinstance(func, ast.Attribute):
            return False
        if isinstance(func.value, ast.Name) and func.value.id == "self":
            return func.attr.startswith("assert")
        return self._meaning(func) is None and self._is_plain(func.value)


def callee_of(known: Function) -> Callee:
    """A function as it is told of."""
    name = f"{known.owner.name}.{known.node.name}" if known.owner else known.node.name
    name += "" if _is_property(known) else "()"
    return Callee(known.module.path, known.node.lineno, name)


def options_of(known: Function, call: ast.Call) -> frozenset[str] | None:
    """The parameters with a default that a call gives a value; None: it cannot be said."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    arguments = known.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    own = names[1:] if known.owner is not None and names[:1] in (["self"], ["cls"]) else names
    needed = set(names[: len(names) - len(arguments.defaults)])
    needed |= {
        one.arg
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    }
    given = {*own[: len(call.args)], *(keyword.arg or "" for keyword in call.keywords)}
    more = {"*"} if len(call.args) > len(own) else set()
    return frozenset((given | more) - needed)


def _is_property(member: Function) -> bool:
    names = {ast.unparse(one).rpartition(".")[2] for one in member.node.decorator_list}
    return bool(names & {"property", "cached_property", "setter"})


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions right inside one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.comprehension):
            yield from (child.iter, *child.ifs)
