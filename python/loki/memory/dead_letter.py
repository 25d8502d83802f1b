"""The page of a task that ran out of attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loki.memory.attempt import Attempt
from loki.memory.page import front_matter
from loki.recognition.failure import Failure

ALIKE_CHARACTERS = 50
"""Errors that begin with the same 50 characters are alike, as the closed-loop document has it."""

STEPS: Mapping[str, str] = {
    "lint-error": "Run the linter by hand; what its own fix command leaves over needs a decision.",
    "type-error": "Look at the types on both sides of the line; the declaration may be what is wrong.",
    "test-failure": "Run the failing test alone and compare what it expects with what the code is for.",
    "import-not-found": "See whether the module is installed, misspelt, or missing from the manifest.",
    "syntax-error": "Open the file at the line; the fault is often in the line before.",
    "timeout-error": "Run the check by hand with a longer time-out and see where it stands still.",
}
"""A first thing to do by hand, by kind of failure."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that ran out of attempts.

    Attributes:
        task_id, title: the task.
        attempts: of this execution, oldest first.
        failure: the last failure.
        reason: retry_budget_exhausted or unrecoverable_error.
        blocked_at: ISO 8601 UTC.
        files: paths changed.
    """

    task_id: str
    title: str
    attempts: Sequence[Attempt]
    failure: Failure
    reason: str
    blocked_at: str
    files: Sequence[str]

    @property
    def likeness(self) -> dict[str, Any]:
        """What makes two dead letters similar; kept with the task."""
        failure = self.failure
        return {
            "pattern": failure.match.pattern if failure.match else None,
            "extension": failure.extension,
            "code": failure.error_code,
            "error": failure.normalized[:ALIKE_CHARACTERS],
            "signature": failure.signature,
        }


def alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two dead letters are similar: same pattern, same extension, same code or error."""
    if a.get("pattern") != b.get("pattern") or a.get("extension") != b.get("extension"):
        return False
    same_code = a.get("code") is not None and a.get("code") == b.get("code")
    return same_code or a.get("error") == b.get("error")


def render(letter: DeadLetter, similar: Sequence[str] = ()) -> str:
    """The page ``dead-letter-<task_id>.md``.

    Args:
        letter: the task.
        similar: ids of tasks whose dead letters are similar.
    """
    match = letter.failure.match
    strategies = list(dict.fromkeys(a.strategy_used for a in letter.attempts if a.strategy_used))
    head = front_matter(
        {
            "entity_name": f"session.current.dead-letter.{letter.task_id}",
            "namespace": "session.current",
            "category": "dead-letter",
            "task_id": letter.task_id,
            "original_task": letter.title,
            "total_attempts": len(letter.attempts),
            "final_pattern": match.pattern if match else None,
            "strategies_exhausted": strategies,
            "blocked_at": letter.blocked_at,
            "blocked_reason": letter.reason,
            "similar_failures": len(similar),
            "error_signature": letter.failure.signature,
            "tags": ["dead-letter", "blocked"],
        }
    )
    sections = [
        f"# Dead letter: {letter.title}",
        "## Task description\n\n" + letter.title,
        "## Error chain\n\n" + error_chain(letter.attempts),
        "## Files modified\n\n" + bullets(letter.files),
        "## Suggested manual steps\n\n" + _steps(letter),
        "## Context for retry\n\n" + _context(letter, strategies),
    ]
    if similar:
        sections.insert(4, "## Similar failures\n\n" + bullets(similar))
    return head + "\n" + "\n\n".join(sections) + "\n"


def error_chain(attempts: Sequence[Attempt]) -> str:
    """What was done and what came of it, attempt by attempt."""
    parts = []
    seen: set[str] = set()
    for attempt in attempts:
        pattern = attempt.pattern_matched or "none"
        again = " (same)" if pattern in seen else ""
        seen.add(pattern)
        parts.append(
            f"### Attempt {attempt.attempt} ({attempt.timestamp[11:19]})\n\n"
            f"- **Action:** {' '.join(attempt.action.split()) or 'none'}\n"
            f"- **Error:** {' '.join((attempt.error or 'none').split())}\n"
            f"- **Pattern:** {pattern}{again}\n"
            f"- **Strategy:** {attempt.strategy_used or 'none left'}"
        )
    return "\n\n".join(parts) or "No attempt was made."


def bullets(items: Sequence[str]) -> str:
    """A Markdown list; "None." where there is nothing."""
    return "\n".join(f"- {item}" for item in items) or "None."


def _steps(letter: DeadLetter) -> str:
    failure = letter.failure
    kind = failure.match.kind if failure.match else ""
    steps = [STEPS.get(kind, "Run the failing check by hand and read its whole output.")]
    if failure.path:
        where = f"{failure.path}:{failure.line}" if failure.line else failure.path
        steps.append(f"Start at `{where}`.")
    steps.append(f"`loki show {letter.task_id}` tells every attempt.")
    steps.append(f"`loki undo {letter.task_id}` restores the files as they were before the task.")
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def _context(letter: DeadLetter, strategies: Sequence[str]) -> str:
    errors = list(dict.fromkeys(a.error for a in letter.attempts if a.error))
    lines = [f"- The last error: {letter.failure.message}"]
    lines.append(f"- Different errors met: {len(errors)} in {len(letter.attempts)} attempts")
    lines.append(f"- Strategies that did not help: {', '.join(strategies) or 'none was tried'}")
    return "\n".join(lines)
