"""Which gates run, when, and how much they count: ``verification-gates.yml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from loki.action.gates import yaml_model
from loki.action.processes.command_line import split_command_line
from loki.base.error import UsageError
from loki.base.time import seconds
from loki.recognition.definition_file import content, did_you_mean

NAMES = ("syntax_check", "import_check", "schema_check", "self_review")
"""The gates that can be configured. ``change_check`` cannot: it keeps edits inside the project."""

FILE = "verification-gates.yml"

Complexity: TypeAlias = Literal["low", "medium", "high"]
TaskType: TypeAlias = Literal["bug_fix", "feature", "refactor", "security", "config_change"]
CommandKind: TypeAlias = Literal["lint", "type", "test", "build", "lint_fix", "format_fix"]


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"found {value!r}, expected a duration like '30s'")
    return seconds(value)


def _words(value: Any) -> Any:
    try:
        return split_command_line(value) if isinstance(value, str) else value
    except UsageError as error:
        raise ValueError(f"found {error}") from None


Seconds = Annotated[float, BeforeValidator(_duration)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words), Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GateSetting(_Model):
    """When one gate runs, and how much it counts.

    Attributes:
        enabled: false: it never runs.
        severity: advisory: nothing that it finds blocks; blocking: all of it does; None: as it says.
        task_types, complexity: the tasks it runs for; None: all.
        exclude: globs of paths it does not look at.
        advisory_in: globs of paths in which nothing that it finds blocks.
        timeout: seconds after which a tool that it runs is ended, and what it found is advisory.
    """

    enabled: bool = True
    severity: Literal["blocking", "advisory"] | None = None
    task_types: tuple[TaskType, ...] | None = None
    complexity: tuple[Complexity, ...] | None = None
    exclude: tuple[str, ...] = ()
    advisory_in: tuple[str, ...] = ()
    timeout: Seconds = 30.0

    def runs_for(self, kind: str, complexity: str) -> bool:
        """Whether it runs for a task."""
        return (
            self.enabled
            and (self.task_types is None or kind in self.task_types)
            and (self.complexity is None or complexity in self.complexity)
        )


class BuildChecks(_Model):
    """``build_checks``: for which tasks default criteria of kind build are run."""

    enabled_for_complexity: tuple[Complexity, ...] = ("medium", "high")


class RegressionDetection(_Model):
    """``regression_detection``: for which tasks, how far, and where not."""

    enabled_for_complexity: tuple[Complexity, ...] = ("medium", "high")
    search_depth: int = Field(default=2, ge=1, le=20)
    exclude_patterns: tuple[str, ...] = ()


class Gates(_Model):
    """Everything in ``verification-gates.yml``."""

    version: Literal[1]
    extends: Literal["global"] | None = None
    order: tuple[str, ...] = NAMES
    gates: Mapping[str, GateSetting] = {}
    build_checks: BuildChecks = BuildChecks()
    regression_detection: RegressionDetection = RegressionDetection()
    commands: Mapping[CommandKind, Words] = {}

    @field_validator("order")
    @classmethod
    def _known_order(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        _known(names)
        if len(set(names)) < len(names):
            raise ValueError(f"found {', '.join(names)}, expected each gate once")
        return names

    @field_validator("gates")
    @classmethod
    def _known_gates(cls, gates: Mapping[str, GateSetting]) -> Mapping[str, GateSetting]:
        _known(gates)
        return gates

    def setting(self, gate: str) -> GateSetting:
        """The setting of a gate; the defaults where nothing is said."""
        return self.gates.get(gate, GateSetting())

    def for_task(self, kind: str, complexity: str) -> tuple[str, ...]:
        """Names of the gates that run for a task, in order.

        Example:
            >>> default().for_task("bug_fix", "low")
            ('syntax_check', 'schema_check', 'self_review')
        """
        # Without `extends: global` a file stands alone: gates that it does not name do not run.
        named = [name for name in self.order if name in self.gates]
        return tuple(name for name in named if self.setting(name).runs_for(kind, complexity))


def _known(names: Iterable[str]) -> None:
    for name in names:
        if name not in NAMES:
            expected = f"expected one of {', '.join(NAMES)}"
            raise ValueError(f"found the gate {name!r}, {expected}{did_you_mean(name, NAMES)}")


@cache
def default() -> Gates:
    """What loki does where a project says nothing."""
    path = Path(__file__).with_name(FILE)
    return yaml_model.read(path.read_bytes(), path.name, Gates)


def load(path: Path) -> Gates:
    """The configuration in a project's file; the built-in one where there is none.

    Args:
        path: usually ``.loki/verification-gates.yml``.

    Raises:
        ConfigError: it cannot be read, or something in it is wrong; with line and column.
    """
    if not path.exists():
        return default()
    return loads(content(path), str(path))


def loads(text: str | bytes, name: str = FILE) -> Gates:
    """The same from a text.

    Raises:
        ConfigError: something in it is wrong; with line and column.

    Example:
        >>> gates = loads("version: 1\\nextends: global\\ngates: {self_review: {enabled: false}}")
        >>> gates.for_task("feature", "high")
        ('syntax_check', 'import_check', 'schema_check')
    """
    own = yaml_model.read(text, name, Gates)
    if own.extends is None:
        return own
    said = own.model_dump(exclude_unset=True)
    merged = _merged(default().model_dump(), said)
    # Durations are numbers by now, and words are split: built, not read again.
    return _build(merged)


def _merged(under: Any, over: Any) -> Any:
    """Mappings are joined key by key; anything else is replaced."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return {**under, **{key: _merged(under.get(key), value) for key, value in over.items()}}


def _build(said: dict[str, Any]) -> Gates:
    gates = {name: GateSetting.model_construct(**one) for name, one in said["gates"].items()}
    return Gates.model_construct(
        **{
            **said,
            "gates": gates,
            "build_checks": BuildChecks.model_construct(**said["build_checks"]),
            "regression_detection": RegressionDetection.model_construct(
                **said["regression_detection"]
            ),
        }
    )
