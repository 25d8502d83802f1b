"""A call of an agent's tool: what it does, whether it checks, and which other call it is the same as.

What tools and programs do is data, in ``tool-call.yml``. Pure and total.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from loki.decision import tool_command
from loki.decision.shell_line import Simple, simple_commands
from loki.decision.tool_knowledge import Effect as Effect  # noqa: PLC0414 - a name of this room
from loki.decision.tool_knowledge import knowledge
from loki.memory.quote import one_line
from loki.recognition.failure import Failure
from loki.recognition.pattern import HIGH

LONGEST = 200_000
"""Characters of a call's arguments that are looked at; chosen, not measured."""

SAID = 200
"""Characters of a call in a line of ours; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of an agent's tool.

    Args:
        name: of the tool, as its agent has it.
        arguments: what it was called with.
        command: the command line that it runs; None: where its arguments have one, that.
        effect: what it does; None: as its name and its command say.
        id: as its agent numbers calls, or "".
        fits: False: what was given is not what the tool takes, so it was not run; also of an answer
            in a form that was asked for.

    Example:
        >>> ToolCall("Bash", {"command": "pytest -q"}).line
        'pytest -q'
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None
    effect: Effect | None = None
    id: str = ""
    fits: bool = True

    @classmethod
    def of_json(cls, name: str, arguments: str, id: str = "") -> ToolCall:  # noqa: A002 - its field
        """A call whose arguments are as a model wrote them, JSON or not.

        Example:
            >>> ToolCall.of_json("Bash", '{"command": "ls"}').line, ToolCall.of_json("Bash", "{").arguments
            ('ls', {'arguments': '{'})
        """
        try:
            said: Any = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            said = arguments
        return cls(name, said if isinstance(said, dict) else {"arguments": said}, id=id)

    @property
    def line(self) -> str:
        """The command line that it runs, or ""."""
        if self.command is not None:
            return self.command
        return _command_in(self)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a call.

    Attributes:
        key: the same for the same call: its tool and its arguments.
        said: the call in one line, for people and agents; may hold secrets.
        command: the command line that it runs, or "".
        effect: what it does.
        is_check: it checks the project: tests, types, lint, a build.
        runs_tests: it checks by tests.
        is_hidden: the exit code of its check is not the one that is told: `pytest | tail`.
        asks: its exit code 1 is the answer no: `grep`, `test`.
        waits: it waits for something that somebody else does: failing, it says nothing yet.
        edits: its command writes into sources that checks read: `sed -i app.py`.
        path: the file that it is about, or "".
        is_prose: no check reads what it changes: a text, a ticket.
        breaker: name of the circuit breaker of what it reaches, or "": it has none.
        programs: what its command runs, with their words that are no options.
        tool: the tool's name.
        fits: as of the call.
    """

    key: str
    said: str
    command: str = ""
    effect: Effect = Effect.OTHER
    is_check: bool = False
    runs_tests: bool = False
    is_hidden: bool = False
    asks: bool = False
    waits: bool = False
    edits: bool = False
    path: str = ""
    is_prose: bool = False
    breaker: str = ""
    programs: tuple[tuple[str, ...], ...] = ()
    tool: str = ""
    fits: bool = True


