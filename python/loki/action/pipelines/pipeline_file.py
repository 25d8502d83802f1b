"""Pipeline files: stages in a row, read from YAML, checked as a whole before anything runs.

Conditions are comparisons of what earlier stages did, of parameters and of literals, joined by ``and``,
``or``, ``not``: ``stages.plan.status == "success" and "ship it" in stages.review.outputs.verdict``. The
grammar is Python's (`ast`), of which a whitelist is taken. Everything has a type that is known when
the file is read, so what can be wrong with a condition is an error then, and none can fail later.

All that is wrong is found at once, each with file, line and column: shapes first, then what stages
say of each other (inputs, conditions, outputs). The shapes are put together as those of tool and
pattern files are (`loki.recognition.definition_schema`); files are hostile input
(`loki.recognition.definition_file`).
"""

from __future__ import annotations

import ast
import json
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from loki.action.checks.check import Check as CheckSpec
from loki.action.pipelines.pipeline_state import (
    BACKOFFS,
    MODES,
    ROLLBACKS,
    Output,
    PipelineSpec,
    Retry,
    StageSpec,
)
from loki.action.processes.command_line import split_command_line
from loki.action.task import COMPLEXITIES, KINDS
from loki.base.error import ConfigError, UsageError
from loki.base.time import seconds
from loki.recognition.definition_file import Check, Cursor, Document, did_you_mean, examine
from loki.recognition.definition_schema import (
    any_text,
    list_of,
    one_of,
    record,
    text,
    truth,
    unique,
    whole,
)

# --- Conditions: a small language that is parsed, checked and never executed --------------------------

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
_FIELDS = {"status": "status", "attempts": "number", "files": "list"}
"""Of a stage, and their types."""

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

    # --- Comparisons --------------------------------------------------------------------------

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

    # --- Names --------------------------------------------------------------------------------

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
        if len(rest) == 1 and rest[0] in _FIELDS:
            return _Typed(_FIELDS[rest[0]], lambda known: getattr(known.stages[id_], rest[0]))
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


# --- The file: its shapes -----------------------------------------------------------------------------

MAX_STAGES = 100
"""Of one pipeline. Chosen, not measured."""

