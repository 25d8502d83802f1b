"""Conditions of pipeline stages: a small language that is parsed, checked and never executed.

``stages.plan.status == "success" and "ship it" in stages.review.outputs.verdict``: comparisons of
what earlier stages did, of parameters and of literals, joined by ``and``, ``or``, ``not``. The
grammar is Python's (`ast`), of which a whitelist is taken. Everything has a type that is known when
the file is read, so what can be wrong with a condition is an error then, and none can fail later.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loki.recognition.definition_file import did_you_mean

MAX_LENGTH = 1000
"""Characters of a condition. Chosen, not measured."""

MAX_DEPTH = 30
"""Levels of nesting. Chosen, not measured."""

_SHOWN = 40

STATUSES = ("success", "skipped", "failed", "escalated")
"""What the status of an earlier stage can be."""


@dataclass(frozen=True, slots=True)
class StageView:
    """What conditions can see of a stage that is over.

    Attributes:
        status: one of `STATUSES`.
        attempts: how many it took.
        files: paths that it changed.
        outputs: name to text.
    """

    status: str
    attempts: int = 0
    files: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """What a condition is decided on.

    Attributes:
        stages: earlier stages by id.
        parameters: their values by name.
    """

    stages: Mapping[str, StageView] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a condition may name.

    Attributes:
        stages: id of each earlier stage to the names of its outputs.
        parameters: names of the pipeline's parameters.
        later: ids of stages that are no earlier ones.
    """

    stages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


