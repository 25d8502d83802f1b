"""A call of an agent's tool: what it does, whether it checks, and which other call it is the same as.

What tools and programs do is data, in ``tool-call.yml``. Pure and total.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from loki.decision.monitor import tool_command
from loki.decision.monitor.tool_command import Effect, knowledge
from loki.decision.monitor.tool_result import any_repr, any_text
from loki.memory.quote import one_line
from loki.recognition.failure import is_test_path
from loki.recognition.shell_line import Simple, shell_commands

# --- What a change of a file is, by its text and its file's name --------------------------------------

LONGEST = 200_000
"""Characters of a text that are looked at; chosen, not measured."""

MOST_EDITS = 100
"""Edits of one call that are looked at; chosen, not measured."""

_PATCH = "*** Begin Patch"


def is_probe(arguments: Mapping[str, Any], *, inserts: bool = False) -> bool:
    """Whether a change only adds or removes lines that look into a program, or remarks.

    Args:
        arguments: what an editing tool was called with.
        inserts: it takes nothing out, by its name.

    Example:
        >>> is_probe({"old_string": "x = f()", "new_string": "x = f()\\nprint(x)"})
        True
    """
    changed = []
    for old, new in _changes(arguments, inserts=inserts):
        before, after = old.splitlines(), new.splitlines()
        changed += [*_more(after, before), *_more(before, after)]
    return bool(changed) and all(map(knowledge().probe.match, _whole(changed)))


def _changes(arguments: Mapping[str, Any], *, inserts: bool) -> list[tuple[str, str]]:
    """What a call takes out of a file, and what it puts in; of a file written anew nothing is known."""
    parts = arguments.get("edits")
    if isinstance(parts, (list, tuple)):
        plain = [p for p in parts[:MOST_EDITS] if isinstance(p, Mapping) and "edits" not in p]
        return [pair for part in plain for pair in _changes(part, inserts=inserts)]
    old = _text_in(arguments, knowledge().old_arguments)
    new = _text_in(arguments, knowledge().new_arguments)
    if old is None and inserts:
        old = ""
    if old is not None and new is not None:
        return [(old, new)]
    patches = (v for v in arguments.values() if isinstance(v, str) and _PATCH in v[:LONGEST])
    lines = next(patches, "")[:LONGEST].splitlines()
    if any(line.startswith("*** Add File") for line in lines):
        return []
    removed = [line[1:] for line in lines if line[:1] == "-"]
    added = [line[1:] for line in lines if line[:1] == "+"]
    return [("\n".join(removed), "\n".join(added))] if lines else []


def _whole(lines: Sequence[str]) -> list[str]:
    """Statements, each in one line, as far as round brackets tell where one ends."""
    whole: list[str] = []
    is_open = 0
    for line in lines:
        if is_open <= 0:
            whole.append(line)
            is_open = 0
        is_open += line.count("(") - line.count(")")
    return whole


def _more(lines: Sequence[str], than: Sequence[str]) -> list[str]:
    """Lines that say something, and that another text has not."""
    known = {line.strip() for line in than}
    return [line for line in lines if line.strip() and line.strip() not in known]


def _text_in(arguments: Mapping[str, Any], names: frozenset[str]) -> str | None:
    """The first text among arguments that are called so; None: there is none."""
    for name, value in arguments.items():
        if str(name).casefold() in names and isinstance(value, str):
            return value[:LONGEST]
    return None


def is_scratch(path: str) -> bool:
    """Whether a file is one of the agent's own, by its name."""
    return knowledge().scratch.match(path.replace("\\", "/").rpartition("/")[2]) is not None


def is_prose(path: str) -> bool:
    """Whether a file is none that checks read, by its name."""
    file = PurePosixPath(path.replace("\\", "/").casefold())
    return file.suffix[1:] in knowledge().prose or file.name in knowledge().prose_names


# --- What a call of a tool reaches: the name of a circuit breaker -------------------------------------

_URL = re.compile(r"\bhttps?://[^\s'\"<>|;)]+")
_NAMED = re.compile(r"^(?:[\w-]+\.)*[\w-]+(?::\d+)?(?:/|$)")
_HERE = re.compile(
    r"(?i)^(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1?\]?|.*\.(?:localhost|local))$"
)


def breaker(tool: str, arguments: Mapping[str, Any], line: str, commands: Sequence[Simple]) -> str:
    """Name of the breaker of what a call reaches; "" where that is this machine.

    Args:
        tool: its name; arguments: what it was called with.
        line: the command line that it runs, or "".
        commands: of that line.
    """
    url = next((value for value in arguments.values() if _is_url(value)), "")
    host = _host_in(line or url, commands)
    if host:
        return "" if _HERE.match(host) else f"tool/{_safe(host)}"
    if not line:
        return f"tool/{_safe(tool)}"
    program = next((c.program for c in commands if not tool_command.looks(c)), "")
    return f"tool/{_safe(program)}" if program else ""


