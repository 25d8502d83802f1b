"""A task that was given up, whichever way it came to that. Pure.

It is kept in two files, and one reader reads both: a line of ``memory/dead-letters.jsonl`` says what the
last failure was, which later dead letters are compared with; an entry of ``queue/dead-letter.json``, which
other programs write as well, says what was tried and how it may be recovered. A field that is missing or of
another form than expected spoils only itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from loki.base import codec
from loki.base.codec import kept
from loki.base.markup import bullets, code, cut, inline, numbered, paragraphs
from loki.base.secret import masked
from loki.base.yaml_text import entity, page
from loki.memory import advice
from loki.memory.attempt import Attempt
from loki.recognition.failure import Failure, is_test_path

VERSION = 1
"""Of a line of ``memory/dead-letters.jsonl``; lines without one are read, too."""

Source: TypeAlias = Literal["", "loop", "queue", "pipeline", "recurring"]
"""How a task came to be given up; "" where nobody said."""

SPENT, UNRECOVERABLE = "retry_budget_exhausted", "unrecoverable_error"

SIMPLER, DEPENDENCY = "retry_with_simpler_approach", "dependency_blocked"
HUMAN, ABANDON = "requires_human_review", "permanent_abandon"
RESOLVED = "dependency_resolved"
"""What a dead letter's ``recovery_strategy`` may be; the last one once it is queued again."""

ERROR_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("test-failure", "runtime-error", "regression-detected"), "test_failure"),
    **dict.fromkeys(("timeout-error", "network-error", "rate-limit"), "timeout"),
    **dict.fromkeys(("import-not-found", "version-mismatch", "env-missing"), "dependency"),
}
"""By kind of failure; all else is ``validation``. Source: the specification."""

VALIDATION = "validation"

PAST = "dead_letter"
"""Where a task that was queued again keeps what its dead letter said: the next one goes on with it."""

ALIKE_CHARACTERS = 50
"""Errors that begin with the same 50 characters are alike, as the closed-loop document has it."""

MOST_MENTIONS = 40
"""Places kept of one dead letter; chosen, not measured."""

MOST_KEPT = 2000
"""Characters kept of an excerpt, and most tests and frames; chosen so that thousands are read fast."""

MOST_TOLD = 4000
"""Characters of an attempt's approach and of its error; chosen, not measured."""


def _counted(number: int | float) -> int:
    if not 0 <= number <= codec.LARGEST:
        raise ValueError("expected 0 or more")
    return int(number)


Count = Annotated[int | float, _counted]
"""A count: another program may write 12.0."""


def _confident(number: float) -> float:
    _counted(number)
    return number


def _named(error_type: str) -> str:
    return error_type or VALIDATION


