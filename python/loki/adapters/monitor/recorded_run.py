"""A run of an agent as it was recorded: what it called, what came of it, what it said at the end.

Two forms are read: one run in a line of JSON (`RunForm`; ``docs/monitor.md`` has it), and the session files
of Claude Code (``~/.claude/projects/*/*.jsonl``). Files are somebody else's: a line that cannot be read is
left out, and counted.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, Field, ValidationError

from loki.adapters.monitor.monitor import Monitor, is_folder_there
from loki.base import path_containment
from loki.base.error import UsageError
from loki.base.secret import mask_secrets
from loki.base.validation import sentence
from loki.decision.monitor.monitor_state import Reaction
from loki.decision.monitor.tool_call import ToolCall
from loki.decision.monitor.tool_result import any_repr, tool_result
from loki.memory.quote import one_line

# --- A run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made, and what came of it.

    Attributes:
        call: the call.
        result: what it gave.
        ok: whether it went well; None: the record does not tell.
        exit_code: of its command, or None.
        place: where it stands: the number of a step from 0, or of a line of its file from 1.
    """

    call: ToolCall
    result: str
    ok: bool | None
    exit_code: int | None
    place: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The last words of a turn, and where they stand."""

    message: str
    place: int


Recorded: TypeAlias = "Made | Ends"


class Window(BaseModel, frozen=True):
    """A part of a run that a person has labelled: steps from the first to the last of it."""

    first: int = Field(alias="from")
    last: int = Field(alias="to")
    label: Literal["stuck", "progress", "other"]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as it was recorded.

    Attributes:
        id: which it is.
        source: the file.
        unit: what a place counts: ``step`` or ``line``.
        events: calls and ends, in order.
        folder: where the agent worked, or "".
        agent: its name, or "".
        resolved: whether it did what it was to do; None: nobody knows.
        windows: labels, where there are any.
    """

    id: str
    source: str
    unit: str
    events: tuple[Recorded, ...]
    folder: str = ""
    agent: str = ""
    resolved: bool | None = None
    windows: tuple[Window, ...] = ()

    @property
    def calls(self) -> int:
        """How many calls it made."""
        return sum(isinstance(one, Made) for one in self.events)


# --- The session files of Claude Code 2.1 -------------------------------------------------------------

_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,9})(?:\n|(?!\d))")
_NO_PERSON = ("<task-notification>", "<local-command", "<command-name>", "<system-reminder>")
_NOT_RUN = ("The user doesn't want to", "[Request interrupted", "Interrupted by user")


def claude_sessions(lines: list[tuple[int, dict[str, Any]]], file: Path) -> Iterator[RecordedRun]:
    """A file's session, and those of agents that worked for it.

    Args:
        lines: of the file, with their numbers; without those that are `misread`.
        file: its path.
    """
    by_agent: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for number, said in lines:
        if _is_heard(said):
            agent = str(said.get("agentId") or ("side" if said.get("isSidechain") else ""))
            by_agent.setdefault(agent, []).append((number, said))
    for agent, own in by_agent.items():
        events = tuple(_events(own))
        if any(isinstance(one, Made) for one in events):
            name = f"{file.stem}.{agent}" if agent else file.stem
            folder = next((s["cwd"] for _, s in own if s.get("cwd")), "")
            yield RecordedRun(name, str(file), "line", events, folder, "claude-code")


def misread(said: Mapping[str, Any]) -> str:
    """Why a line of a session cannot be read, or "": it can be, or nothing is read of it.

    Args:
        said: the line.

    Example:
        >>> misread({"type": "user", "message": 1})
        'message: found int, expected dict'
        >>> misread({"type": "summary", "message": 1})
        ''
    """
    if said.get("type") is not None and not isinstance(said["type"], str):
        return _expected("type", said["type"], "str")
    if not _is_heard(said):
        return ""
    for name in ("agentId", "cwd"):
        if not isinstance(said.get(name), (str, type(None))):
            return _expected(name, said[name], "str")
    message = said.get("message")
    if not isinstance(message, dict):
        return _expected("message", message, "dict")
    return _misread_content(message.get("content"))


def _misread_content(content: object) -> str:
    if isinstance(content, str):
        return ""
    if not isinstance(content, list):
        return _expected("message.content", content, "str or list")
    return next(filter(None, (_misread_part(n, part) for n, part in enumerate(content))), "")


_PARTS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "tool_use": {"id": (str,), "name": (str,), "input": (dict,)},
    "tool_result": {"tool_use_id": (str,), "content": (str, list, type(None))},
    "text": {"text": (str,)},
}
"""What is read of the parts of a message; others are passed over."""


