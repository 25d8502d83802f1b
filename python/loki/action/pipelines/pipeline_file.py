"""Pipeline files: stages in a row, read from YAML, checked as a whole before anything runs.

A condition is one of a few forms, in YAML itself: the status of an earlier stage, a file that it changed,
what one of its outputs or a parameter says; of a list all must hold. So a condition that was accepted can be
decided.

All that is wrong with the shapes is found at once, each with file, line and column; then what stages say of
each other (inputs, conditions, outputs). Files are hostile input (`loki.base.yaml_document`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from loki.action.checks.check import Check
from loki.action.pipelines.pipeline_state import Output, PipelineSpec, Retry, StageSpec
from loki.action.processes.command_line import split_command_line
from loki.base import glob
from loki.base.error import ConfigError, UsageError
from loki.base.text_format import did_you_mean
from loki.base.time import seconds
from loki.base.yaml_document import Document, unexpected
from loki.recognition.definition_schema import Definition, TaskType, Text, Words, unique

MAX_STAGES = 100
"""Of one pipeline. Chosen, not measured."""

MAX_MINUTES = 7 * 24 * 60
"""Longest time-out of a stage: a week. Chosen, not measured."""

# --- Small shapes -------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}\Z")


def _name(value: str) -> str:
    if not _NAME.match(value):
        raise unexpected("a name: a letter, then letters, digits, '-' and '_', 60 at most")
    return value


def _usable(parse: Callable[[str], object]) -> Callable[[str], str]:
    """A check that a function takes a text."""

    def check(value: str) -> str:
        try:
            parse(value)
        except UsageError as error:
            raise ValueError(f"found {value!r}: {error}") from None
        return value

    return check


def _path(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] in {(".git",), (".loki",)}:
        raise unexpected("a path inside the project")
    return path.as_posix()


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise unexpected("a duration with its unit, like 90m or 2h")
    return seconds(value)


def _list_or(value: Any) -> str:
    return "list" if isinstance(value, list) else "other"


Name = Annotated[str, AfterValidator(_name)]
_Command = Annotated[Text, AfterValidator(_usable(split_command_line))]
_Checks = Annotated[list[Annotated[Text, AfterValidator(_usable(Check.of))]], Field(min_length=1)]
_Parameters = Annotated[
    Annotated[list[Name], Tag("list")] | Annotated[dict[Name, str | None], Tag("other")],
    Discriminator(_list_or),
]
_Rollback = Annotated[
    Annotated[list[_Command], Field(min_length=1), Tag("list")]
    | Annotated[Literal["none", "undo", "all"], Tag("other")],
    Discriminator(_list_or),
]

# --- Conditions ---------------------------------------------------------------------------------------

Status: TypeAlias = Literal["success", "skipped", "failed", "escalated"]
"""What the status of an earlier stage can be."""


@dataclass(frozen=True, slots=True)
class StageView:
    """What conditions can see of a stage that is over.

    Attributes:
        status: of `Status`.
        files: paths that it changed.
        outputs: name to text.
    """

    status: str
    files: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)


_FORMS = (
    ("stage", "status"),
    ("stage", "changed"),
    ("stage", "output", "equals"),
    ("stage", "output", "contains"),
    ("parameter", "equals"),
    ("parameter", "contains"),
)


class Condition(Definition):
    """What must be so for a stage to run.

    Attributes:
        stage: an earlier stage, with one of `status`, `changed` and `output`.
        parameter: or a parameter of the pipeline.
        status: that the stage has.
        changed: glob of paths of which the stage changed one.
        output: of the stage; of a stage that was skipped it is empty.
        equals, contains: text of the output or parameter, blanks round it aside.
        negated: ``not: true`` turns it round.

    Example:
        >>> condition = Condition(stage="plan", output="verdict", equals="go")
        >>> condition.holds({"plan": StageView("success", (), {"verdict": "go\\n"})}, {})
        True
    """

    stage: Name = ""
    parameter: Name = ""
    status: Status = "success"
    changed: Text = ""
    output: Name = ""
    equals: str = ""
    contains: Text = ""
    negated: bool = Field(default=False, alias="not")

    @model_validator(mode="after")
    def _is_a_form(self) -> Condition:
        given = self.model_fields_set - {"negated"}
        if not any(given == set(form) for form in _FORMS):
            found = " and ".join(name for name in type(self).model_fields if name in given)
            forms = "; ".join(" and ".join(form) for form in _FORMS)
            raise ValueError(f"found {found or 'no condition'}, expected one of: {forms}")
        return self

    def __str__(self) -> str:
        said = self.model_dump(by_alias=True, exclude_unset=True)
        return ", ".join(
            f"{key}: {str(value).lower() if isinstance(value, bool) else value}"
            for key, value in said.items()
        )

    def holds(self, stages: Mapping[str, StageView], parameters: Mapping[str, str]) -> bool:
        """Whether it is so.

        Args:
            stages: the earlier ones by id.
            parameters: their values by name.
        """
        return self._is_so(stages, parameters) is not self.negated

    def _is_so(self, stages: Mapping[str, StageView], parameters: Mapping[str, str]) -> bool:
        said = self.model_fields_set
        if "status" in said:
            return stages[self.stage].status == self.status
        if "changed" in said:
            return any(glob.matches(path, (self.changed,)) for path in stages[self.stage].files)
        if "output" in said:
            text = stages[self.stage].outputs.get(self.output, "").strip()
        else:
            text = parameters.get(self.parameter, "").strip()
        return text == self.equals.strip() if "equals" in said else self.contains in text


def _alone(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


# --- The file -----------------------------------------------------------------------------------------


class _Output(Definition):
    name: Name
    file: Annotated[Text, AfterValidator(_path)] = ""


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class _Retry(Definition):
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 1
    backoff: Literal["exponential", "linear", "fixed"] = "exponential"
    initial_delay_seconds: Annotated[float, Field(ge=1, le=300)] = 5.0


class _Stage(Definition):
    id: Name
    agent: Words
    description: Words
    mode: Literal["plan", "agent"] = "agent"
    inputs: list[Name] = Field(default_factory=list)
    outputs: Annotated[
        list[Annotated[_Output, BeforeValidator(_named)]],
        AfterValidator(lambda all_: unique(all_, "name")),
    ] = Field(default_factory=list)
    condition: Annotated[list[Condition], Field(min_length=1), BeforeValidator(_alone)] = Field(
        default_factory=list
    )
    requires_approval: bool = False
    timeout_minutes: Annotated[float, Field(ge=0.001, le=MAX_MINUTES)] = 30.0
    retry: _Retry = _Retry()
    rollback: _Rollback = "none"
    skill: Words | None = None
    checks: _Checks = Field(default_factory=list)
    kind: TaskType = "feature"
    complexity: Literal["low", "medium", "high"] = "medium"

    def says(self, key: str) -> bool:
        """Whether the file has a key of it."""
        return key in self.model_fields_set


class _Pipeline(Definition):
    version: Literal[1]
    name: Name
    stages: Annotated[
        list[_Stage],
        Field(min_length=1, max_length=MAX_STAGES),
        AfterValidator(lambda all_: unique(all_, "id")),
    ]
    description: Text = ""
    parameters: _Parameters = Field(default_factory=dict)
    checks: _Checks = Field(default_factory=list)
    max_attempts: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_time: Annotated[float, BeforeValidator(_duration)] | None = None

    @property
    def defaults(self) -> dict[str, str | None]:
        """Parameters by name; of those in a list each must be given."""
        known = self.parameters
        return dict.fromkeys(known) if isinstance(known, list) else known


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
    try:
        document = Document(content, name)
    except ConfigError as error:
        return None, [error]
    pipeline, problems = document.examine(_Pipeline)
    if pipeline is None:
        return None, problems
    problems = [document.error(*one) for one in _Relations(pipeline).problems()]
    if problems:
        return None, sorted(problems, key=lambda problem: (problem.line, problem.column))
    return _spec(pipeline), []


# --- What stages say of each other --------------------------------------------------------------------

_Keys = tuple["str | int", ...]
_Problem = tuple[_Keys, str]


class _Relations:
    """Finds what no stage can be seen to have wrong by itself: the way to it, and the reason."""

    def __init__(self, pipeline: _Pipeline) -> None:
        self._pipeline = pipeline
        self._parameters = pipeline.defaults
        self._outputs: dict[str, str] = {}  # name -> the stage that makes it
        self._earlier: dict[str, list[str]] = {}  # stage -> its outputs

    def problems(self) -> Iterator[_Problem]:
        for number, stage in enumerate(self._pipeline.stages):
            where = ("stages", number)
            yield from self._inputs(where, stage)
            yield from self._mode(where, stage)
            for index, condition in enumerate(stage.condition):
                yield from self._condition((*where, "condition", index), condition)
            yield from self._made(where, stage)
            self._earlier[stage.id] = [output.name for output in stage.outputs]

    def _inputs(self, where: _Keys, stage: _Stage) -> Iterator[_Problem]:
        known = (*self._outputs, *self._parameters)
        for number, name in enumerate(stage.inputs):
            if name in known:
                continue
            makers = [
                other.id
                for other in self._pipeline.stages
                if any(output.name == name for output in other.outputs)
            ]
            if makers:
                reason = f"found input {name!r}, which only stage {makers[0]!r} outputs"
            else:
                reason = f"found input {name!r}, which no stage outputs and no parameter gives"
            shown = ", ".join(known) or "there are none yet"
            reason += f", expected an output of an earlier stage or a parameter ({shown})"
            meant = "" if makers else did_you_mean(name, known)
            yield (*where, "inputs", number), reason + meant

    def _mode(self, where: _Keys, stage: _Stage) -> Iterator[_Problem]:
        if stage.mode == "plan":
            if not stage.outputs:
                yield where, "found a plan without 'outputs', expected what it is to write"
            if stage.checks:
                reason = "found checks of a plan, expected none: a plan changes nothing to check"
                yield (*where, "checks"), reason
            for number, output in enumerate(stage.outputs):
                if output.file:
                    reason = "found a file of a plan, expected a name: a plan writes no files"
                    yield (*where, "outputs", number, "file"), reason
        elif not stage.checks and not self._pipeline.checks:
            reason = (
                "found a stage without 'checks' in a pipeline without them, expected commands that "
                "tell when it is done"
            )
            yield where, reason

    def _condition(self, where: _Keys, condition: Condition) -> Iterator[_Problem]:
        for key, known, what in (
            ("stage", self._earlier, "an earlier stage"),
            ("parameter", self._parameters, "a parameter"),
            ("output", self._earlier.get(condition.stage, ()), "an output of that stage"),
        ):
            name = getattr(condition, key)
            # Of a stage that is none, no output is known either.
            if name and name not in known and (key != "output" or condition.stage in self._earlier):
                shown = ", ".join(known) or "there are none"
                reason = f"found {key} {name!r}, expected {what} ({shown})"
                yield (*where, key), reason + did_you_mean(name, known)

    def _made(self, where: _Keys, stage: _Stage) -> Iterator[_Problem]:
        for number, output in enumerate(stage.outputs):
            place, name = (*where, "outputs", number), output.name
            if name in self._parameters:
                yield place, f"found output {name!r}, which is a parameter, expected another name"
            elif self._outputs.setdefault(name, stage.id) != stage.id:
                reason = f"found output {name!r}, which stage {self._outputs[name]!r} has already"
                yield place, f"{reason}, expected another name"


# --- As the machine takes it --------------------------------------------------------------------------


def _spec(pipeline: _Pipeline) -> PipelineSpec:
    return PipelineSpec(
        pipeline.name,
        tuple(_stage_spec(stage, pipeline.checks) for stage in pipeline.stages),
        pipeline.description,
        pipeline.defaults,
        pipeline.max_attempts,
        pipeline.max_time,
    )


def _stage_spec(stage: _Stage, shared: list[str]) -> StageSpec:
    checks = () if stage.mode == "plan" else tuple(stage.checks or shared)
    said = {**stage.model_dump(by_alias=True, exclude_unset=True), "checks": checks}
    rollback = stage.rollback
    return StageSpec(
        stage.id,
        stage.agent,
        stage.description.strip(),
        mode=stage.mode,
        inputs=tuple(dict.fromkeys(stage.inputs)),
        outputs=tuple(Output(output.name, output.file or None) for output in stage.outputs),
        condition=tuple(stage.condition),
        requires_approval=stage.requires_approval,
        timeout_seconds=60 * stage.timeout_minutes,
        retry=Retry(**stage.retry.model_dump()),
        rollback=rollback if isinstance(rollback, str) else tuple(rollback),
        skill=stage.skill,
        checks=checks,
        kind=stage.kind,
        complexity=stage.complexity,
        digest=sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16],
    )