MAX_MINUTES = 7 * 24 * 60
"""Longest time-out of a stage: a week. Chosen, not measured."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}\Z")
_NAME_SHAPE = "a letter, then letters, digits, '-' and '_', 60 at most"


def read(content: str | bytes, name: str) -> PipelineSpec:
    """The pipeline in a file.

    Args:
        content: its YAML.
        name: what errors call it.

    Raises:
        ConfigError: the first thing that is wrong; `inspect` has all.
    """
    spec, problems = inspect(content, name)
    if spec is None:
        raise problems[0]
    return spec


def inspect(content: str | bytes, name: str) -> tuple[PipelineSpec | None, list[ConfigError]]:
    """The pipeline in a file, or None and all that is wrong with it, in the order of the text."""
    document = examine(content, name, _pipeline)
    if document.value and isinstance(document.value.get("stages"), list):
        _Relations(document).check()
    if document.problems:
        document.problems.sort(key=lambda problem: (problem.line, problem.column))
        return None, document.problems
    return _spec(document.value), []


def _name(cursor: Cursor) -> str:
    value = cursor.text()
    if not _NAME.match(value):
        raise cursor.wrong(f"a name: {_NAME_SHAPE}")
    return value


def _words(cursor: Cursor) -> str:
    value = text(cursor)
    if not value.strip():
        raise cursor.wrong("text of 1 word or more")
    return value


def _number(least: float, most: float) -> Check:
    expected = f"a number from {least:g} to {most:g}"

    def check(cursor: Cursor) -> float:
        value = cursor.scalar(("int", "float"), expected)
        try:
            number = float(value)
        except ValueError:  # YAML's 1_000 or 0x10: nobody means that here
            raise cursor.wrong(expected) from None
        if not least <= number <= most:  # also where it is no number (.nan)
            raise cursor.wrong(expected)
        return number

    return check


def _duration(cursor: Cursor) -> float:
    if cursor.found().startswith("a number"):
        raise cursor.wrong("a duration with its unit, like 90m or 2h")
    try:
        return seconds(cursor.text())
    except ValueError as error:
        raise cursor.error(str(error)) from None


def _usable(parse: Callable[[str], object]) -> Check:
    """Text that a function takes."""

    def check(cursor: Cursor) -> str:
        value = text(cursor)
        try:
            parse(value)
        except UsageError as error:
            raise cursor.error(str(error)) from None
        return value

    return check


_check = _usable(CheckSpec.of)
_command = _usable(split_command_line)


def _rollback(cursor: Cursor) -> Any:
    if cursor.found() == "a list":
        return list_of(_command, 1)(cursor)
    value = cursor.text()
    if value not in ROLLBACKS:
        expected = f"one of {', '.join(ROLLBACKS)}, or a list of commands"
        raise cursor.wrong(expected + did_you_mean(value, ROLLBACKS))
    return value


def _file(cursor: Cursor) -> str:
    value = text(cursor)
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] in {(".git",), (".loki",)}:
        raise cursor.wrong("a path inside the project")
    return path.as_posix()


def _output(cursor: Cursor) -> dict[str, Any]:
    if cursor.found() == "a mapping":
        value: dict[str, Any] = record({"name": _name, "file": _file}, {}, "an output")(cursor)
        return value
    return {"name": _name(cursor), "file": None}


def _parameters(cursor: Cursor) -> dict[str, str | None]:
    """A list of names that must be given, or a mapping of names to their defaults."""
    if cursor.found() == "a list":
        return dict.fromkeys(list_of(_name)(cursor))
    found: dict[str, str | None] = {}
    for key, (node, entry) in cursor.entries("a list of names, or a mapping to defaults").items():
        if not _NAME.match(key):
            reason = f"found parameter {key[:60]!r}, expected {_NAME_SHAPE}"
            cursor.document.note(cursor.error(reason, node))
        elif entry.found() == "nothing":
            found[key] = None
        else:
            found[key] = entry.gather(any_text)
    return found


_retry = record(
    {},
    {
        "max_attempts": whole(1, 10),
        "backoff": one_of(*BACKOFFS),
        "initial_delay_seconds": _number(1, 300),
    },
    "a retry",
)

_stage = record(
    {"id": _name, "agent": _words, "description": _words},
    {
        "mode": one_of(*MODES),
        "inputs": list_of(_name),
        "outputs": unique(_output, "name", "output"),
        "condition": _words,
        "requires_approval": truth,
        "timeout_minutes": _number(0.001, MAX_MINUTES),
        "retry": _retry,
        "rollback": _rollback,
        "skill": _words,
        "checks": list_of(_check, 1),
        "kind": one_of(*KINDS),
        "complexity": one_of(*COMPLEXITIES),
    },
    "a stage",
)


def _stages(cursor: Cursor) -> list[Any]:
    values: list[Any] = unique(_stage, "id", "stage")(cursor)
    if not 1 <= len(values) <= MAX_STAGES:
        raise cursor.error(f"found {len(values)} stages, expected 1 to {MAX_STAGES}")
    return values


_pipeline = record(
    {"version": whole(1, 1), "name": _name, "stages": _stages},
    {
        "description": text,
        "parameters": _parameters,
        "checks": list_of(_check, 1),
        "max_attempts": whole(1, 1_000_000),
        "max_time": _duration,
    },
    "a pipeline",
)

# --- What stages say of each other --------------------------------------------------------------------


class _Relations:
    """Checks what no stage can be seen to have wrong by itself; notes problems in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        value = document.value
        self._parameters: Mapping[str, Any] = value.get("parameters") or {}
        self._stages: list[Any] = value["stages"]
        self._has_checks = "checks" in value
        self._outputs: dict[str, str] = {}  # name -> the stage that makes it
        self._earlier: dict[str, tuple[str, ...]] = {}

    def check(self) -> None:
        for number, stage in enumerate(self._stages):
            if isinstance(stage, dict):
                self._stage(f"/stages/{number}", stage)

    def _stage(self, where: str, stage: dict[str, Any]) -> None:
        self._inputs(where, stage)
        self._mode(where, stage)
        if stage.get("condition"):
            try:
                stage["condition"] = Condition.parse(stage["condition"], self._scope())
            except ConditionError as error:
                self._note(f"{where}/condition", str(error), error.offset)
        self._made(where, stage)

    def _note(self, where: str, reason: str, offset: int | None = None) -> None:
        self._document.note(self._document.error(where, reason, offset))

    def _scope(self) -> Scope:
        ids = [stage.get("id") for stage in self._stages if isinstance(stage, dict)]
        later = tuple(id_ for id_ in ids if id_ and id_ not in self._earlier)
        return Scope(self._earlier, tuple(self._parameters), later)

    def _inputs(self, where: str, stage: dict[str, Any]) -> None:
        for number, name in enumerate(stage.get("inputs") or []):
            if name is None or name in self._outputs or name in self._parameters:
                continue
            makers = [
                other["id"]
                for other in self._stages
                if isinstance(other, dict)
                and name in {output["name"] for output in other.get("outputs") or [] if output}
            ]
            known = (*self._outputs, *self._parameters)
            if makers:
                reason = f"found input {name!r}, which only stage {makers[0]!r} outputs"
            else:
                reason = f"found input {name!r}, which no stage outputs and no parameter gives"
            shown = ", ".join(known) or "there are none yet"
            reason += f", expected an output of an earlier stage or a parameter ({shown})"
            self._note(
                f"{where}/inputs/{number}", reason + ("" if makers else did_you_mean(name, known))
            )

    def _mode(self, where: str, stage: dict[str, Any]) -> None:
        outputs = [output for output in stage.get("outputs") or [] if output]
        if stage.get("mode") == "plan":
            if not outputs and "outputs" not in stage:
                self._note(where, "found a plan without 'outputs', expected what it is to write")
            if "checks" in stage:
                reason = "found checks of a plan, expected none: a plan changes nothing to check"
                self._note(f"{where}/checks", reason)
            for number, output in enumerate(stage.get("outputs") or []):
                if output and output["file"]:
                    reason = "found a file of a plan, expected a name: a plan writes no files"
                    self._note(f"{where}/outputs/{number}/file", reason)
        elif "checks" not in stage and not self._has_checks:
            reason = (
                "found a stage without 'checks' in a pipeline without them, expected commands that "
                "tell when it is done"
            )
            self._note(where, reason)

    def _made(self, where: str, stage: dict[str, Any]) -> None:
        names = []
        for number, output in enumerate(stage.get("outputs") or []):
            if not output:
                continue
            name = output["name"]
            names.append(name)
            if name in self._parameters:
                reason = f"found output {name!r}, which is a parameter, expected another name"
                self._note(f"{where}/outputs/{number}", reason)
            elif self._outputs.setdefault(name, stage.get("id") or "") != stage.get("id"):
                reason = f"found output {name!r}, which stage {self._outputs[name]!r} has already"
                self._note(f"{where}/outputs/{number}", f"{reason}, expected another name")
        if stage.get("id"):
            self._earlier[stage["id"]] = tuple(names)


