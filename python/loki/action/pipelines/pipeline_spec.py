"""A pipeline as data: what its stages are, and what each asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki.action.pipelines.stage_condition import Condition

MODES = ("plan", "agent")
BACKOFFS = ("exponential", "linear", "fixed")
ROLLBACKS = ("none", "undo", "all")
CLOSED_LOOP = "closed-loop-execution"
"""The skill that names the loop itself."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How a stage that failed is tried again.

    Attributes:
        max_attempts: tries in all, 1 to 10.
        backoff: exponential, linear or fixed.
        initial_delay_seconds: wait before the second try, 1 to 300.
    """

    max_attempts: int = 1
    backoff: str = "exponential"
    initial_delay_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Output:
    """What a stage hands on.

    Attributes:
        name: what inputs call it.
        file: the project's file that it is; None: a document, or a summary of the changes.
    """

    name: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage, as its file has it.

    Attributes:
        id: names it; agent: name of the agent that works on it.
        description: what it is to achieve.
        mode: ``plan`` writes documents, ``agent`` is the closed loop.
        inputs: names of parameters and of outputs of earlier stages; outputs: what it hands on.
        condition: whether it runs at all; None: always.
        requires_approval: a person must agree before it begins.
        timeout_seconds: wall time for all its tries.
        retry: how it is tried again.
        rollback: when it finally failed: none, undo, all, or commands.
        skill: what its agent is told to use; None: nothing but the closed loop.
        checks: commands that decide; kind, complexity: as of a task.
        digest: differs where anything of it was edited.
    """

    id: str
    agent: str
    description: str
    mode: str = "agent"
    inputs: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    condition: Condition | None = None
    requires_approval: bool = False
    timeout_seconds: float = 1800.0
    retry: Retry = Retry()
    rollback: str | tuple[str, ...] = "none"
    skill: str | None = None
    checks: tuple[str, ...] = ()
    kind: str = "feature"
    complexity: str = "medium"
    digest: str = ""


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A whole pipeline.

    Attributes:
        name, description: what it is.
        stages: in their order.
        parameters: name to default; None: it must be given.
        max_attempts: attempts of all stages together, or None; max_seconds: wall time, or None.
    """

    name: str
    stages: tuple[StageSpec, ...]
    description: str = ""
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    max_attempts: int | None = None
    max_seconds: float | None = None

    def stage(self, id_: str) -> StageSpec | None:
        """The stage of an id."""
        return next((stage for stage in self.stages if stage.id == id_), None)
