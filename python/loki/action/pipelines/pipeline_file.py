"""Pipeline files: stages in a row, read from YAML, checked as a whole before anything runs.

All that is wrong is found at once, each with file, line and column: shapes first, then what stages
say of each other (inputs, conditions, outputs). The shapes are put together as those of tool and
pattern files are (`loki.recognition.definition_schema`); files are hostile input
(`loki.recognition.definition_source`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from loki.action.checks.check import Check as CheckSpec
from loki.action.pipelines.pipeline_spec import (
    BACKOFFS,
    MODES,
    ROLLBACKS,
    Output,
    PipelineSpec,
    Retry,
    StageSpec,
)
from loki.action.pipelines.stage_condition import Condition, ConditionError, Scope
from loki.action.processes.command_line import split_command_line
from loki.action.task import COMPLEXITIES, KINDS
from loki.base.error import UsageError
from loki.base.time import seconds
from loki.recognition.definition_file import Document, did_you_mean, examine
from loki.recognition.schema_shapes import (
    any_text,
    list_of,
    one_of,
    record,
    text,
    truth,
    unique,
    whole,
)

if TYPE_CHECKING:
    from loki.base.error import ConfigError
    from loki.recognition.definition_file import Check, Cursor

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


# --- shapes ---------------------------------------------------------------------------------------


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


def _check(cursor: Cursor) -> str:
    value = text(cursor)
    try:
        CheckSpec.of(value)
    except UsageError as error:
        raise cursor.error(str(error)) from None
    return value


def _command(cursor: Cursor) -> str:
    value = text(cursor)
    try:
        split_command_line(value)
    except UsageError as error:
        raise cursor.error(str(error)) from None
    return value


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

# --- what stages say of each other ----------------------------------------------------------------


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


# --- from plain data ------------------------------------------------------------------------------


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