def _misread_part(number: int, part: object) -> str:
    where = f"message.content.{number}"
    if not isinstance(part, dict):
        return _expected(where, part, "dict")
    kind = part.get("type")
    if not isinstance(kind, str):
        return _expected(f"{where}.type", kind, "str")
    for name, types in _PARTS.get(kind, {}).items():
        if not isinstance(part.get(name), types):
            expected = " or ".join(one.__name__ for one in types if one is not type(None))
            return _expected(f"{where}.{name}", part.get(name), expected)
    return ""


def _expected(where: str, found: object, expected: str) -> str:
    name = "nothing" if found is None else type(found).__name__
    return f"{where}: found {name}, expected {expected}"


def _is_heard(said: Mapping[str, Any]) -> bool:
    return said.get("type") in ("user", "assistant")


def _events(lines: list[tuple[int, dict[str, Any]]]) -> Iterator[Recorded]:
    calls: dict[str, tuple[int, ToolCall]] = {}
    last: Ends | None = None
    for number, said in lines:
        content = _content(said)
        if said["type"] == "assistant":
            last = _assistant(content, number, calls, last)
            continue
        results = [part for part in content if part["type"] == "tool_result"]
        for part in results:
            place, call = calls.pop(part["tool_use_id"], (number, None))
            if call is not None and (made := _made(call, part, place)) is not None:
                yield made
        if not results and last is not None and _is_a_persons(said, content):
            yield last
            last = None
    if last is not None:
        yield last


def _assistant(
    content: list[dict[str, Any]],
    number: int,
    calls: dict[str, tuple[int, ToolCall]],
    last: Ends | None,
) -> Ends | None:
    """Note the calls of a message; what its last words are so far, None while it calls something."""
    for part in content:
        if part["type"] == "tool_use":
            last = None
            calls[part["id"]] = number, ToolCall(part["name"], part["input"], id=part["id"])
        elif part["type"] == "text" and part["text"].strip():
            last = Ends(part["text"], number)
    return last