# --- From plain data ----------------------------------------------------------------------------------


def _spec(value: Mapping[str, Any]) -> PipelineSpec:
    shared = value.get("checks") or ()
    return PipelineSpec(
        value["name"],
        tuple(_stage_spec(stage, shared) for stage in value["stages"]),
        value.get("description", ""),
        value.get("parameters") or {},
        value.get("max_attempts"),
        value.get("max_time"),
    )


def _stage_spec(stage: dict[str, Any], shared: Any) -> StageSpec:
    is_plan = stage.get("mode") == "plan"
    checks = () if is_plan else tuple(stage.get("checks") or shared)
    condition = stage.get("condition")
    plain = {**stage, "checks": checks, "condition": condition.text if condition else None}
    digest = sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
    taken = {
        name: stage[name] for name in ("mode", "requires_approval", "kind", "complexity", "skill")
        if name in stage
    }  # fmt: skip
    rollback = stage.get("rollback", "none")
    return StageSpec(
        stage["id"],
        stage["agent"],
        stage["description"].strip(),
        inputs=tuple(dict.fromkeys(stage.get("inputs") or ())),
        outputs=tuple(Output(**output) for output in stage.get("outputs") or ()),
        condition=condition,
        timeout_seconds=60 * stage.get("timeout_minutes", 30.0),
        retry=Retry(**stage.get("retry", {})),
        rollback=rollback if isinstance(rollback, str) else tuple(rollback),
        checks=checks,
        digest=digest,
        **taken,
    )