def _host_in(text: str, commands: Sequence[Simple]) -> str:
    url = _URL.search(text[:LONGEST])
    if url:
        return _host(url[0])
    words = (word for c in commands if c.program in knowledge().fetchers for word in c.arguments)
    return next((_host(f"//{word}") for word in words if _is_host(word)), "")


def asks_whether_up(line: str, commands: Sequence[Simple]) -> bool:
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


# --- A call of a tool ---------------------------------------------------------------------------------

SAID = 200
"""Characters of a call in a line of ours; chosen, not measured."""


_TESTS = frozenset({"test", "tests", "pytest", "verify", "check", "checks"})
_TYPED = frozenset({"command", "cmd", "keystrokes", "keys", "input", "chars", "text"})


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
        return _command_in(self) if self.command is None else self.command


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a call.

    Attributes:
        key: the same for the same call: its tool and its arguments.
        said: the call in one line, for people and agents; may hold secrets.
        command: the command line that it runs, or "".
        effect: what it does.
        is_check: it checks the project: tests, types, lint, a build.
        is_harness: so does its tool by its name, whatever it is given.
        runs_tests: it checks by tests.
        is_hidden: the exit code of its check is not the one that is told: `pytest | tail`.
        asks: its exit code 1 is the answer no: `grep`, `test`.
        waits: it waits for something that somebody else does: failing, it says nothing yet.
        edits: its command writes into sources that checks read: `sed -i app.py`.
        path: the file that it is about, or "".
        tries: it changes something in a way that could mend a failure: no probe, nothing taken back.
        takes_back: it takes a change back: `git stash`, an undo.
        stashes: it takes all changes back for a while: `git stash`.
        puts_back: it ends that: `git stash pop`.
        is_blind: it shows something else each time, or nothing of what it did: `scroll_down`.
        is_scratch: the file that it changes is one of the agent's own, which nobody keeps.
        is_test: the file that it changes is one of tests.
        also_runs: its command changes something, and runs something, too.
        talks: it is words and no call: its command only prints what its author says (`echo "Which file?"`),
            or it is an answer in no form that its scaffold takes.
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
    is_harness: bool = False
    runs_tests: bool = False
    is_hidden: bool = False
    asks: bool = False
    waits: bool = False
    edits: bool = False
    path: str = ""
    tries: bool = False
    takes_back: bool = False
    stashes: bool = False
    puts_back: bool = False
    is_blind: bool = False
    is_scratch: bool = False
    is_test: bool = False
    also_runs: bool = False
    talks: bool = False
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
    commands = shell_commands(line) if line else []
    checks = [command for command in commands if tool_command.checks(command)]
    if line:
        effect = call.effect or tool_command.effect_of(commands, is_check=bool(checks))
        takes_back = any(map(tool_command.takes_back, commands))
        tries = effect is Effect.WRITE and (
            any(map(tool_command.tries, commands)) or not any(map(tool_command.changes, commands))
        )
    else:
        sub = _sub_command(call)
        if sub in knowledge().editor_looks:
            effect = call.effect or Effect.READ
        takes_back = (
            _plain_name(call.name) if sub is None else sub
        ) in knowledge().takes_back_tools
        inserts = "insert" in (sub or _plain_name(call.name))
        is_change = effect is Effect.WRITE and not takes_back
        tries = is_change and not is_probe(call.arguments, inserts=inserts)
    parts = frozenset(_parts(call.name))
    is_harness = effect is Effect.RUN and bool(parts & knowledge().check_parts)
    is_check = bool(checks) or (is_harness and not line)
    path = (_text_in(call.arguments, knowledge().path_arguments) or "")[:1000]
    path = path or next(filter(None, map(tool_command.edited, commands)), "")
    waits = not is_check and (
        _is_silent(call, line)
        or tool_command.waits(commands, is_up=asks_whether_up(line, commands))
    )
    return Known(
        _key(call, line),
        one_line(_said(call, line, path), SAID),
        line,
        effect,
        is_check,
        is_harness and is_check,
        runs_tests=any(map(tool_command.runs_tests, checks))
        or (not line and effect is Effect.RUN and bool(parts & _TESTS)),
        is_hidden=any(check.is_hidden for check in checks),
        asks=effect is Effect.READ and any(map(tool_command.asks, commands)),
        waits=waits,
        edits=any(map(tool_command.edits, commands)),
        path=path,
        tries=tries,
        takes_back=takes_back,
        stashes=any(map(tool_command.stashes, commands)),
        puts_back=any(map(tool_command.puts_back, commands)),
        is_blind=not line and bool(parts & knowledge().blind_parts),
        is_scratch=is_scratch(path),
        is_test=is_test_path(path),
        also_runs=effect is Effect.WRITE and any(map(tool_command.runs, commands)),
        talks=effect is Effect.READ and bool(commands) and all(map(tool_command.talks, commands)),
        is_prose=effect is Effect.WRITE and (is_prose(path) if path else _is_elsewhere(call, line)),
        breaker="" if is_check or waits else breaker(call.name, call.arguments, line, commands),
        programs=tuple(
            (command.program, *(w for w in command.arguments if not w.startswith("-")))[:20]
            for command in commands[:20]
        ),
        tool=call.name,
    )