def _content(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = said["message"]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_a_persons(said: Mapping[str, Any], content: list[dict[str, Any]]) -> bool:
    if said.get("isMeta") or said.get("isCompactSummary"):
        return False
    text = next((one["text"] for one in content if one["type"] == "text"), "")
    return not text.lstrip().startswith(_NO_PERSON)


def _made(call: ToolCall, part: Mapping[str, Any], place: int) -> Made | None:
    """A call with its result; None: it was not run, or goes on in the background."""
    text = tool_result(part.get("content") or "").text
    if text.startswith(_NOT_RUN) or call.arguments.get("run_in_background"):
        return None
    if not part.get("is_error"):
        return Made(call, text, True, None, place)
    code = _EXIT.match(text)
    if code is None:
        return Made(call, text, False, None, place)
    return Made(call, text[code.end() :], False, int(code[1]), place)


# --- Files of runs ------------------------------------------------------------------------------------

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of a line that are read; a longer one is left out. Chosen, not measured."""


class StepForm(BaseModel):
    """One call of a run, as a file has it."""

    tool: str = ""
    args: Any = Field(default_factory=dict)
    result: Any = ""
    exit_code: int | None = None
    ok: bool | None = None
    is_error: bool | None = None


class RunForm(BaseModel):
    """One run, as a line of a file has it."""

    id: str = ""
    agent: str = ""
    resolved: bool | None = None
    steps: list[StepForm]
    final: str | None = None
    windows: tuple[Window, ...] = ()


@dataclass(slots=True)
class Read:
    """What was read, and what could not be.

    Attributes:
        files: how many files.
        left_out: ``file:line: why`` of what could not be read.
    """

    files: int = 0
    left_out: list[str] = field(default_factory=list)


def recorded_runs(paths: list[Path], read: Read | None = None) -> Iterator[RecordedRun]:
    """The runs of files, and of all ``.jsonl`` and ``.jsonl.gz`` below folders, in order of their names.

    Args:
        paths: files and folders.
        read: takes what was read, and what was not.

    Raises:
        UsageError: there is no such file or folder, or nothing to read in it.
    """
    read = Read() if read is None else read
    for path in paths:
        for file in _files(path):
            read.files += 1
            yield from _of_file(file, read)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path}: found nothing, expected a file of runs or a folder with some")
    names = path_containment.files(path)
    found = [path / name for name in names if name.endswith((".jsonl", ".jsonl.gz"))]
    if not found:
        raise UsageError(f"{path}: found no .jsonl file, expected sessions or runs")
    return sorted(found)


def _of_file(file: Path, read: Read) -> Iterator[RecordedRun]:
    """The runs of a file: one a line, or a session of all its lines."""
    session: list[tuple[int, dict[str, Any]]] = []
    try:
        for number, line in _lines(file):
            if line is None:
                read.left_out.append(f"{file}:{number}: longer than {LONGEST_LINE} bytes")
                continue
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                read.left_out.append(f"{file}:{number}: no JSON")
                continue
            if not isinstance(said, dict):
                read.left_out.append(f"{file}:{number}: no JSON object")
            elif "steps" in said:
                try:
                    yield _run(RunForm.model_validate(said), file, number)
                except ValidationError as error:
                    read.left_out.append(f"{file}:{number}: {sentence(error.errors()[0])}")
            elif why := misread(said):
                read.left_out.append(f"{file}:{number}: {why}")
            else:
                session.append((number, said))
    except (OSError, EOFError, UnicodeError) as error:
        read.left_out.append(f"{file}: {error}")
    yield from claude_sessions(session, file)


def _lines(file: Path) -> Iterator[tuple[int, str | None]]:
    """The lines of a file that say something, with their numbers; None: it is too long."""
    how = gzip.open if file.name.endswith(".gz") else open
    with cast("Callable[..., IO[bytes]]", how)(file, "rb") as stream:
        for number, line in enumerate(stream, 1):
            if len(line) > LONGEST_LINE:
                yield number, None
            elif line.strip():
                yield number, line.decode("utf-8", "replace")


def _run(form: RunForm, file: Path, number: int) -> RecordedRun:
    events: list[Recorded] = []
    for place, one in enumerate(form.steps):
        arguments = one.args if isinstance(one.args, dict) else {"arguments": one.args}
        told = tool_result(one.result)
        ok = one.ok if one.ok is not None else (False if one.is_error else None)
        code = one.exit_code if one.exit_code is not None else told.exit_code
        events.append(Made(ToolCall(one.tool, arguments), told.text, ok, code, place))
    if form.final:
        events.append(Ends(form.final, len(form.steps)))
    name = form.id or f"{file.name}:{number}"
    who = form.agent, form.resolved, form.windows
    return RecordedRun(name, str(file), "step", tuple(events), "", *who)


def as_steps(run: RecordedRun) -> dict[str, Any]:
    """A run in the form of one line, its ends but the last left out: what `recorded_runs` reads again."""
    calls = [one for one in run.events if isinstance(one, Made)]
    ends = [one for one in run.events if isinstance(one, Ends)]
    return {
        **{name: getattr(run, name) for name in ("id", "agent", "resolved")},
        "steps": [
            {
                "tool": one.call.name,
                "args": dict(one.call.arguments),
                **{name: getattr(one, name) for name in ("result", "exit_code", "ok")},
            }
            for one in calls
        ],
        "final": ends[-1].message if ends else None,
    }


# --- What a monitor would have said to a run ----------------------------------------------------------

ABOUT = 4_000
"""Characters of a call or a message that are looked at for a line on it. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What the monitor would have said, and where.

    Attributes:
        place: as of the call, or of the words.
        kind: ``nudge``, ``refuse`` or ``stop``.
        reason: the rule.
        about: the call, or what was said.
        text: what the agent would have been told.
        is_last: it is about the last words of a turn.
        left: of a stop: calls that the turn still made.
    """

    place: int
    kind: str
    reason: str
    about: str
    text: str
    is_last: bool = False
    left: int = 0


def remarks(
    run: RecordedRun, project: str | os.PathLike[str], told: Callable[[float], None] | None = None
) -> Iterator[Remark]:
    """What a monitor would have said to a run. It is only watched: what is said does not change it, but
    that a turn is over where it would have been stopped.

    Args:
        run: the run.
        project: a folder for what the monitor keeps, one for each run.
        told: takes the seconds of processor time that each call took.
    """
    mapped = {run.folder: "."} if is_folder_there(run.folder) else {}
    monitor = Monitor(root=Path(project), mapped=mapped, agent=run.agent or "agent")
    turn, stopped = 0, None
    for one in run.events:
        if isinstance(one, Ends):
            turn += 1
            if stopped is not None:
                yield stopped
                stopped = None
                monitor.helped()  # a person has read it, and goes on
                continue
            said = monitor.ending(one.message, turn=str(turn))
        elif stopped is not None:
            stopped = replace(stopped, left=stopped.left + 1)
            continue
        else:
            began = time.process_time()
            # Breakers are not asked: what was called then was called.
            said = monitor.after(one.call, one.result, ok=one.ok, exit_code=one.exit_code)
            if told is not None:
                told(time.process_time() - began)
        if said.kind == "stop":
            stopped = _remark(one, said)
        elif said:
            yield _remark(one, said)
    if stopped is not None:
        yield stopped


def _remark(one: Recorded, said: Reaction) -> Remark:
    if isinstance(one, Ends):
        about = one.message
    else:
        about = one.call.line or f"{one.call.name} {any_repr(dict(one.call.arguments))}"
    short = one_line(mask_secrets(about[:ABOUT]), 160)
    return Remark(one.place, said.kind, said.reason, short, said.text, isinstance(one, Ends))
