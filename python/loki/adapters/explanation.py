"""What ``loki explain`` says: gathered from the rooms, as data and as text."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import signal as signals
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from loki.base.path_exists import path_exists
from loki.base.secret import mask_output, mask_secrets, masked
from loki.memory.tool_failure import EarlierFailure, ToolFailures, recall, recall_calls
from loki.recognition.failure import Failure, recognize
from loki.recognition.fix import fix_for, fixes_of
from loki.recognition.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from loki.workspace import Workspace

_TESTS_SHOWN, _REASONS_SHOWN = 5, 4
_LINES_SHOWN = 24  # of an excerpt, which may have 40; --json has all
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ?")  # before each line, in logs of CI
_WIDEST = 300  # characters shown of a line; a minified file has lines of a million
_QUOTED = 60  # characters shown of what a signal hit


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be explained, and what is known of it.

    Attributes:
        text: the output.
        source: a file's name, ``"stdin"``, ``"text"`` or ``"command"``.
        command: what was run, as typed, or None.
        exit_code: how it ended, or None.
        signal: the signal that ended it, or None.
        root: the project's folder where it ran, as paths in the output have it; None: it is here.
        left_out: bytes missing in the middle of a text that was too long.
        line: from a line of the text to its line in what was printed.
    """

    text: bytes
    source: str
    command: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    root: str | None = None
    left_out: int = 0
    line: Callable[[int], int] = lambda number: number


@dataclass(frozen=True, slots=True)
class Reason:
    """A signal that hit.

    Attributes:
        signal: as its pattern has it.
        text: what it hit, or what is known without the text ("tool pytest").
        line: where, from 1; None outside the text.
    """

    signal: str
    text: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is said of an output."""

    asked: Asked
    failure: Failure
    where: str | None
    reasons: tuple[Reason, ...]
    seen: tuple[EarlierFailure, ...]
    next: dict[str, Any]

    @property
    def verdict(self) -> str:
        """``failed``; ``passed`` by its exit code; ``unclear``: no rule knows a failure in it."""
        if self.asked.exit_code == 0 or not self.failure.message:
            return "unclear" if self.asked.exit_code else "passed"
        failure = self.failure
        known = (failure.match, failure.error_type, failure.error_code, failure.path, failure.tests)
        return "failed" if any(known) else "unclear"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it; the keys are described in ``docs/failures.md``."""
        asked, failure = self.asked, self.failure
        return {
            **masked(failure.to_dict()),
            "verdict": self.verdict,
            "source": asked.source,
            "command": asked.command and mask_secrets(asked.command),
            "exit_code": asked.exit_code,
            "signal": signals.Signals(asked.signal).name if asked.signal else None,
            "left_out_bytes": asked.left_out,
            "where": self.where,
            "kind": failure.kind,
            "pattern": failure.pattern_id,
            "confidence": failure.confidence,
            "band": failure.match.band if failure.match else "none",
            "why": masked([dataclasses.asdict(reason) for reason in self.reasons]),
            "seen_before": masked([dataclasses.asdict(earlier) for earlier in self.seen]),
            "next": masked(self.next),
        }


def explain(workspace: Workspace, asked: Asked) -> Explanation:
    """What failed in an output, whether it was seen before, and what to do next.

    Nothing is written: a project that has no ``.loki/`` has none afterwards.

    Args:
        workspace: of the project that the output comes from.
        asked: the output.
    """
    asked = replace(asked, text=mask_output(asked.text))
    read = recognize(
        asked.text,
        command=asked.command,
        exit_code=asked.exit_code,
        root=asked.root or str(workspace.root),
        patterns=workspace.patterns,
        exists=path_exists(asked.root or workspace.root),
    )
    failure, where = _renumbered(read, asked.line), _where(read, str(workspace.root))
    following = _next(workspace, failure, asked.command)
    seen = seen_before(workspace, failure)
    return Explanation(asked, failure, where, _reasons(read, asked), seen, following)


def seen_before(workspace: Workspace, failure: Failure) -> tuple[EarlierFailure, ...]:
    """The attempts and tool calls that failed the same way in a project, oldest first."""

    histories = ((task, workspace.history(task).attempts()) for task in workspace.tasks())
    both = *recall(histories, failure), *recall_calls(ToolFailures(workspace.store), failure)
    return tuple(sorted(both, key=lambda one: one.timestamp))


def _renumbered(failure: Failure, line: Callable[[int], int]) -> Failure:
    """The same with line numbers of the whole output, of which the middle was left out."""

    def both(lines: tuple[int, int] | None) -> tuple[int, int] | None:
        return (line(lines[0]), line(lines[1])) if lines else None

    return dataclasses.replace(
        failure,
        output_line=failure.output_line and line(failure.output_line),
        excerpt_lines=both(failure.excerpt_lines),
        site_lines=both(failure.site_lines),
    )