def in_file(call: Known, file: str) -> Known:
    """A call that changes the file that is open, once it is known which that is.

    Args:
        call: the call.
        file: as its scaffold has it, or "".
    """
    if not file or call.path or call.effect is not Effect.WRITE or not call.edits:
        return call
    return replace(
        call,
        path=file,
        is_scratch=is_scratch(file),
        is_test=is_test_path(file),
        is_prose=is_prose(file),
    )


def is_steering(error: BaseException) -> bool:
    """Whether an exception is how a framework steers its agent, and no failure of a tool.

    Example:
        >>> is_steering(KeyboardInterrupt()), is_steering(OSError("connection lost"))
        (True, False)
    """
    if not isinstance(error, Exception):
        return True
    return any(base.__name__ in knowledge().steering for base in type(error).__mro__)


# --- By name --------------------------------------------------------------------------------------


def _effect_by_name(name: str) -> Effect:
    parts = knowledge().parts
    by_parts = (parts[part] for part in _parts(name) if part in parts)
    return _effect_of(name) or next(by_parts, Effect.OTHER)


def _effect_of(name: str) -> Effect | None:
    """What a tool does whose whole name is known."""
    tools = knowledge().tools
    return tools.get(name.casefold(), tools.get(_plain_name(name)))


def _parts(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:200])
    return [part for part in re.split(r"[^A-Za-z0-9]+", spaced.casefold()) if part]


def _is_silent(call: ToolCall, line: str) -> bool:
    """Whether it only waits: by its tool's name, or as nothing is typed into a terminal."""
    if line:
        return False
    effect = _effect_by_name(call.name)
    if effect is not Effect.WRITE and not knowledge().waiting_parts.isdisjoint(_parts(call.name)):
        return True
    if _plain_name(call.name).replace("_", "") in knowledge().waiting_tools:
        return True
    if effect is not Effect.RUN:
        return False
    typed = [v for k, v in call.arguments.items() if str(k).casefold() in _TYPED]
    return bool(typed) and not any(str(one).strip() for one in typed)


def _plain_name(name: str) -> str:
    return re.split(r"__|[./:]", name)[-1].casefold() or name.casefold()


def _sub_command(call: ToolCall) -> str | None:
    """What an editing tool of several commands is to do; None: it is none of those."""
    if _plain_name(call.name) not in knowledge().editors:
        return None
    said = _text_in(call.arguments, knowledge().command_arguments)
    return None if said is None else said.strip().casefold()


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


# --- Which it is ----------------------------------------------------------------------------------


def _key(call: ToolCall, line: str) -> str:
    """The same for the same call."""
    told = " ".join(line.split()) if line else _telling(call)
    return sha256(f"{call.name}\0{any_text(told)}".encode("utf-8", "replace")).hexdigest()[:16]


def _telling(call: ToolCall) -> dict[str, Any]:
    """Its arguments without those that say nothing of what it does."""
    silent = knowledge().silent_arguments
    return {str(k): v for k, v in call.arguments.items() if str(k).casefold() not in silent}


def _said(call: ToolCall, line: str, path: str) -> str:
    """A call in a few words: its command, or its tool, its file and how that was to change."""
    if line:
        return line[:LONGEST]
    rest = [value for value in _telling(call).values() if value != path]
    told = " → ".join(_brief(value) for value in rest[:3] if value not in ("", None, False))
    return f"{call.name} {path}{': ' if path and told else ''}{told}".strip()


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else any_repr(value)
    return one_line(text[:2000], 80)


def _is_elsewhere(call: ToolCall, line: str) -> bool:
    """Whether what is changed is no file, as far as a part of the tool's name tells: `create_issue`."""
    return not line and _effect_of(call.name) is None
