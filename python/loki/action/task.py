"""What is to be achieved, and how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from loki.base.error import UsageError
from loki.base.time import Duration, argument_seconds
from loki.decision.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from loki.action.checks.check import Check

KINDS = ("bug_fix", "feature", "refactor", "security", "config_change")
COMPLEXITIES = ("low", "medium", "high")

DONE_WHEN_PASSING = frozenset({"bug_fix"})
"""Kinds of task that are done where every check passes before the first attempt."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task: what is to be achieved, and the checks that tell whether it is.

    Attributes:
        id: names its folder; letters, digits and dashes.
        title: what is to be achieved, in a person's words.
        checks: what must pass; run before the first attempt and after each.
        kind: bug_fix, feature, refactor, security or config_change.
        complexity: low, medium or high.
        max_retries: attempts after the first, 0 or more; None: nobody said, and each failure's
            pattern does (`loki.decision.loop_policy.Limits`).
        budget: what all attempts together may take; once it is spent the task ends, without a
            dead letter.
        wait: whether to wait while the agent's circuit breaker is open, within the budget's time;
            None: only where there is such a limit. Else the task is paused.
        run: id of the pipeline's run that it is a stage of, or "".
        scope: files, folders and globs that it is about; empty: not said.
    """

    id: str
    title: str
    checks: tuple[Check, ...] = ()
    kind: str = "bug_fix"
    complexity: str = "medium"
    max_retries: int | None = None
    budget: Budget = UNLIMITED
    wait: bool | None = None
    run: str = ""
    scope: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no task can be."""
        if not self.title.strip():
            raise UsageError("a task needs a title that says what is to be achieved")
        one_of("kind", self.kind, KINDS)
        one_of("complexity", self.complexity, COMPLEXITIES)
        if self.max_retries is not None and self.max_retries < 0:
            raise UsageError(f"max_retries is {self.max_retries}: expected 0 or more")

    @property
    def done_when_passing(self) -> bool:
        """Whether passing checks before the first attempt mean that nothing is left to do."""
        return self.kind in DONE_WHEN_PASSING


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is none of those that there are.

    Args:
        name: of the field, for the message.
        value: what was said; allowed: what there is.

    Raises:
        UsageError: it is none of them.

    Example:
        >>> one_of("kind", "security", KINDS)
    """
    if value not in allowed:
        raise UsageError(f"{name} is {value!r}: expected one of {', '.join(allowed)}")


def task_id(title: str) -> str:
    """A readable, stable id: the same title gives the same id, so that a run can be resumed.

    Example:
        >>> task_id("Fix the login test!")
        'fix-the-login-test-bfe35e'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    return f"{slug or 'task'}-{sha256(title.encode('utf-8', 'backslashreplace')).hexdigest()[:6]}"


LONGEST_ID = 200
"""Bytes of an id: with ``unfinished-`` and ``.patch`` round it, it is still a file's name (255 bytes)."""


def safe_id(text: str) -> str:
    """An id that a person chose, where it can name a folder.

    Raises:
        UsageError: it cannot.
    """
    if not text.replace("-", "").replace("_", "").replace(".", "").isalnum() or text[0] == ".":
        raise UsageError(f"task id is {text!r}: expected letters, digits, '-', '_' and '.'")
    if len(text.encode("utf-8", "replace")) > LONGEST_ID:
        raise UsageError(f"task id begins with {text[:40]!r}: expected at most {LONGEST_ID} bytes")
    return text


def retries_of(max_attempts: int) -> int:
    """Attempts after the first, of so many in all.

    Raises:
        UsageError: there would be none.
    """
    if max_attempts < 1:
        raise UsageError(f"max_attempts is {max_attempts}: expected 1 or more")
    return max_attempts - 1


def limited(
    budget: Budget, time: Duration | None, tokens: int | None, cost: float | None
) -> Budget:
    """A budget with some limits said anew.

    Raises:
        UsageError: one of them is no limit.
    """
    try:
        return replace(
            budget,
            seconds=budget.seconds if time is None else argument_seconds("max_time", time),
            tokens=budget.tokens if tokens is None else tokens,
            cost=budget.cost if cost is None else cost,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