def _where(failure: Failure, root: str) -> str | None:
    """``path:line:column`` from the working folder, so that a terminal can open it."""
    if not failure.path:
        return None
    path, full = failure.path, os.path.join(root, failure.path)
    if os.path.exists(full):
        near = os.path.relpath(full)
        path = full if near.startswith("..") and os.path.isabs(path) else near
    return ":".join(str(part) for part in (path, failure.line, failure.column) if part)


def _reasons(failure: Failure, asked: Asked) -> tuple[Reason, ...]:
    if failure.match is None:
        return ()
    found = []
    match = failure.match
    spans = match.spans or ((0, 0),) * len(match.signals)
    for signal, (begin, end) in zip(match.signals, spans, strict=False):
        if begin == end:
            found.append(Reason(signal, _outside(signal, failure), None))
            continue
        line = asked.text.count(b"\n", 0, begin) + 1
        found.append(Reason(signal, _hit(asked.text, begin, end), asked.line(line)))
    return tuple(found)


def _hit(text: bytes, begin: int, end: int) -> str:
    """What a signal hit; the whole line where that is short, for a hit may be two letters."""
    first = max(text.rfind(b"\n", 0, begin) + 1, begin - _QUOTED)
    last = text.find(b"\n", end, end + _QUOTED)
    whole = " ".join(clean(text[first : last if last >= 0 else end + _QUOTED]).split())
    return whole if len(whole) <= _QUOTED else " ".join(clean(text[begin:end]).split())


def _outside(signal: str, failure: Failure) -> str:
    """What a signal hit that looks at what is known beside the text."""
    if signal == failure.tool_kind:
        return f"{failure.tool or 'the tool'} reports it as such"
    for name, value in (("code", failure.error_code), ("tool", failure.tool)):
        # They are of RE2; what Python's engine cannot read is shown as it is written.
        with suppress(re.error):
            if value and re.search(signal, value):
                return f"{name} {value}"
    return signal


def _next(workspace: Workspace, failure: Failure, command: str | None) -> dict[str, Any]:
    name = failure.strategy
    strategy = workspace.patterns.strategies.get(name)
    pattern = workspace.patterns.patterns.get(failure.pattern_id)
    person = name == "escalate" or (pattern is not None and pattern.non_retryable)
    fixable = name == "auto_fix" or (pattern is not None and pattern.auto_fixable)
    own = pattern.fix_command if pattern else None
    return {
        "strategy": name,
        "description": strategy.description if strategy else "",
        "steps": list(strategy.steps) if strategy else [],
        "fix_command": _fix(own, failure, command) if fixable else None,
        "to": "person" if person else "agent",
        "guidance": _guidance(failure) if person else None,
    }


def _guidance(failure: Failure) -> str | None:
    """What a person can do; nothing where there is nothing to say about this kind."""
    from loki.memory import advice
    from loki.memory.dead_letter import known_of

    found = advice.of(failure.pattern_id, failure.kind)
    return None if found == advice.of() else found.to_do(known_of(failure, ()))[0]


def _fix(own: str | None, failure: Failure, command: str | None) -> str | None:
    """The command that repairs it: the pattern's, that of what was run, or the tool's."""
    words: tuple[str, ...] | None = tuple(shlex.split(own)) if own else None
    if words is None and command:
        with suppress(ValueError):  # an open quote: it was typed for people, not for us
            words = fix_for(shlex.split(command))
    if words is None:
        words = next(iter(fixes_of(failure.tool or "")), None)
    if words is None or (any("{file}" in word for word in words) and not failure.path):
        return None
    return shlex.join(word.replace("{file}", failure.path or "") for word in words)


# --- As text ----------------------------------------------------------------------------------


def tell(said: Explanation) -> str:
    """The explanation for people, secrets masked."""
    failure = said.failure
    if said.verdict == "passed":
        return f"Nothing failed: {_passed(said.asked)}"
    if said.verdict == "unclear":
        return mask_secrets("\n".join(_unclear(said)))
    kind = failure.error_type or failure.error_code
    title = failure.message
    if kind and kind not in title:
        title = ": ".join(filter(None, (kind, title)))
    lines = [typer.style(_shown(title), bold=True)]
    if said.where:
        lines.append(_row("at", said.where))
    if failure.tool:
        code = failure.error_code if failure.error_code and failure.error_type else None
        lines.append(_row("tool", ", ".join(filter(None, [failure.tool, code]))))
    if failure.tests:
        lines.append(_row("tests", _first(failure.tests, _TESTS_SHOWN)))
    lines += [*_kind(said), *_seen(said.seen), *tell_next(said.next), "", *_excerpt(said)]
    return mask_secrets("\n".join(lines).rstrip("\n"))


def _passed(asked: Asked) -> str:
    if asked.exit_code == 0:
        return "exit code 0."
    return f"{asked.source} is empty." if not asked.text else f"{asked.source} is blank."


