"""Gates: what a proposed change must pass before a byte of the project changes."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator

from loki.action.changes.change import Change, Edit
from loki.action.changes.forbidden_changes import Breach, refusals
from loki.action.changes.tree import Tree
from loki.action.checks.imports.project_files import Files
from loki.action.processes.command_line import split_command_line
from loki.base import glob
from loki.base.error import UsageError
from loki.base.text_format import did_you_mean
from loki.base.time import seconds
from loki.base.yaml_document import Document, Strict, content, read_beside
from loki.base.yaml_text import load_file
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

logger = logging.getLogger("loki")

BLOCKING, ADVISORY = "blocking", "advisory"

SECURITY = "security-violation"
"""Id of the pattern of what a person has to see at once, whichever gate found it."""

PATTERNS = {"syntax_check": "syntax-error", "import_check": "import-not-found"}
"""Id of the pattern that a gate's violations have; what others find is told by its words."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What a gate found wrong with a proposal.

    Attributes:
        gate: name of the gate.
        severity: blocking or advisory; only a blocking one fails the validation.
        file, line, column: where, relative to the project; None where not known.
        description: what is wrong.
        suggested_fix: what to do about it, or "".
        auto_fixable: a fix command could mend it.
        security: a person has to know of it at once; nobody is asked for another proposal.
    """

    gate: str
    severity: str
    file: str | None
    description: str
    line: int | None = None
    column: int | None = None
    suggested_fix: str = ""
    auto_fixable: bool = False
    security: bool = False

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{where or 'change'}: {self.description} [{self.gate}]"


@dataclass(frozen=True, slots=True)
class Validation:
    """What all gates said.

    Attributes:
        gates: names of the gates that ran.
        violations: what they found.
        skipped: VALIDATE did not take place, because the caller edits by itself.
        warnings: what was not looked at, why, and how to have it looked at.
        durations: seconds that each gate took.
    """

    gates: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    skipped: bool = False
    warnings: tuple[str, ...] = ()
    durations: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """No violation is blocking."""
        return not self.blocking

    @property
    def blocking(self) -> tuple[Violation, ...]:
        """The violations that fail it."""
        return tuple(v for v in self.violations if v.severity == BLOCKING)

    @property
    def security(self) -> str:
        """What a person has to see at once, in a line; "" where there is nothing of that kind."""
        return next((str(v) for v in self.blocking if v.security), "")

    def record(self) -> dict[str, Any]:
        """What is kept of it in the attempt's record."""
        return {
            "passed": self.passed,
            "skipped": self.skipped,
            "gates": list(self.gates),
            "violations": [asdict(v) for v in self.violations],
            "warnings": list(self.warnings),
            "durations_ms": {gate: round(took * 1000) for gate, took in self.durations.items()},
        }

    def failure(self, patterns: PatternSet) -> Failure:
        """The failure that blocking violations amount to."""
        first, *others = sorted(self.blocking, key=lambda v: not v.security)
        told = [(str(v), f"  {v.suggested_fix}") for v in (first, *others)]
        excerpt = "\n".join(line for lines in told for line in lines if line.strip())
        known = SECURITY if first.security else PATTERNS.get(first.gate)
        # A refusal is about the path itself; a syntax error is the same wherever it stands.
        about_path = first.gate == "change_check" and first.file
        return Failure.of(
            f"{first.file}: {first.description}" if about_path else first.description,
            tool="loki",
            error_code=first.gate,
            path=first.file,
            line=first.line,
            column=first.column,
            excerpt=excerpt,
            pattern=known if known in patterns.patterns else None,
            patterns=patterns,
        )


Gate = Callable[["Subject"], "list[Violation]"]


def validate(
    change: Change,
    root: Path,
    tree: Tree,
    *,
    kind: str = "bug_fix",
    complexity: str = "medium",
    config: Gates | None = None,
    scope: Sequence[str] = (),
    cancelled: threading.Event | None = None,
) -> Validation:
    """Run every gate that the configuration has for a task on a proposal; nothing is written.

    Args:
        change: the proposal.
        root: the project's folder.
        tree: the project as it is.
        kind, complexity: of the task.
        config: which gates run, and how much they count; None: the built-in configuration.
        scope: globs of the files that the task is about; none: not said.
        cancelled: ends what a gate runs when set.

    No gate runs behind one of `FIRST` that blocks: a change that may not be applied at all need not
    be well written, and what does not parse cannot be judged further.
    """

    config = config or default()
    ended = cancelled or threading.Event()
    found: list[Violation] = []
    warnings: list[str] = []
    durations: dict[str, float] = {}
    gates = _gates()
    for name in ("change_check", *config.for_task(kind, complexity)):
        subject = Subject(change, root, tree, config.setting(name), scope, ended)
        start = time.monotonic()
        violations = _asked(name, gates[name], subject)
        durations[name] = time.monotonic() - start
        found += violations if name == "change_check" else _weighed(violations, subject)
        warnings += subject.warnings
        if name in FIRST and any(v.severity == BLOCKING for v in found):
            break
    return Validation(tuple(durations), tuple(found), False, tuple(warnings), durations)


FIRST = ("change_check", "syntax_check")
"""Gates behind which none runs if they block."""


