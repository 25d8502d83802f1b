"""What a concern found in one file, before it is known whether the change brought it."""

from __future__ import annotations

from dataclasses import dataclass

from loki.action.gates.gate import ADVISORY, BLOCKING, Violation
from loki.action.gates.review_rules import Rule, knowledge

GATE = "self_review"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in a text.

    Attributes:
        rule: which rule says so; with `key` it is what a fault that moved is known by.
        concern: name of the concern.
        path: the file, relative to the project.
        line, column: where it begins, from 1.
        last: the line in which it ends.
        description: what is wrong, without the concern.
        severity: blocking or advisory.
        fix: what to do about it; "": what the concern says.
        key: what was found, without its place and its indentation.
        unusual: no fault where the file did the same before.
    """

    rule: str
    concern: str
    path: str
    line: int
    column: int
    last: int
    description: str
    severity: str = ADVISORY
    fix: str = ""
    key: str = ""
    unusual: bool = False

    @classmethod
    def of(
        cls, rule: Rule, path: str, where: tuple[int, int, int], description: str, key: str
    ) -> Finding:
        """What a rule of the file found at (line, column, last line)."""
        return cls(
            rule.id,
            rule.concern,
            path,
            *where,
            description,
            rule.severity,
            rule.fix,
            " ".join(key.split()),
            rule.unusual,
        )

    def violation(self) -> Violation:
        """The same as a gate says it."""
        concern = knowledge().concerns[self.concern]
        return Violation(
            GATE,
            self.severity,
            self.path,
            f"{concern.title}: {self.description}",
            self.line or None,
            self.column or None,
            self.fix or concern.fix,
            security=self.severity == BLOCKING and concern.is_security,
        )