def _known(failure: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return failure or None


def _changed(files: Any) -> dict[str, str]:
    """Paths, and how each was changed; earlier versions kept the paths alone."""
    if isinstance(files, list | tuple):
        files = {path: "" for path in files if isinstance(path, str)}
    pairs = files.items() if isinstance(files, Mapping) else ()
    return {path: how for path, how in pairs if isinstance(how, str)}


@dataclass(frozen=True, slots=True)
class Mention:
    """A place that the failures of a task named.

    Attributes:
        path: relative to the project.
        line: from 1, or None; name: the function, or None.
    """

    path: str
    line: int | None = kept(default=None, form=Count | None)
    name: str | None = None


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An attempt as a dead letter has it.

    Attributes:
        attempt_number: in the task's life, 1 or more.
        timestamp: ISO 8601 UTC, or "".
        approach: what was tried.
        error_type: test_failure, timeout, dependency or validation.
        error_message: what failed.
        agent_id: who tried.
    """

    attempt_number: int = kept(plain=0, form=Count)
    timestamp: str = ""
    approach: str = ""
    error_type: Annotated[str, _named] = VALIDATION
    error_message: str = ""
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that was given up.

    Attributes:
        task_id, title, description: the task.
        source: how it came to that.
        at: when it was given up, ISO 8601 UTC.
        reason: retry_budget_exhausted or unrecoverable_error; "" where nobody said.
        pattern, kind, confidence: of the last failure's match; None and 0 where there is none.
        extension, code: of the last failure, or None.
        error: how its normalized message begins.
        signature: ``pattern:extension:slug``.
        message: the last failure's message.
        failure: the last failure's fields, shortened; see `recognized`.
        strategies: what was tried, in order.
        mentions: the places that its failures named.
        files: the paths that its attempts changed, and how: created, modified or deleted; "" unknown.
        attempts: of its life, oldest first, as the queue's file tells of them.
        failure_count: failures that count: those since a new approach was last found.
        uncounted: attempts that count no more, as an earlier dead letter of the task said.
        lifetime_attempts: attempts over its life, as far as the queue knows.
        first_failure, last_failure: ISO 8601 UTC, or "".
        error_summary: one sentence.
        recovery_strategy: as the specification names them; "" where nobody said.
        requeues: how often it was brought back.
        simpler_task: id of the task of reduced scope that was made of it, or "".
        recovered: why it was last brought back, as its review said so, or "".
        other: fields that another program or a newer version wrote; kept.
    """

    task_id: str
    title: str = ""
    description: str = ""
    source: Source = kept(default="", form=str)  # noqa: RUF009 - a field
    at: str = ""
    reason: str = ""
    pattern: str | None = None
    kind: str = advice.UNKNOWN
    confidence: Annotated[float, _confident] = 0.0
    extension: str | None = None
    code: str | None = None
    error: str = ""
    signature: str = ""
    message: str = ""
    failure: Annotated[Mapping[str, Any] | None, _known] = None
    strategies: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    files: Mapping[str, str] = kept(default_factory=dict, form=Annotated[Any, _changed])
    attempts: tuple[PastAttempt, ...] = ()
    failure_count: int = kept(default=0, plain=None, form=Count)
    uncounted: int = kept(default=0, form=Count)
    lifetime_attempts: int = kept(default=0, form=Count)
    first_failure: str = ""
    last_failure: str = ""
    error_summary: str = ""
    recovery_strategy: str = ""
    requeues: int = kept(default=0, form=Count)
    simpler_task: str = ""
    recovered: str = ""
    other: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        task_id: str,
        title: str,
        attempts: Sequence[Attempt],
        failure: Failure,
        reason: str,
        at: str,
        files: Mapping[str, str],
        source: Source = "",
    ) -> DeadLetter:
        """The dead letter of a loop that ended.

        Args:
            task_id, title: the task.
            attempts: of this execution, oldest first.
            failure: the last failure.
            reason: retry_budget_exhausted or unrecoverable_error.
            at: ISO 8601 UTC.
            files: paths changed, and how: created, modified or deleted.
            source: how it came to that.
        """
        return cls(
            task_id,
            title,
            source=source,
            at=at,
            reason=reason,
            pattern=failure.match.pattern if failure.match else None,
            kind=failure.kind,
            confidence=failure.confidence,
            extension=failure.extension,
            code=failure.error_code,
            error=failure.normalized[:ALIKE_CHARACTERS],
            signature=failure.signature,
            message=failure.message[:MOST_KEPT],
            failure=shortened(failure),
            strategies=tuple(dict.fromkeys(a.strategy_used for a in attempts if a.strategy_used)),
            mentions=tuple(_mentions(attempts, failure)),
            files=dict(files),
        )

    @classmethod
    def read(cls, data: Mapping[str, Any], **known: Any) -> DeadLetter:
        """What a line of the log or an entry of the queue says, whoever wrote it, and when.

        Args:
            data: the line or the entry.
            known: fields that are known otherwise.

        Raises:
            ValueError: it names no task.

        Example:
            >>> letter = DeadLetter.read({"task_id": "a", "attempts": [{"error_message": "boom"}, 3]})
            >>> letter.total_attempts, letter.attempts[0].error_message, letter.failure_count
            (1, 'boom', 1)
        """
        task_id = known.pop("task_id", None) or data.get("task_id") or data.get("task")
        if not (task_id and isinstance(task_id, str)):
            raise ValueError("not a dead letter: it names no task")
        found, past = _read({**data, "task_id": task_id}), past_of(data)
        attempts = found.attempts or past.attempts
        count, why = found.failure_count, _within(data, "recovered").get("reason")
        values: dict[str, Any] = {
            "attempts": attempts,
            "failure_count": len(attempts) if count is None else count,
            "requeues": past.requeues,
            "recovered": why if isinstance(why, str) else "",
            "other": {k: value for k, value in found.other.items() if k not in _ELSEWHERE},
        }
        return replace(found, **{**values, **known})

    @property
    def total_attempts(self) -> int:
        """Attempts over its life, also those that count no more."""
        return max(len(self.attempts), self.failure_count, self.lifetime_attempts)

    def recognized(self) -> Failure | None:
        """The last failure; None where nothing readable is kept of it."""
        try:
            return Failure.from_dict(self.failure) if self.failure else None
        except ValueError:
            return None

    def with_failure(self, logged: DeadLetter | None) -> DeadLetter:
        """With what the log says of its last failure.

        Args:
            logged: what the log says of the task; None: nothing.
        """
        if logged is None:
            return self
        return replace(self, **{name: getattr(logged, name) for name in _OF_THE_FAILURE})

    def to_dict(self) -> dict[str, Any]:
        """Its line in the log, without secrets; what is not known is left out."""
        said = {name: value for name, value in asdict(self).items() if value}
        other, task_id = said.pop("other", {}), said.pop("task_id")
        data: dict[str, Any] = masked({**other, "version": VERSION, "task": task_id, **said})
        return data


_OF_THE_FAILURE = (
    "source", "at", "reason", "pattern", "kind", "confidence", "extension", "code", "error", "signature",
    "message", "failure", "strategies", "mentions", "files",
)  # fmt: skip


