"""Files of recorded runs of agents.

Two forms are read: one run in a line of JSON (`RunForm`; ``docs/monitor.md`` has it), and the session files
of Claude Code (``~/.claude/projects/*/*.jsonl``). Files are somebody else's: a line that cannot be read is
left out, and counted.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loki.adapters.monitor.claude_session import claude_sessions, misread
from loki.adapters.monitor.recorded_run import Ends, Made, Recorded, RecordedRun, Window
from loki.base import path_containment
from loki.base.error import UsageError
from loki.decision.monitor.tool_call import ToolCall
from loki.decision.monitor.tool_result import tool_result

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of a line that are read; a longer one is left out. Chosen, not measured."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")


class StepForm(_Form):
    """One call of a run, as a file has it."""

    tool: str = ""
    args: Any = Field(default_factory=dict)
    result: Any = ""
    exit_code: int | None = None
    ok: bool | None = None
    is_error: bool | None = None


class WindowForm(_Form):
    """A labelled part of a run."""

    first: int = Field(alias="from")
    last: int = Field(alias="to")
    label: Literal["stuck", "progress", "other"]


class RunForm(_Form):
    """One run, as a line of a file has it."""

    id: str = ""
    agent: str = ""
    resolved: bool | None = None
    steps: list[StepForm]
    final: str | None = None
    windows: list[WindowForm] = Field(default_factory=list)


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
    found = [
        path / name
        for name in path_containment.files(path)
        if name.endswith((".jsonl", ".jsonl.gz"))
    ]
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
                    first = error.errors()[0]
                    where = ".".join(map(str, first["loc"]))
                    read.left_out.append(f"{file}:{number}: {where}: {first['msg']}")
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
    windows = tuple(Window(one.first, one.last, one.label) for one in form.windows)
    name = form.id or f"{file.name}:{number}"
    return RecordedRun(
        name, str(file), "step", tuple(events), "", form.agent, form.resolved, windows
    )


def as_steps(run: RecordedRun) -> dict[str, Any]:
    """A run in the form of one line, its ends but the last left out: what `recorded_runs` reads again."""
    calls = [one for one in run.events if isinstance(one, Made)]
    ends = [one for one in run.events if isinstance(one, Ends)]
    return {
        "id": run.id,
        "agent": run.agent,
        "resolved": run.resolved,
        "steps": [
            {
                "tool": one.call.name,
                "args": dict(one.call.arguments),
                "result": one.result,
                "exit_code": one.exit_code,
                "ok": one.ok,
            }
            for one in calls
        ],
        "final": ends[-1].message if ends else None,
    }