def known(call: ToolCall) -> Known:
    """What is known of a call, by its name, its arguments and its command.

    Example:
        >>> call = known(ToolCall("Bash", {"command": "cd app && python -m pytest -q | tail -5"}))
        >>> call.effect.value, call.is_check
        ('run', True)
        >>> known(ToolCall("Edit", {"file_path": "calc.py"})).effect.value
        'write'
    """
    if not call.fits:
        return Known(_key(call, ""), one_line(call.name, SAID), tool=call.name, fits=False)
    line = call.line
    effect = call.effect or _effect_by_name(call.name)
    commands = simple_commands(line, knowledge().words) if line else []
    is_check = runs_tests = is_hidden = False
    if line:
        checks = [command for command in commands if tool_command.checks(command)]
        is_check, runs_tests = bool(checks), any(map(tool_command.runs_tests, checks))
        is_hidden = any(check.is_hidden for check in checks)
        effect = call.effect or tool_command.effect_of(commands, is_check=is_check)
    elif effect is Effect.RUN:
        parts = _parts(call.name)
        is_check = bool(parts & knowledge().check_parts)
        runs_tests = bool(parts & {"test", "tests", "pytest", "verify", "check", "checks"})
    path = _path_in(call) or next(filter(None, map(tool_command.written, commands)), "")
    waits = not is_check and tool_command.waits(commands, is_up=_asks_whether_up(line, commands))
    return Known(
        _key(call, line),
        one_line(_said(call, line, path), SAID),
        line,
        effect,
        is_check,
        runs_tests,
        is_hidden,
        effect is Effect.READ and any(map(tool_command.asks, commands)),
        waits,
        any(map(tool_command.edits, commands)),
        path,
        effect is Effect.WRITE and (_is_prose(path) if path else _is_elsewhere(call, line)),
        "" if is_check or waits else _breaker(call, line, commands),
        tuple(
            (command.program, *(w for w in command.arguments if not w.startswith("-")))[:20]
            for command in commands[:20]
        ),
        call.name,
    )


def went_well(call: Known, ok: bool | None, exit_code: int | None) -> bool | None:
    """Whether a call went well, by what its caller knows; None: that says nothing of it.

    Args:
        call: the call.
        ok: what the caller says, or None.
        exit_code: of its command, or None.

    Example:
        >>> check = ToolCall("Bash", {"command": "pytest -q"})
        >>> piped = ToolCall("Bash", {"command": "pytest -q | tail -3"})
        >>> went_well(known(check), None, 0), went_well(known(piped), None, 0)
        (True, None)
    """
    if exit_code == 1 and call.asks:
        return True
    if ok is None and exit_code is not None:
        ok = exit_code == 0
    return None if ok and call.is_hidden else ok


def is_steering(error: BaseException) -> bool:
    """Whether an exception is how a framework steers its agent, and no failure of a tool.

    Example:
        >>> is_steering(KeyboardInterrupt()), is_steering(OSError("connection lost"))
        (True, False)
    """
    if not isinstance(error, Exception):
        return True
    return any(base.__name__ in knowledge().steering for base in type(error).__mro__)


def says_failed(call: Known, text: str) -> bool | None:
    """Whether a tool's text says by itself that the call failed; None: it says nothing of it.

    Args:
        call: the call.
        text: what it gave, or its beginning and its end.
    """
    exit_code = exit_code_in(text) if call.effect in {Effect.RUN, Effect.WRITE} else None
    if exit_code is not None:
        return exit_code != 0
    head = text.lstrip()[:60].casefold()
    return True if head.startswith(knowledge().says_failed) else None


def shows_failure(call: Known, failure: Failure, told: int = 0) -> bool:
    """Whether what was recognized in a text says that the call failed, where nobody else does.

    Args:
        call: the call: only of a check this is to be seen by what it printed.
        failure: what was recognized.
        told: how many failures a summary in the text tells of.
    """
    if not call.is_check:
        return False
    if told and failure.match is not None:
        return True
    known = bool(failure.error_type or failure.error_code or failure.path)
    return bool(failure.tests) or (failure.is_specific and failure.confidence >= HIGH and known)


def exit_code_in(text: str) -> int | None:
    """The exit code that is written into a tool's text, or None.

    Example:
        >>> exit_code_in("Exit code 2\\nmake: *** No rule"), exit_code_in("fine")
        (2, None)
    """
    found = knowledge().exit_code.findall(text)
    return int(found[-1]) if found else None


# --- by name --------------------------------------------------------------------------------------


def _effect_by_name(name: str) -> Effect:
    known_one = _effect_of(name)
    if known_one is not None:
        return known_one
    parts = knowledge().parts
    return next((parts[part] for part in _part_list(name) if part in parts), Effect.OTHER)


def _effect_of(name: str) -> Effect | None:
    """What a tool does whose whole name is known."""
    tools = knowledge().tools
    plain = re.split(r"__|[./:]", name)[-1].casefold() or name.casefold()
    return tools.get(name.casefold(), tools.get(plain))


def _part_list(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:200])
    return [part for part in re.split(r"[^A-Za-z0-9]+", spaced.casefold()) if part]