def past_of(data: Mapping[str, Any]) -> DeadLetter:
    """What the earlier dead letter of a task said; nothing where it had none.

    Args:
        data: what the queue's file says of the task.
    """
    found = _read({**_within(data, PAST), "task_id": ""})
    return replace(found, failure_count=found.failure_count or 0, recovered="")


def blocked_reason(trigger: str) -> str:
    """Why a task is blocked, of what ended its loop."""
    return SPENT if trigger in {SPENT, ""} else UNRECOVERABLE


def alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two dead letters are similar: same pattern, same extension, same code or error.

    Args:
        a: what `DeadLetter.to_dict` gave; older lines have the same keys.
        b: the other one.
    """
    if a.get("pattern") != b.get("pattern") or a.get("extension") != b.get("extension"):
        return False
    same_code = a.get("code") is not None and a.get("code") == b.get("code")
    return same_code or (a.get("error") or "") == (b.get("error") or "")


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


def attempts_of(life: Sequence[Attempt], before: Sequence[PastAttempt] = ()) -> list[PastAttempt]:
    """The failed attempts of a task's life as a dead letter has them, numbered anew.

    Args:
        life: those that loki recorded, oldest first.
        before: those that an earlier dead letter told of; what loki did not record of them is kept.
    """
    recorded = [_attempt(one) for one in life if one.result == "failed"]
    known = {(one.timestamp, one.error_message) for one in recorded}
    told = [one for one in before if (one.timestamp, one.error_message) not in known]
    in_order = sorted((*told, *recorded), key=lambda one: one.timestamp)
    return [replace(one, attempt_number=number) for number, one in enumerate(in_order, 1)]


def error_type(failure: Failure | None) -> str:
    """What kind of error a dead letter calls a failure.

    Example:
        >>> error_type(Failure.of("ModuleNotFoundError: No module named 'yaml'"))
        'dependency'
    """
    return ERROR_TYPES.get(failure.kind, VALIDATION) if failure else VALIDATION


def _attempt(attempt: Attempt) -> PastAttempt:
    failure = attempt.recognized()
    return PastAttempt(
        attempt.attempt,
        attempt.timestamp,
        attempt.action[:MOST_TOLD],
        error_type(failure),
        (failure.excerpt or failure.said if failure else attempt.error or "")[:MOST_TOLD],
        attempt.agent or attempt.model or "",
    )


def _mentions(attempts: Sequence[Attempt], last: Failure) -> list[Mention]:
    failures = [a.recognized() for a in attempts if a.failure and not a.infrastructure]
    named = [place for f in (*failures, last) if f for place in _places(f)]
    return list(dict.fromkeys(named))[-MOST_MENTIONS:]


def _places(failure: Failure) -> Iterator[Mention]:
    frames = [f for f in failure.frames if f.in_project]
    yield from (Mention(f.path, f.line, f.function) for f in frames)
    if failure.path and all((f.path, f.line) != (failure.path, failure.line) for f in frames):
        yield Mention(failure.path, failure.line)


# --- Reading ----------------------------------------------------------------------------------------


def _within(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object that a task keeps under a name, in a dead letter also below what was asked."""
    inner = data.get("task_data")
    found = data.get(name) or (inner.get(name) if isinstance(inner, Mapping) else None)
    return found if isinstance(found, Mapping) else {}


def _read(data: Mapping[str, Any]) -> DeadLetter:
    """What of it can be read; no count of failures is None."""
    found, _ = codec.read(DeadLetter, data)
    assert found is not None
    numbered = enumerate(found.attempts, 1)
    attempts = (replace(one, attempt_number=one.attempt_number or n) for n, one in numbered)
    return replace(found, attempts=tuple(attempts))


_ELSEWHERE = frozenset({"version", "task", "task_data", PAST})
"""What of a line or an entry stands in another field, or is made anew."""


# --- The page that tells people of it: ``dead-letter-<task_id>.md`` -----------------------------------


def page_name(task_id: str) -> str:
    """Name of the page in a store."""
    return f"tasks/{task_id}/dead-letter-{task_id}.md"


def render_page(
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
    fields = {
        **entity("session.current", f"dead-letter.{letter.task_id}", "dead-letter"),
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
    return page(masked(fields), sections)


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
        "place": code(place_of(failure.path, failure.line)) if failure.path else "",
        "file": code(failure.path) if failure.path else "",
        "test": code(failure.tests[0]) if failure.tests else "the failing test",
        "name": code(function) if function else "",
    }


def place_of(path: str, line: int | None) -> str:
    """A path, with its line where that is known."""
    return f"{path}:{line}" if line else path


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
        places = list(dict.fromkeys(code(place_of(m.path, m.line)) for m in reversed(other)))
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
    if named and files and not is_test_path(named) and os.path.basename(named) not in files:
        lines.append(f"{code(named)}, where it fails, was not changed in any attempt")
    return lines
