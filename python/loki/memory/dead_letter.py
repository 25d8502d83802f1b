"""A task that ran out of attempts: what is kept of it, what makes two alike, and its page. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from loki.base.markdown import bullets, code, cut, inline, paragraphs
from loki.base.secret import masked
from loki.memory import advice
from loki.memory.attempt import Attempt
from loki.memory.page import front_matter
from loki.recognition.failure import Failure

ALIKE_CHARACTERS = 50
"""Errors that begin with the same 50 characters are alike, as the closed-loop document has it."""

SPENT, UNRECOVERABLE = "retry_budget_exhausted", "unrecoverable_error"

MOST_MENTIONS = 40
"""Places kept of one dead letter; chosen, not measured."""

MOST_KEPT = 2000
"""Characters kept of an excerpt, and most tests and frames; chosen so that thousands are read fast."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A place that the failures of a task named.

    Attributes:
        path: relative to the project.
        line: from 1, or None; name: the function, or None.
    """

    path: str
    line: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a dead letter, so that later ones need not read its attempts.

    Attributes:
        task: id of the task; title: what was to be achieved.
        at: when it was given up, ISO 8601 UTC.
        pattern, kind, confidence: of the last failure's match; None and 0 where there is none.
        extension, code: of the last failure, or None.
        error: how its normalized message begins.
        signature: ``pattern:extension:slug``.
        message: the last failure's message.
        strategies: what was tried, in order.
        mentions: the places that its failures named.
        files: the paths that its attempts changed.
        failure: the last failure's fields, shortened.
    """

    task: str
    title: str = ""
    at: str = ""
    pattern: str | None = None
    kind: str = advice.UNKNOWN
    confidence: float = 0.0
    extension: str | None = None
    code: str | None = None
    error: str = ""
    signature: str = ""
    message: str = ""
    strategies: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    files: tuple[str, ...] = ()
    failure: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, without secrets."""
        data: dict[str, Any] = masked(asdict(self))
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """What `to_dict` gave, by this or an older version of loki.

        Raises:
            ValueError: it is no dead letter.
        """
        known = {name: data[name] for name in (f.name for f in fields(cls)) if name in data}
        try:
            known["strategies"] = tuple(known.get("strategies") or ())
            known["files"] = tuple(known.get("files") or ())
            for name in ("task", "title", "at", "error", "signature", "message"):
                if name in known:
                    known[name] = str(known[name] or "")
            known["confidence"] = float(known.get("confidence") or 0)
            known["mentions"] = tuple(Mention(**one) for one in known.get("mentions") or ())
            return cls(**known)
        except (TypeError, ValueError) as error:
            raise ValueError(f"not a dead letter: {error}") from error


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that ran out of attempts.

    Attributes:
        task_id, title: the task.
        attempts: of this execution, oldest first.
        failure: the last failure.
        reason: retry_budget_exhausted or unrecoverable_error.
        blocked_at: ISO 8601 UTC.
        files: paths changed, and how: created, modified or deleted.
    """

    task_id: str
    title: str
    attempts: Sequence[Attempt]
    failure: Failure
    reason: str
    blocked_at: str
    files: Mapping[str, str]

    @property
    def strategies(self) -> list[str]:
        """What was tried, in order."""
        return list(dict.fromkeys(a.strategy_used for a in self.attempts if a.strategy_used))

    @property
    def record(self) -> Record:
        """What is kept of it."""
        failure, match = self.failure, self.failure.match
        return Record(
            self.task_id,
            self.title,
            self.blocked_at,
            match.pattern if match else None,
            failure.kind,
            failure.confidence,
            failure.extension,
            failure.error_code,
            failure.normalized[:ALIKE_CHARACTERS],
            failure.signature,
            failure.message[:MOST_KEPT],
            tuple(self.strategies),
            tuple(_mentions(self)),
            tuple(self.files)[:MOST_MENTIONS],
            shortened(failure),
        )


def blocked_reason(trigger: str) -> str:
    """Why a task is blocked, of what ended its loop."""
    return SPENT if trigger in {SPENT, ""} else UNRECOVERABLE


def alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two dead letters are similar: same pattern, same extension, same code or error.

    Args:
        a: what `Record.to_dict` gave; older records have the same keys.
        b: the other one.
    """
    if a.get("pattern") != b.get("pattern") or a.get("extension") != b.get("extension"):
        return False
    same_code = a.get("code") is not None and a.get("code") == b.get("code")
    return same_code or a.get("error") == b.get("error")


def is_test_file(path: str) -> bool:
    """Whether a path looks like a test's.

    Example:
        >>> is_test_file("tests/api.py"), is_test_file("src/latest.ts")
        (True, False)
    """
    return bool(re.search(r"(^|[/_.-])(tests?|spec)([/_.-]|$)|Tests?\.", path))


def shortened(failure: Failure) -> dict[str, Any]:
    """A failure's fields as they are kept: what another failure is compared with."""
    data = failure.to_dict()
    for name in ("matches", "excerpt_lines", "site_lines"):
        data.pop(name)
    data["excerpt"] = data["excerpt"][:MOST_KEPT]
    data["message"] = data["message"][:MOST_KEPT]
    data["tests"] = data["tests"][:MOST_MENTIONS]
    data["frames"] = [f for f in data["frames"] if f["in_project"]][-MOST_MENTIONS:]
    return data


