"""The statements of one function: which fails, what its names were bound to before, what it gives back."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Iterator

from loki.pytest_plugin.source.source_module import Class, Function, FunctionNode

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
        given = node.value if isinstance(node, (ast.Return, ast.Expr)) else None
        if isinstance(node, ast.Expr):
            given = given.value if isinstance(given, ast.Yield) else None
        if given is not None:
            found.append(given)
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
        value = (
            node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else getattr(node, "value", None)
        )
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
