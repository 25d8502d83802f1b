"""Which functions of a project lead to which others, by their text."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from loki.pytest_plugin.source.asserted_calls import callee_of
from loki.pytest_plugin.source.function_body import parameters
from loki.pytest_plugin.source.source_module import Class, Function, FunctionNode, Module, Sources
from loki.recognition.shared_callees import Callee

MOST = 200
"""Functions that are followed from one. Chosen."""


def reached(sources: Sources, callees: Collection[Callee]) -> dict[Callee, frozenset[Callee]]:
    """Which of some functions call which others of them, directly or through the project.

    Args:
        sources: reads the files.
        callees: the functions.
    """
    return {one: frozenset(_all(sources, one)) & frozenset(callees) - {one} for one in callees}


def _all(sources: Sources, callee: Callee) -> set[Callee]:
    first = _definition(sources, callee)
    found: dict[Callee, Function] = {callee: first} if first is not None else {}
    open_ = list(found.values())
    while open_ and len(found) < MOST:
        for known in _named(open_.pop()):
            if callee_of(known) not in found:
                found[callee_of(known)] = known
                open_.append(known)
    return set(found)


def _definition(sources: Sources, callee: Callee) -> Function | None:
    module = sources.module(callee.path)
    bodies: list[tuple[Module, ast.ClassDef | None, list[ast.stmt]]]
    bodies = [(module, None, module.tree.body)] if module is not None else []
    while bodies:
        inside, owner, body = bodies.pop()
        for node in body:
            if isinstance(node, FunctionNode) and node.lineno == callee.line:
                return Function(inside, node, owner)
            for part in ("body", "orelse"):
                inner = [] if isinstance(node, FunctionNode) else getattr(node, part, [])
                bodies.append((inside, node if isinstance(node, ast.ClassDef) else owner, inner))
    return None


def _named(function: Function) -> Iterator[Function]:
    """The functions that one names, its own class's included; a class stands for making one."""
    own = parameters(function.node)
    own |= {o.id for o in ast.walk(function.node) if isinstance(o, ast.Name) and not _reads(o)}
    for node in ast.walk(function.node):
        known = None
        if isinstance(node, (ast.Name, ast.Attribute)) and _root(node) not in own:
            known = function.module.meaning(node)
        elif isinstance(node, ast.Attribute) and function.owner and _root(node.value) == "self":
            known = Class(function.module, function.owner).member(node.attr)
        if isinstance(known, Class):
            known = known.member("__init__")
        if isinstance(known, Function) and not known.module.is_test:
            yield known


def _reads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _root(node: ast.expr) -> str:
    """The first of names with dots between them."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
