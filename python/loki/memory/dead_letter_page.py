"""The page that tells people of a task that was given up: ``dead-letter-<task_id>.md``. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

from loki.base.markdown import bullets, code, cut, inline, numbered, paragraphs
from loki.base.secret import masked
from loki.memory import advice
from loki.memory.attempt import Attempt
from loki.memory.dead_letter import DeadLetter, is_test_file
from loki.memory.front_matter import front_matter
from loki.recognition.failure import Failure


def name(task_id: str) -> str:
    """Name of the page in a store."""
    return f"tasks/{task_id}/dead-letter-{task_id}.md"


def render(
    letter: DeadLetter,
    attempts: Sequence[Attempt],
    similar: int = 0,
    suggestions: str = "",
    learning: str = "",
) -> str:
    """The page, in Markdown.

    Args:
        letter: the task.
        attempts: of the execution that ended, oldest first.
        similar: how many tasks have similar dead letters.
        suggestions: the section drawn from them, Markdown, or "".
        learning: the section on a candidate for a pattern, Markdown, or "".
    """
    head = front_matter(
        masked(
            {
                "entity_name": f"session.current.dead-letter.{letter.task_id}",
                "namespace": "session.current",
                "category": "dead-letter",
                "task_id": letter.task_id,
                "original_task": letter.title,
                "total_attempts": len(attempts),
                "final_pattern": letter.pattern,
                "strategies_exhausted": list(letter.strategies),
                "blocked_at": letter.at,
                "blocked_reason": letter.reason,
                "similar_failures": similar,
                "error_signature": letter.signature,
                "tags": ["dead-letter", "blocked"],
            }
        )
    )
    failure = letter.recognized()
    sections = [
        f"# Dead letter: {inline(letter.title)}",
        "## Task description\n\n" + paragraphs(letter.title),
        "## Error chain\n\n" + error_chain(attempts, last="exhausted"),
        "## Files modified\n\n"
        + bullets(f"{code(p)} ({inline(how)})" for p, how in letter.files.items()),
        suggestions,
        "## Suggested manual steps\n\n" + numbered(_manual_steps(letter, failure, attempts)),
        "## Context for retry\n\n" + bullets(_context(letter, failure, attempts)),
        learning,
    ]
    return head + "\n" + "\n\n".join(section for section in sections if section) + "\n"


def error_chain(attempts: Sequence[Attempt], last: str = "none left") -> str:
    """What was done and what came of it, attempt by attempt.

    Args:
        attempts: oldest first.
        last: what is said of the strategy where none followed.
    """
    parts = []
    answers: dict[str, list[str]] = {}
    for attempt in attempts:
        pattern = attempt.pattern_matched or "none"
        again = " (same)" if attempt.pattern_matched in answers else ""
        before = answers.setdefault(pattern, [])
        strategy = attempt.strategy_used
        other = " (alternate)" if strategy and before and strategy not in before else ""
        if strategy:
            before.append(strategy)
        parts.append(
            f"### Attempt {attempt.attempt} ({inline(attempt.timestamp[11:19])})\n\n"
            f"- **Action:** {inline(attempt.action) or 'none'}\n"
            f"- **Error:** {inline(attempt.error or '') or 'none'}\n"
            f"- **Pattern:** {inline(pattern)}{again}\n"
            f"- **Strategy:** {inline(strategy) if strategy else last}{other}"
        )
    return "\n\n".join(parts) or "No attempt was made."


def known_of(failure: Failure | None, attempts: Sequence[Attempt]) -> dict[str, str]:
    """What steps may ask for, Markdown: place, file, test, name and command of a failure."""
    checks = [check for attempt in attempts for check in attempt.checks if not check.passed]
    known = {"command": code(checks[-1].command) if checks else "the failing check"}
    if failure is None:
        return known
    function = next((f.function for f in reversed(failure.frames) if f.in_project), None)
    return known | {
        "place": _place(failure.path, failure.line) if failure.path else "",
        "file": code(failure.path) if failure.path else "",
        "test": code(failure.tests[0]) if failure.tests else "the failing test",
        "name": code(function) if function else "",
    }


def _place(path: str, line: int | None) -> str:
    return code(f"{path}:{line}" if line else path)


def _manual_steps(
    letter: DeadLetter, failure: Failure | None, attempts: Sequence[Attempt]
) -> list[str]:
    """What a person can do: what is known of the kind of failure, with files and lines."""
    known = known_of(failure, attempts)
    steps = advice.of(letter.kind).to_do(known)
    place = known.get("place")
    if place and not any(place in step for step in steps):
        steps.insert(0, f"Start at {place}.")
    other = [m for m in letter.mentions if failure is None or m.path != failure.path]
    if other:
        places = list(dict.fromkeys(_place(m.path, m.line) for m in reversed(other)))
        steps.append(f"The failures also named {', '.join(places[:3])}.")
    steps.append(f"{code(f'loki show {letter.task_id}')} tells every attempt.")
    undo = code(f"loki undo {letter.task_id}")
    steps.append(f"{undo} restores the files as they were before the task.")
    return steps


def _context(letter: DeadLetter, failure: Failure | None, attempts: Sequence[Attempt]) -> list[str]:
    errors = list(dict.fromkeys(a.error for a in attempts if a.error))
    actions = list(dict.fromkeys(inline(a.action) for a in attempts if a.action.strip()))
    lines = [f"The last error: {inline(str(failure or letter.message))}"]
    if len(attempts) > 1:
        met = "the same one each time" if len(errors) == 1 else f"{len(errors)} different"
        lines.append(f"Errors met in {len(attempts)} attempts: {met}")
    if actions:
        lines.append(f"Tried already: {'; '.join(cut(action, 100) for action in actions[-5:])}")
    helpless = ", ".join(map(inline, letter.strategies)) or "none"
    lines.append(f"Strategies that did not help: {helpless}")
    files = {os.path.basename(path) for path in letter.files}
    named = failure.path if failure else None
    # A test that fails is seldom what should have been changed.
    if named and files and not is_test_file(named) and os.path.basename(named) not in files:
        lines.append(f"{code(named)}, where it fails, was not changed in any attempt")
    return lines
