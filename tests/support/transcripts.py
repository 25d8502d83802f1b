"""Sessions of coding agents, written as a person would note them down; see `parsed`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loki import Monitor, Reaction
from support.tool_calls import Made, bash, edit, failed_edit, function, missing, read

_CALL = re.compile(r"\$(\d*) (.*)")
_REPEAT = re.compile(r"repeat (\d+)")


@dataclass(frozen=True)
class Line:
    """A call, who makes it, and what it is to be told."""

    who: str
    made: Made
    expected: str = "none"


def parsed(file: Path) -> dict[str, list[Line]]:
    """The sessions of a file, by name.

    ``# name`` begins a session; ``$ command`` or ``$1 command`` is a command line with its exit code,
    indented lines after it are its output; ``edit path text``, ``edit! path`` (it does not fit),
    ``read path``, ``missing path``, ``call tool text`` (a function tool); ``agent name``: what follows
    is done by that agent, in a session of its own; ``=> nudge``: what the call before it is told;
    ``repeat 3`` … ``end``: what stands between, so often, ``%`` being the number of the turn.
    """
    sessions: dict[str, list[Line]] = {}
    for block in re.split(r"(?m)^# ", file.read_text("utf-8"))[1:]:
        name, _, body = block.partition("\n")
        assert name not in sessions, name
        sessions[name] = list(_lines(_repeated(body.splitlines())))
    return sessions


def _repeated(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        found = _REPEAT.fullmatch(lines[at])
        if found is None:
            yield lines[at]
            at += 1
            continue
        end = lines.index("end", at)
        for turn in range(1, int(found[1]) + 1):
            yield from (line.replace("%", str(turn)) for line in lines[at + 1 : end])
        at = end + 1


def _lines(lines: Iterator[str]) -> Iterator[Line]:
    who, head, output, expected = "claude", "", list[str](), "none"
    for line in (*lines, "agent nobody"):
        if line.startswith("  "):
            output.append(line[2:])
        elif line.startswith("=> "):
            expected = line[3:]
        elif line.strip():
            if head:
                yield Line(who, _made(head, "".join(f"{one}\n" for one in output)), expected)
            head, output, expected = line, [], "none"
            if line.startswith("agent "):
                who, head = line[6:], ""


def _made(head: str, output: str) -> Made:
    found = _CALL.fullmatch(head)
    if found:
        return bash(found[2].replace("\\n", "\n"), output, int(found[1] or 0))
    word, path, *rest = head.split(" ", 2)
    text = rest[0] if rest else "x"
    if word == "call":
        return function(path, output, text=text)
    ways = {"edit": edit, "edit!": failed_edit}
    return (
        ways[word](path, text) if word in ways else {"read": read, "missing": missing}[word](path)
    )


def reactions(workspace: Path, lines: list[Line]) -> Iterator[tuple[Line, Reaction]]:
    """Each call, and what was said of it; each agent has a session of its own in one workspace."""
    monitors: dict[str, Monitor] = {}
    for line in lines:
        monitor = monitors.setdefault(
            line.who, Monitor(workspace, session=line.who, agent=line.who)
        )
        call = line.made.call
        reaction = monitor.before(call) or monitor.after(call, line.made.output, **line.made.how)
        yield line, reaction