def _parts(name: str) -> frozenset[str]:
    return frozenset(_part_list(name))


def _command_in(call: ToolCall) -> str:
    if _effect_by_name(call.name) is not Effect.RUN and len(call.arguments) != 1:
        return ""
    for name, value in call.arguments.items():
        if str(name).casefold() in knowledge().command_arguments:
            if isinstance(value, str):
                return value
            if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
                return shlex.join(value)
    return ""


def _path_in(call: ToolCall) -> str:
    for name, value in call.arguments.items():
        if str(name).casefold() in knowledge().path_arguments and isinstance(value, str):
            return value[:1000]
    return ""


# --- what it reaches ------------------------------------------------------------------------------

_URL = re.compile(r"\bhttps?://[^\s'\"<>|;)]+")
_NAMED = re.compile(r"^(?:[\w-]+\.)*[\w-]+(?::\d+)?(?:/|$)")
_HERE = re.compile(
    r"(?i)^(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1?\]?|.*\.(?:localhost|local))$"
)


def _breaker(call: ToolCall, line: str, commands: Sequence[Simple]) -> str:
    """Name of the breaker of what a call reaches; "" where that is this machine."""
    host = _host_of(call, line, commands)
    if host:
        return "" if _HERE.match(host) else f"tool/{_safe(host)}"
    if not line:
        return f"tool/{_safe(call.name)}"
    program = next((c.program for c in commands if not tool_command.looks(c)), "")
    return f"tool/{_safe(program)}" if program else ""


def _host_of(call: ToolCall, line: str, commands: Sequence[Simple]) -> str:
    return _host_in(line or next((v for v in call.arguments.values() if _is_url(v)), ""), commands)


def _host_in(text: str, commands: Sequence[Simple]) -> str:
    url = _URL.search(text[:LONGEST])
    if url:
        return _host(url[0])
    words = (word for c in commands if c.program in knowledge().fetchers for word in c.arguments)
    return next((_host(f"//{word}") for word in words if _is_host(word)), "")


def _asks_whether_up(line: str, commands: Sequence[Simple]) -> bool:
    """Whether it asks a server on this machine, or any server for its health."""
    here = bool(_HERE.match(_host_in(line, commands)))
    return here or knowledge().waits_at.search(line[:LONGEST]) is not None


def _is_host(word: str) -> bool:
    host = re.split(r"[:/]", word, maxsplit=1)[0]
    return bool(_NAMED.match(word)) and ("." in host or bool(_HERE.match(host)))


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value[:8].startswith(("http://", "https://"))


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").casefold()
    except ValueError:
        return ""


def _safe(name: str) -> str:
    return re.sub(r"[^\w.:-]+", "-", name.encode("utf-8", "replace").decode())[:80]


# --- which it is ----------------------------------------------------------------------------------


def _key(call: ToolCall, line: str) -> str:
    """The same for the same call."""
    told: Any = " ".join(line.split())
    if not line:
        silent = knowledge().silent_arguments
        told = {str(k): v for k, v in call.arguments.items() if str(k).casefold() not in silent}
    try:
        text = json.dumps(told, sort_keys=True, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = repr(told)
    return sha256(f"{call.name}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]


def _said(call: ToolCall, line: str, path: str) -> str:
    """A call in a few words: its command, or its tool, its file and how that was to change."""
    if line:
        return line[:LONGEST]
    rest = [
        value
        for name, value in call.arguments.items()
        if str(name).casefold() not in knowledge().silent_arguments and value != path
    ]
    told = " → ".join(_brief(value) for value in rest[:3] if value not in ("", None, False))
    return f"{call.name} {path}{': ' if path and told else ''}{told}".strip()


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return one_line(text[:2000], 80)


def _is_prose(path: str) -> bool:
    """Whether a file is none that checks read, by its name."""
    file = PurePosixPath(path.replace("\\", "/").casefold())
    return file.suffix[1:] in knowledge().prose or file.name in knowledge().prose_names


def _is_elsewhere(call: ToolCall, line: str) -> bool:
    """Whether what is changed is no file, as far as a part of the tool's name tells: `create_issue`."""
    return not line and _effect_of(call.name) is None