def _asked(name: str, gate: Gate, subject: Subject) -> list[Violation]:
    """What a gate finds; where it is broken, it is silent, as in any doubt, but for the first."""
    try:
        return gate(subject)
    except Exception as error:
        logger.exception("gate %s is broken", name)
        why = f"{type(error).__name__}: {error}"
        if name == "change_check":
            return [Violation(name, BLOCKING, None, f"the change cannot be looked at: {why}")]
        subject.warnings.append(f"{name} could not look at this change: {why}")
        return []


def _weighed(violations: Sequence[Violation], subject: Subject) -> list[Violation]:
    """Violations with the severity that the configuration gives them."""
    setting, weighed = subject.setting, []
    for violation in violations:
        path = violation.file
        if path and glob.matches(path, setting.exclude):
            continue
        severity = setting.severity or violation.severity
        if path and glob.matches(path, setting.advisory_in):
            severity = ADVISORY
        weighed.append(replace(violation, severity=severity))
    return weighed


@cache
def _gates() -> Mapping[str, Gate]:
    from loki.action.gates.import_check import import_check
    from loki.action.gates.schema_check import schema_check
    from loki.action.gates.self_review import self_review
    from loki.action.gates.syntax_check import syntax_check

    return {
        "change_check": change_check,
        "syntax_check": syntax_check,
        "import_check": import_check,
        "schema_check": schema_check,
        "self_review": lambda s: self_review(s.change, s.tree, s.scope),
    }


def change_check(subject: Subject) -> list[Violation]:
    """Refuse edits that leave the project, touch what is not theirs, or came too late."""
    return [
        Violation(
            "change_check",
            BLOCKING,
            refusal.path,
            refusal.reason,
            security=isinstance(refusal.reason, Breach),
        )
        for refusal in refusals(subject.change, subject.root, subject.tree)
    ]


# --- Which gates run, and how much they count: ``verification-gates.yml`` -----------------------------

NAMES = ("syntax_check", "import_check", "schema_check", "self_review")
"""The gates that can be configured. ``change_check`` cannot: it keeps edits inside the project."""

GATES_FILE = "verification-gates.yml"

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


class GateSetting(Strict):
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


class BuildChecks(Strict):
    """``build_checks``: for which tasks default criteria of kind build are run."""

    enabled_for_complexity: tuple[Complexity, ...] = ("medium", "high")


class RegressionDetection(Strict):
    """``regression_detection``: for which tasks, how far, and where not."""

    enabled_for_complexity: tuple[Complexity, ...] = ("medium", "high")
    search_depth: int = Field(default=2, ge=1, le=20)
    exclude_patterns: tuple[str, ...] = ()


class Gates(Strict):
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
    return read_beside(__file__, GATES_FILE, Gates)


def load_gates(path: Path) -> Gates:
    """The configuration in a project's file; the built-in one where there is none.

    Args:
        path: usually ``.loki/verification-gates.yml``.

    Raises:
        ConfigError: it cannot be read, or something in it is wrong; with line and column.
    """
    if not path.exists():
        return default()
    return read_gates(content(path), str(path))


def read_gates(text: str | bytes, name: str = GATES_FILE) -> Gates:
    """The same from a text.

    Raises:
        ConfigError: something in it is wrong; with line and column.

    Example:
        >>> gates = read_gates("version: 1\\nextends: global\\ngates: {self_review: {enabled: false}}")
        >>> gates.for_task("feature", "high")
        ('syntax_check', 'import_check', 'schema_check')
    """
    document = Document(text, name)
    own = document.read(Gates)
    if own.extends is None:
        return own
    below = load_file(Path(__file__).with_name(GATES_FILE))
    return Gates.model_validate(_merged(below, document.data))


def _merged(under: Any, over: Any) -> Any:
    """Mappings are joined key by key; anything else is replaced."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return {**under, **{key: _merged(under.get(key), value) for key, value in over.items()}}


# --- What a gate judges -------------------------------------------------------------------------------


@dataclass
class Subject:
    """A proposal under judgement by one gate.

    Attributes:
        change: the proposal.
        root: the project's folder.
        tree: the project as it is.
        setting: what the configuration says of the gate.
        scope: globs of the files that the task is about; none: not said.
        warnings: why something was not looked at, and how to have it looked at.
        cancelled: ends what the gate runs when set.
    """

    change: Change
    root: Path
    tree: Tree
    setting: GateSetting = field(default_factory=GateSetting)
    scope: Sequence[str] = ()
    cancelled: threading.Event = field(default_factory=threading.Event)
    warnings: list[str] = field(default_factory=list)

    @property
    def written(self) -> list[Edit]:
        """The edits that give a file a content and are not excluded."""
        return [
            edit
            for edit in self.change.edits
            if edit.after is not None
            and edit.mode != "symlink"
            and not glob.matches(edit.path, self.setting.exclude)
        ]

    @functools.cached_property
    def before(self) -> Files:
        """The project as it is."""
        return Files.of(self.tree)

    @functools.cached_property
    def after(self) -> Files:
        """The project as the proposal would leave it."""
        return Files.of(self.tree, self.change)

    def content_before(self, path: str) -> bytes | None:
        """What a file holds now; None where there is none, or it is no plain file."""
        entry = self.tree.entries.get(path)
        return None if entry is None or entry.is_symlink else self.before.read(path)

    def warn(self, sentence: str) -> None:
        """Say once why something was not looked at."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)