def _unclear(said: Explanation) -> list[str]:
    if not said.failure.message:
        return ["It failed without a word: there is no output to explain."]
    lines = ["No rule knows a failure in this output; its last line says:", *_excerpt(said, 3), ""]
    lines.append(_row("kind", "unknown: no pattern matched"))
    if said.asked.exit_code is None:
        lines.append(_row("next", "did it fail? If so, --command and --exit-code say more of it"))
        return lines
    return [*lines, *tell_next(said.next)]


def _kind(said: Explanation) -> list[str]:
    match = said.failure.match
    if match is None:
        return [_row("kind", "unknown: no pattern matched")]
    name = match.kind if match.kind == match.pattern else f"{match.kind} ({match.pattern})"
    lines = [_row("kind", f"{name}, {match.band} confidence ({match.confidence:.2f})")]
    reasons = list(dict.fromkeys(_quoted(reason) for reason in said.reasons))
    return [*lines, _row("why", _first(reasons, _REASONS_SHOWN))] if reasons else lines


def _quoted(reason: Reason) -> str:
    text = reason.text if len(reason.text) <= _QUOTED else f"{reason.text[: _QUOTED - 1]}…"
    return _shown(text if reason.line is None else f"“{text}”")


def _seen(seen: tuple[EarlierFailure, ...]) -> list[str]:
    if not seen:
        return []
    last = seen[-1]
    often = "once" if len(seen) == 1 else f"{len(seen)} times"
    day = last.timestamp[:16].replace("T", " ")
    lines = [_row("seen", f"{often} here, last in {last.place}, {day}")]
    if last.action:
        lines.append(_row("", f"after: {_shown(last.action)}"))
    cured = next((one for one in reversed(seen) if one.solved_by or one.solution), None)
    if cured:
        solution = f": {_shown(cured.solution)}" if cured.solution else ""
        by = f" {cured.task} attempt {cured.solved_by} succeeded" if cured.solved_by else ""
        lines.append(_row("", f"what helped{':' if by else ''}{by}{solution}"))
    elif len(seen) > 1 or last.strategy:
        lines.append(_row("", "nothing that was tried since has helped"))
    return lines


def tell_next(following: dict[str, Any]) -> list[str]:
    """What is to be done next, as lines."""
    if following["to"] == "person":
        lines = [_row("next", "ask a person: loki never retries this by itself")]
        return [*lines, _row("", following["guidance"])] if following["guidance"] else lines
    lines = [_row("next", f"{following['strategy']}: {following['description']}")]
    if following["fix_command"]:
        return [*lines, _row("fix", following["fix_command"])]
    if following["strategy"] == "auto_fix":
        return lines  # its steps speak of a command that has been run
    # In a briefing what the strategy has found follows; here it has not been at work.
    steps = [step.replace(" below", "") for step in following["steps"]]
    return lines + [_row("", f"{number}. {step}") for number, step in enumerate(steps, 1)]


def _excerpt(said: Explanation, most: int = _LINES_SHOWN) -> list[str]:
    """The lines that a person would quote, numbered, the one that says what failed marked."""
    failure = said.failure
    if not failure.excerpt_lines:
        return []
    first = failure.excerpt_lines[0]
    rows = failure.excerpt.split("\n")
    if all(_TIME.match(row) for row in rows):
        rows = [_TIME.sub("", row) for row in rows]
    begin, end = _window(said, len(rows), most)
    width = len(str(first + end - 1))
    lines = []
    for number, row in enumerate(rows[begin:end], first + begin):
        is_cause = number == failure.output_line
        text = f"  {'>' if is_cause else ' '} {number:>{width}} | {_shown(row)}".rstrip()
        lines.append(typer.style(text, fg="red") if is_cause else text)
    return lines


def _window(said: Explanation, count: int, most: int) -> tuple[int, int]:
    """The rows to show of a long excerpt: those about this failure, with some on either side."""
    if count <= most:
        return 0, count
    assert said.failure.excerpt_lines is not None
    first = said.failure.excerpt_lines[0]
    own = said.failure.site_lines or (first, first)
    cause = said.failure.output_line or own[0]
    begin, end = min(own[0], cause) - first, max(own[1], cause) - first + 1
    if end - begin > most:  # even that is too long: round the line that says what failed
        begin = max(begin, cause - first - most // 2)
    begin = max(0, min(begin - (most - (end - begin)) // 2, begin, count - most))
    return begin, begin + most


def _row(name: str, text: str) -> str:
    return f"  {name:<6} {text}"


def _first(texts: list[str] | tuple[str, ...], most: int) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _shown(text: str) -> str:
    """A line without what a terminal would act on, not too long."""
    plain = "".join(c if c.isprintable() or c == "\t" else " " for c in text)
    return plain if len(plain) <= _WIDEST else f"{plain[:_WIDEST]}…"
