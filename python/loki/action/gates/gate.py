"""Gates: what a proposed change must pass before a byte of the project changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.action.changes.change import Change
from loki.action.changes.forbidden_changes import Breach, refusals
from loki.action.changes.tree import Tree
from loki.base import glob
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from loki.action.gates.finding import Subject
    from loki.action.gates.gate_config import Gates
    from loki.action.task import TaskSpec

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
            pattern=known if (known := _pattern(first)) in patterns.patterns else None,
            patterns=patterns,
        )


def _pattern(violation: Violation) -> str | None:
    return SECURITY if violation.security else PATTERNS.get(violation.gate)


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
    from loki.action.gates.finding import Subject
    from loki.action.gates.gate_config import default

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


def of_task(
    task: TaskSpec,
    change: Change,
    root: Path,
    tree: Tree,
    config: Gates,
    cancelled: threading.Event,
) -> Validation:
    """`validate` for a task."""
    return validate(
        change,
        root,
        tree,
        kind=task.kind,
        complexity=task.complexity,
        scope=task.scope,
        config=config,
        cancelled=cancelled,
    )


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
        "self_review": lambda s: self_review(s.change, s.root, s.tree, s.scope),
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