class ConditionError(ValueError):
    """A condition says what it cannot say.

    Attributes:
        offset: the character of the text where it goes wrong, from 0.
    """

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was found to be right.

    Attributes:
        text: as it was written.
    """

    text: str
    _decide: Callable[[Known], Any] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, scope: Scope) -> Condition:
        """The condition in a text.

        Args:
            text: for example ``stages.plan.status == "success"``.
            scope: what it may name.

        Raises:
            ConditionError: it is none; says where, what was found and what was expected.

        Example:
            >>> condition = Condition.parse('stages.plan.attempts > 1', Scope({"plan": ()}))
            >>> condition.holds(Known({"plan": StageView("success", attempts=2)}))
            True
        """
        if len(text) > MAX_LENGTH:
            reason = f"found {len(text)} characters, expected at most {MAX_LENGTH}"
            raise ConditionError(reason, MAX_LENGTH)
        if not text.strip():
            raise ConditionError(f"found nothing, expected {_GRAMMAR}")
        # In brackets, so that a condition may go over several lines.
        source = "(" + "".join(c if c == "\n" or c.isprintable() else " " for c in text) + "\n)"
        compiled = _Reader(source, scope).value(_parsed(source), 0)
        if compiled.type != "truth":
            expected = "expected a comparison, like stages.plan.status == 'success'"
            raise ConditionError(f"found {_AS_WORDS[compiled.type]}, {expected}")
        return cls(text, compiled.of)

    def holds(self, known: Known) -> bool:
        """Whether it is true of what is known."""
        return bool(self._decide(known))


@dataclass(frozen=True, slots=True)
class _Typed:
    """A part of a condition: its type, how to find its value, and the value where it is literal."""

    type: str
    of: Callable[[Known], Any]
    literal: Any = None


_AS_WORDS = {
    "status": "a status",
    "text": "a text",
    "number": "a number",
    "list": "a list",
    "truth": "true or false",
}
_EQUAL: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_INSIDE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.In: lambda inner, outer: inner in outer,
    ast.NotIn: lambda inner, outer: inner not in outer,
}
_GRAMMAR = (
    "stages.<id>.status, .attempts, .files or .outputs.<name>, parameters.<name>, literals, "
    "comparisons, in, and, or, not"
)


def _parsed(source: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash in a text, "is" with a literal
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        offset = _offset(source, error.lineno or 1, (error.offset or 1) - 1)
        raise ConditionError(f"found what is no expression, expected {_GRAMMAR}", offset) from None
    except (ValueError, RecursionError, MemoryError, OverflowError):
        raise ConditionError(f"found what is no expression, expected {_GRAMMAR}") from None


def _offset(source: str, line: int, column: int) -> int:
    """Offset in the text of a place in the source, which has one bracket more."""
    before = source.split("\n")[: line - 1]
    last = max(len(source) - 3, 0)  # of the text itself
    return min(max(sum(len(part) + 1 for part in before) + column - 1, 0), last)


class _Reader:
    """Makes typed functions of syntax; raises at what is not in the language."""

    def __init__(self, source: str, scope: Scope) -> None:
        self._source, self._scope = source, scope
        self._grammar: Mapping[tuple[type[ast.expr], ...], Callable[[Any, int], _Typed]] = {
            (ast.Constant,): lambda node, _: self._constant(node),
            (ast.List, ast.Tuple): self._list,
            (ast.BoolOp,): self._joined,
            (ast.UnaryOp,): self._negated,
            (ast.Compare,): self._compared,
            (ast.Attribute, ast.Subscript, ast.Name): lambda node, _: self._named(node),
        }

    def value(self, node: ast.expr, depth: int) -> _Typed:
        if depth > MAX_DEPTH:
            raise self._error(node, f"found more than {MAX_DEPTH} levels, expected fewer")
        for kinds, read in self._grammar.items():
            if isinstance(node, kinds):
                return read(node, depth)
        raise self._error(node, f"found {self._shown(node)!r}, expected {_GRAMMAR}")

    def _constant(self, node: ast.Constant) -> _Typed:
        for type_, name in ((bool, "truth"), (str, "text"), (int, "number"), (float, "number")):
            if isinstance(node.value, type_):
                return _literal(name, node.value)
        expected = "expected a text, a number, true or false"
        raise self._error(node, f"found {node.value!r}, {expected}")

    def _list(self, node: ast.List | ast.Tuple, depth: int) -> _Typed:
        entries = [self.value(entry, depth + 1) for entry in node.elts]
        for entry, found in zip(entries, node.elts, strict=True):
            if entry.type != "text" or entry.literal is None:
                raise self._error(found, "found an entry that is no text in quotes, expected one")
        return _literal("list", tuple(entry.literal for entry in entries))

    def _joined(self, node: ast.BoolOp, depth: int) -> _Typed:
        parts = [self._truth(part, depth + 1) for part in node.values]
        whole = all if isinstance(node.op, ast.And) else any
        return _Typed("truth", lambda known: whole(part(known) for part in parts))

    def _negated(self, node: ast.UnaryOp, depth: int) -> _Typed:
        if isinstance(node.op, ast.Not):
            truth = self._truth(node.operand, depth + 1)
            return _Typed("truth", lambda known: not truth(known))
        raise self._error(node, f"found {self._shown(node)!r}, expected {_GRAMMAR}")

    def _truth(self, node: ast.expr, depth: int) -> Callable[[Known], Any]:
        found = self.value(node, depth)
        if found.type != "truth":
            raise self._error(node, f"found {_AS_WORDS[found.type]}, expected a comparison")
        return found.of

    # --- comparisons --------------------------------------------------------------------------

    def _compared(self, node: ast.Compare, depth: int) -> _Typed:
        terms = [self.value(term, depth + 1) for term in (node.left, *node.comparators)]
        nodes = [node.left, *node.comparators]
        pairs = [
            (self._comparison(op, terms[i], terms[i + 1], nodes[i + 1]), terms[i], terms[i + 1])
            for i, op in enumerate(node.ops)
        ]
        return _Typed(
            "truth",
            lambda known: all(
                compare(left.of(known), right.of(known)) for compare, left, right in pairs
            ),
        )

    def _comparison(
        self, op: ast.cmpop, left: _Typed, right: _Typed, node: ast.expr
    ) -> Callable[[Any, Any], Any]:
        kinds = {_plain(left), _plain(right)}
        for one, other in ((left, right), (right, left)):
            self._check_status(one, other, node)
        if type(op) in _EQUAL and len(kinds) == 1:
            return _EQUAL[type(op)]
        if type(op) in _ORDER and kinds == {"number"}:
            return _ORDER[type(op)]
        if type(op) in _INSIDE and _plain(left) == "text" and _plain(right) in {"text", "list"}:
            return _INSIDE[type(op)]
        found = f"{_AS_WORDS[left.type]} and {_AS_WORDS[right.type]}"
        if type(op) in _ORDER:
            raise self._error(node, f"found an order of {found}, expected two numbers")
        if type(op) in _INSIDE:
            raise self._error(node, f"found 'in' with {found}, expected a text in a text or list")
        if type(op) in _EQUAL:
            raise self._error(node, f"found a comparison of {found}, expected two of one kind")
        raise self._error(node, "found 'is', expected '=='")

    def _check_status(self, status: _Typed, other: _Typed, node: ast.expr) -> None:
        """A status that no stage can have is a slip."""
        if status.type != "status" or other.literal is None or other.type not in {"text", "list"}:
            return
        for word in (other.literal,) if other.type == "text" else other.literal:
            if word not in STATUSES:
                expected = f"one of {', '.join(STATUSES)}{did_you_mean(word, STATUSES)}"
                raise self._error(node, f"found the status {word!r}, expected {expected}")

    # --- names --------------------------------------------------------------------------------

    def _named(self, node: ast.expr) -> _Typed:
        if isinstance(node, ast.Name) and node.id in {"true", "false"}:
            return _literal("truth", node.id == "true")
        path = self._path(node)
        if path[0] == "parameters":
            return self._parameter(node, path)
        if path[0] != "stages":
            raise self._error(node, f"found {path[0]!r}, expected stages or parameters")
        if len(path) == 1:
            raise self._error(node, "found 'stages', expected the id of a stage behind it")
        id_, rest = path[1], path[2:]
        if id_ not in self._scope.stages:
            raise self._error(node, self._unknown_stage(id_))
        if rest == ["status"]:
            return _Typed("status", lambda known: known.stages[id_].status)
        if rest == ["attempts"]:
            return _Typed("number", lambda known: known.stages[id_].attempts)
        if rest == ["files"]:
            return _Typed("list", lambda known: known.stages[id_].files)
        if rest[:1] == ["outputs"] and len(rest) == 2:  # noqa: PLR2004
            return self._output(node, id_, rest[1])
        expected = "status, attempts, files or outputs.<name>"
        raise self._error(node, f"found {'.'.join(path)!r}, expected {expected} of a stage")

    def _unknown_stage(self, id_: str) -> str:
        if id_ in self._scope.later:
            return f"found stage {id_!r}, which is no earlier one, expected an earlier stage"
        known = ", ".join(self._scope.stages) or "none: this is the first"
        meant = did_you_mean(id_, self._scope.stages)
        return f"found unknown stage {id_!r}, expected an earlier stage ({known}){meant}"

    def _output(self, node: ast.expr, id_: str, name: str) -> _Typed:
        outputs = self._scope.stages[id_]
        if name not in outputs:
            known = ", ".join(outputs) or "it has none"
            reason = f"found unknown output {name!r} of stage {id_!r}, expected one of its outputs"
            raise self._error(node, f"{reason} ({known}){did_you_mean(name, outputs)}")
        return _Typed("text", lambda known: known.stages[id_].outputs.get(name, "").strip())

    def _parameter(self, node: ast.expr, path: list[str]) -> _Typed:
        names = self._scope.parameters
        if len(path) != 2 or path[1] not in names:  # noqa: PLR2004
            shown, known = ".".join(path), ", ".join(names) or "there are none"
            meant = did_you_mean(path[-1], names)
            raise self._error(node, f"found {shown!r}, expected a parameter ({known}){meant}")
        name = path[1]
        return _Typed("text", lambda known: known.parameters.get(name, "").strip())

    def _path(self, node: ast.expr) -> list[str]:
        """``stages.plan.status`` and ``stages["plan"].status`` as a list of names."""
        names: list[str] = []
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                names.append(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                names.append(str(node.slice.value))
            else:
                raise self._error(node, f"found {self._shown(node)!r}, expected {_GRAMMAR}")
            node = node.value
        return [node.id, *reversed(names)]

    def _shown(self, node: ast.expr) -> str:
        # Not `ast.unparse`, whose recursion hostile texts exhaust.
        text = " ".join((ast.get_source_segment(self._source, node) or "").split())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    def _error(self, node: ast.expr, reason: str) -> ConditionError:
        line = self._source.split("\n")[node.lineno - 1].encode()
        column = len(line[: node.col_offset].decode("utf-8", "ignore"))
        return ConditionError(reason, _offset(self._source, node.lineno, column))


def _literal(type_: str, value: Any) -> _Typed:
    return _Typed(type_, lambda _: value, value)


def _plain(typed: _Typed) -> str:
    return "text" if typed.type == "status" else typed.type