def _mentions(letter: DeadLetter) -> list[Mention]:
    failures = [a.recognized() for a in letter.attempts if a.failure and not a.infrastructure]
    named = [place for f in (*failures, letter.failure) if f for place in _places(f)]
    return list(dict.fromkeys(named))[-MOST_MENTIONS:]


def _places(failure: Failure) -> Iterator[Mention]:
    frames = [f for f in failure.frames if f.in_project]
    yield from (Mention(f.path, f.line, f.function) for f in frames)
    if failure.path and all((f.path, f.line) != (failure.path, failure.line) for f in frames):
        yield Mention(failure.path, failure.line)


# --- the page -------------------------------------------------------------------------------------


def render(letter: DeadLetter, similar: int = 0, suggestions: str = "", learning: str = "") -> str:
    """The page ``dead-letter-<task_id>.md``.

    Args:
        letter: the task.
        similar: how many tasks have similar dead letters.
        suggestions: the section drawn from them, Markdown, or "".
        learning: the section on a candidate for a pattern, Markdown, or "".
    """
    match = letter.failure.match
    head = front_matter(
        masked(
            {
                "entity_name": f"session.current.dead-letter.{letter.task_id}",
                "namespace": "session.current",
                "category": "dead-letter",
                "task_id": letter.task_id,
                "original_task": letter.title,
                "total_attempts": len(letter.attempts),
                "final_pattern": match.pattern if match else None,
                "strategies_exhausted": letter.strategies,
                "blocked_at": letter.blocked_at,
                "blocked_reason": letter.reason,
                "similar_failures": similar,
                "error_signature": letter.failure.signature,
                "tags": ["dead-letter", "blocked"],
            }
        )
    )
    sections = [
        f"# Dead letter: {inline(letter.title)}",
        "## Task description\n\n" + paragraphs(letter.title),
        "## Error chain\n\n" + error_chain(letter.attempts, last="exhausted"),
        "## Files modified\n\n"
        + bullets(f"{code(p)} ({inline(how)})" for p, how in letter.files.items()),
        suggestions,
        "## Suggested manual steps\n\n" + numbered(manual_steps(letter)),
        "## Context for retry\n\n" + bullets(_context(letter)),
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


def numbered(items: Iterable[str]) -> str:
    """A numbered Markdown list."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def known_of(failure: Failure | None, attempts: Sequence[Attempt]) -> dict[str, str]:
    """What steps may ask for, Markdown: place, file, test, name and command of a failure."""
    checks = [check for attempt in attempts for check in attempt.checks if not check.passed]
    known = {"command": code(checks[-1].command) if checks else "the failing check"}
    if failure is None:
        return known
    function = next((f.function for f in reversed(failure.frames) if f.in_project), None)
    return known | {
        "place": _place(failure),
        "file": code(failure.path) if failure.path else "",
        "test": code(failure.tests[0]) if failure.tests else "the failing test",
        "name": code(function) if function else "",
    }


def manual_steps(letter: DeadLetter) -> list[str]:
    """What a person can do: what is known of the kind of failure, with files and lines."""
    failure = letter.failure
    known = known_of(failure, letter.attempts)
    steps = advice.of(failure.kind).to_do(known)
    if known["place"] and not any(known["place"] in step for step in steps):
        steps.insert(0, f"Start at {known['place']}.")
    other = [m for m in _mentions(letter) if m.path != failure.path]
    if other:
        places = list(dict.fromkeys(_shown(m.path, m.line) for m in reversed(other)))
        steps.append(f"The failures also named {', '.join(places[:3])}.")
    steps.append(f"{code(f'loki show {letter.task_id}')} tells every attempt.")
    undo = code(f"loki undo {letter.task_id}")
    steps.append(f"{undo} restores the files as they were before the task.")
    return steps


def _place(failure: Failure) -> str:
    return _shown(failure.path, failure.line) if failure.path else ""


def _shown(path: str, line: int | None) -> str:
    return code(f"{path}:{line}" if line else path)


def _context(letter: DeadLetter) -> list[str]:
    errors = list(dict.fromkeys(a.error for a in letter.attempts if a.error))
    actions = list(dict.fromkeys(inline(a.action) for a in letter.attempts if a.action.strip()))
    lines = [f"The last error: {inline(str(letter.failure))}"]
    if len(letter.attempts) > 1:
        met = "the same one each time" if len(errors) == 1 else f"{len(errors)} different"
        lines.append(f"Errors met in {len(letter.attempts)} attempts: {met}")
    if actions:
        lines.append(f"Tried already: {'; '.join(cut(action, 100) for action in actions[-5:])}")
    helpless = ", ".join(map(inline, letter.strategies)) or "none"
    lines.append(f"Strategies that did not help: {helpless}")
    files = {os.path.basename(path) for path in letter.files}
    named = letter.failure.path
    # A test that fails is seldom what should have been changed.
    if named and files and not is_test_file(named) and os.path.basename(named) not in files:
        lines.append(f"{code(named)}, where it fails, was not changed in any attempt")
    return lines
