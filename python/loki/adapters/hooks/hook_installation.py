"""Puts loki's hooks into agents' settings, takes them out again, and says which are there.

Nothing here writes a value anew that was there: text is put in, or cut out, and the rest stays as it is.
Comments and commas too many are read where the program that the file belongs to reads them.

An agent's hooks stand under ``hooks``, by event: groups, each with a matcher and commands. loki's own
are known by their command line, so that no record of them is needed; whatever others put there stays.

What settings look like afterwards is decided by pure functions, text in, text out; the rest writes files.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loki.adapters.hooks.hook_handler import PROBE
from loki.adapters.hooks.hooked_agents import AGENTS, HookedAgent
from loki.base.atomic_file import telling, write_atomic
from loki.base.error import ConfigError, UsageError

# --- JSON text that people wrote: where each value stands in it ---------------------------------------

DEEPEST = 200
"""Most levels of values in values; chosen, not measured."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENTS = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"-?[\w.+-]+")


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and where it stands.

    Attributes:
        start, end: of its text, in characters.
        value: what it says.
        keys: of an object, in order.
        starts: of an object's member, where its key begins; of an array's item, its own start.
        items: values of the members, or items.
    """

    start: int
    end: int
    value: Any
    keys: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    items: tuple[Node, ...] = field(default=())

    def member(self, key: str) -> int | None:
        """Which member has a key; of several the last, as readers take it; None: none has."""
        found = [n for n, own in enumerate(self.keys) if own == key]
        return found[-1] if found else None


def read(text: str, *, comments: bool = False) -> Node:
    """The value that a text says.

    Args:
        text: the text.
        comments: whether comments, and a comma behind the last value, are read.

    Raises:
        ConfigError: it is no JSON; without the file's name.

    Example:
        >>> node = read('{"a": [1, 2]}')
        >>> node.value, node.items[0].items[1].start
        ({'a': [1, 2]}, 10)
    """
    reader = _Reader(text, comments)
    node = reader.value(reader.skip(0), 0)
    rest = reader.skip(node.end)
    if rest < len(text):
        raise reader.error(rest, "nothing more")
    return node


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments
        self.space = _COMMENTS if comments else _SPACE

    def skip(self, at: int) -> int:
        found = self.space.match(self.text, at)
        return found.end() if found else at

    def error(self, at: int, expected: str) -> ConfigError:
        before = self.text[:at]
        found = repr(self.text[at : at + 12]) if at < len(self.text) else "the end of the file"
        return ConfigError(
            f"found {found}, expected {expected}",
            line=before.count("\n") + 1,
            column=at - (before.rfind("\n") + 1) + 1,
        )

    def value(self, at: int, depth: int) -> Node:
        if depth > DEEPEST:
            raise self.error(at, f"at most {DEEPEST} levels of values in values")
        mark = self.text[at : at + 1]
        if mark in {"{", "["}:
            return self.container(at, mark == "{", depth)
        if mark == '"':
            return self.leaf(_STRING, at, "a JSON string")
        return self.leaf(_SCALAR, at, "a JSON value")

    def leaf(self, form: re.Pattern[str], at: int, expected: str) -> Node:
        found = form.match(self.text, at)
        try:
            if found is None:
                raise ValueError
            return Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.error(at, expected) from None

    def container(self, at: int, is_object: bool, depth: int) -> Node:
        close = "}" if is_object else "]"
        keys: list[str] = []
        starts: list[int] = []
        items: list[Node] = []
        position = self.skip(at + 1)
        while self.text[position : position + 1] != close:
            starts.append(position)
            if is_object:
                if self.text[position : position + 1] != '"':
                    raise self.error(position, 'a key in "…", or }')
                key = self.leaf(_STRING, position, "a JSON string")
                keys.append(key.value)
                position = self.skip(key.end)
                if self.text[position : position + 1] != ":":
                    raise self.error(position, "a colon behind the key")
                position = self.skip(position + 1)
            node = self.value(position, depth + 1)
            items.append(node)
            position = self.skip(node.end)
            if self.text[position : position + 1] == ",":
                comma, position = position, self.skip(position + 1)
                if self.text[position : position + 1] == close and not self.comments:
                    raise self.error(comma, f"no comma before {close}")
            elif self.text[position : position + 1] != close:
                raise self.error(position, f"a comma, or {close}")
        said: Any = [node.value for node in items]
        if is_object:
            said = dict(zip(keys, said, strict=True))
        return Node(at, position + 1, said, tuple(keys), tuple(starts), tuple(items))


# --- Putting in and cutting out -------------------------------------------------------------------


def add(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """A text with one more value, the last of an object or array.

    It is laid out as what is there. Into an empty container it goes on one line, behind a space:
    by that `cut` knows afterwards that the container had been there.

    Args:
        text: the text.
        container: the object or array, as `read` gave it.
        value: what is added.
        key: its key, in an object.

    Example:
        >>> add('{"a": 1}', read('{"a": 1}'), [2], "b")
        '{"a": 1, "b": [2]}'
    """
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not container.items:
        at = container.start + 1
        return f"{text[:at]} {name}{json.dumps(value, ensure_ascii=False)}{text[at:]}"
    at, indent = container.items[-1].end, _indent(text, container.starts[0], container.start)
    if indent is None:
        return f"{text[:at]}, {name}{json.dumps(value, ensure_ascii=False)}{text[at:]}"
    unit = _unit(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    said = f"{newline}{indent}".join(lines)
    return f"{text[:at]},{newline}{indent}{name}{said}{text[at:]}"


def cut(text: str, container: Node, which: int) -> str:
    """A text without one value of an object or array; the inverse of `add`, where it is the last.

    Example:
        >>> cut('{"a": 1, "b": [2]}', read('{"a": 1, "b": [2]}'), 1)
        '{"a": 1}'
    """
    start, end = container.starts[which], container.items[which].end
    if which > 0:
        return text[: container.items[which - 1].end] + text[end:]
    if len(container.items) > 1:
        return text[:start] + text[container.starts[1] :]
    return text[: container.start + 1] + text[end:]


def was_empty(text: str, container: Node) -> bool:
    """Whether the only value of a container is one that `add` put into an empty one."""
    if len(container.items) != 1:
        return False
    start, node = container.start + 1, container.items[0]
    compact = json.dumps(node.value, ensure_ascii=False)
    if container.keys:
        compact = f"{json.dumps(container.keys[0], ensure_ascii=False)}: {compact}"
    return text[start : node.end] == f" {compact}"


def _indent(text: str, start: int, opening: int) -> str | None:
    """The white space before what begins its own line; None: it does not."""
    line = text.rfind("\n", 0, start) + 1
    before = text[line:start]
    return before if line > opening and not before.strip(" \t") else None


def _unit(text: str) -> int | str:
    """What one level is indented by."""
    found = re.search(r"[{\[]\s*\n([ \t]+)\S", text)
    if found is None:
        return 2
    return "\t" if found[1].startswith("\t") else min(len(found[1]), 8)


# --- Loki's own part of the settings: text in, text out -----------------------------------------------

HOOKS = "hooks"

_OURS = re.compile(
    r"(?:^|[\s/'\"\\])(?:loki|-m['\"]? loki)(?:\.exe)?['\"]? hook [\w-]+(?: \|\| true)?\s*$"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to stand in an agent's settings.

    Attributes:
        command: the command line.
        events: names of the events, each with what it is limited to, or None.
        more: what else the agent's hooks have: ``timeout``, ``name``.
        comments: whether the agent reads comments in its settings.
    """

    command: str
    events: tuple[tuple[str, str | None], ...]
    more: Mapping[str, Any]
    comments: bool = False

    def group(self, matcher: str | None) -> dict[str, Any]:
        """The group of one event."""
        limit = {} if matcher is None else {"matcher": matcher}
        hook = {"type": "command", "command": self.command, **self.more}
        return {**limit, "hooks": [hook]}

    def whole(self) -> dict[str, Any]:
        """All of it, by event."""
        return {event: [self.group(matcher)] for event, matcher in self.events}


def is_ours(command: object) -> bool:
    """Whether a command line is one that loki put there.

    Example:
        >>> is_ours("test ! -x /v/bin/loki || /v/bin/loki hook claude-code || true")
        True
        >>> is_ours("echo loki hook claude-code >> log.txt")
        False
    """
    return isinstance(command, str) and _OURS.search(command) is not None


def commands(text: str, *, comments: bool) -> list[tuple[str, str]]:
    """loki's own command lines in settings, each with its event.

    Raises:
        ConfigError: the settings cannot be read; without the file's name.
    """
    hooks = _hooks(read(text, comments=comments))
    return [
        (hooks.keys[at], hook["command"])
        for at, _, group in _groups(hooks)
        for hook in _of(group.value)
        if hooks and _is_our_hook(hook)
    ]


def installed(text: str | None, entry: Entry) -> str:
    """Settings with loki's entries; the same text where they are there already.

    Args:
        text: the settings; None: there is no file yet.
        entry: what is to stand there.

    Raises:
        ConfigError: the settings cannot be read; without the file's name.
    """
    if text is None:
        return json.dumps({HOOKS: entry.whole()}, indent=2, ensure_ascii=False) + "\n"
    if _stands(text, entry):
        return text
    base = removed(text, comments=entry.comments)
    if base is None:
        return installed(None, entry)
    root = _root(read(base, comments=entry.comments))
    if root.member(HOOKS) is None:
        return add(base, root, entry.whole(), HOOKS)
    for event, matcher in entry.events:
        hooks = _hooks(read(base, comments=entry.comments))
        assert hooks is not None
        which = hooks.member(event)
        if which is None:
            base = add(base, hooks, [entry.group(matcher)], event)
        else:
            base = add(base, _list(base, hooks.items[which], event), entry.group(matcher))
    return base


def removed(text: str, *, comments: bool) -> str | None:
    """Settings without loki's entries; None: there was no file before.

    Where nobody else wrote them meanwhile they are what they were, to the byte.

    Raises:
        ConfigError: the settings cannot be read; without the file's name.
    """
    root = read(text, comments=comments)
    said = root.value
    pretty = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
    if text == pretty and list(said) == [HOOKS] and _all_ours(said[HOOKS]):
        return None
    while True:
        shorter = _without_one(text, read(text, comments=comments))
        if shorter is None:
            return text
        text = shorter


def _without_one(text: str, root: Node) -> str | None:
    """A text without the last of loki's entries; None: it has none."""
    hooks = _hooks(root)
    found = [(at, which) for at, which, group in _groups(hooks) if _has_ours(group.value)]
    if hooks is None or not found:
        return None
    at, which = found[-1]
    groups = hooks.items[at]
    group = groups.items[which]
    inner = group.items[group.keys.index(HOOKS)]
    if len(inner.items) > 1:  # somebody put other commands beside it
        mine = [n for n, hook in enumerate(inner.value) if _is_our_hook(hook)]
        return cut(text, inner, mine[-1])
    if len(groups.items) > 1 or was_empty(text, groups):
        return cut(text, groups, which)
    if len(hooks.items) > 1 or was_empty(text, hooks):
        return cut(text, hooks, at)
    in_root = root.member(HOOKS)
    assert in_root is not None
    return cut(text, root, in_root)


def _stands(text: str, entry: Entry) -> bool:
    """Whether just these entries stand there."""
    hooks = _hooks(read(text, comments=entry.comments))
    mine = [
        (hooks.keys[at], group.value)
        for at, _, group in _groups(hooks)
        if hooks and _has_ours(group.value)
    ]
    wanted = [(event, entry.group(matcher)) for event, matcher in entry.events]
    return len(mine) == len(wanted) and all(one in mine for one in wanted)


def _root(node: Node) -> Node:
    if not isinstance(node.value, dict):
        raise ConfigError("found a value that is no object, expected { … }", line=1)
    return node


def _hooks(root: Node) -> Node | None:
    which = _root(root).member(HOOKS)
    if which is None:
        return None
    hooks = root.items[which]
    if not isinstance(hooks.value, dict):
        raise ConfigError(f'found "{HOOKS}" that is no object, expected events by name')
    return hooks


def _list(text: str, node: Node, event: str) -> Node:
    if not isinstance(node.value, list):
        line = text[: node.start].count("\n") + 1
        raise ConfigError(f'found "{event}" that is no list, expected groups of hooks', line=line)
    return node


def _groups(hooks: Node | None) -> Iterator[tuple[int, int, Node]]:
    """Every group of hooks: which event's it is, which of that, and the group."""
    for at, node in enumerate(hooks.items if hooks else ()):
        if isinstance(node.value, list):
            for which, group in enumerate(node.items):
                yield at, which, group


def _of(group: object) -> list[Any]:
    hooks = group.get(HOOKS) if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _has_ours(group: object) -> bool:
    return any(_is_our_hook(hook) for hook in _of(group))


def _is_our_hook(hook: object) -> bool:
    return isinstance(hook, dict) and is_ours(hook.get("command"))


def _all_ours(hooks: object) -> bool:
    if not isinstance(hooks, dict) or not hooks:
        return False
    lists = hooks.values()
    return all(isinstance(of, list) and len(of) == 1 and _has_ours(of[0]) for of in lists)


# --- Files of settings --------------------------------------------------------------------------------

LARGEST = 4 << 20
"""Bytes of settings that are read; chosen, not measured."""

PATIENCE = 30.0
"""Seconds that a command line has to show that it works; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of an agent's settings.

    Attributes:
        agent: whose.
        scope: which of them.
        path: the file.
        before, after: its content; None: there is no file.
    """

    agent: HookedAgent
    scope: str
    path: Path
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        """Whether anything does."""
        return self.before != self.after

    def diff(self) -> str:
        """What changes, as a unified diff; "" where nothing does."""
        sides = self.before, self.after
        old, new = ((side or "").splitlines(keepends=True) for side in sides)
        was, becomes = ("/dev/null" if side is None else str(self.path) for side in sides)
        lines = difflib.unified_diff(old, new, was, becomes)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def carry_out(self) -> None:
        """Write it, whole or not at all; a link is followed, permissions stay.

        Raises:
            StoreError: it cannot be written; the file is as it was.
        """
        if not self.changes:
            return
        target = Path(os.path.realpath(self.path))
        with telling("cannot write", self.path):
            if self.after is None:
                target.unlink()
                with suppress(OSError):  # something else is in it
                    target.parent.rmdir()
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = target.stat().st_mode & 0o7777 if self.before is not None else _new_mode()
        write_atomic(target, self.after.encode("utf-8", "surrogateescape"), mode)


def to_install(
    agent: HookedAgent, scope: str, project: Path, environment: Mapping[str, str]
) -> Plan:
    """What installing changes.

    Args:
        agent: whose hooks.
        scope: which of its settings.
        project: the project's folder.
        environment: variables, some of which say where a user's settings are.

    Raises:
        UsageError: the agent has no such settings.
        ConfigError: they cannot be read; with file and line.
    """
    path = _path(agent, scope, project, environment)
    line = command_line(agent.name, scope, environment)
    wanted = Entry(line, agent.events(), agent.more, agent.comments)
    before = _read(path)
    try:
        return Plan(agent, scope, path, before, installed(before, wanted))
    except ConfigError as error:
        raise _at(path, error) from error


def to_remove(
    agent: HookedAgent, scope: str, project: Path, environment: Mapping[str, str]
) -> Plan:
    """What uninstalling changes; arguments and errors as for `to_install`."""
    path = _path(agent, scope, project, environment)
    before = _read(path)
    try:
        after = None if before is None else removed(before, comments=agent.comments)
        return Plan(agent, scope, path, before, after)
    except ConfigError as error:
        raise _at(path, error) from error


def command_line(name: str, scope: str, environment: Mapping[str, str]) -> str:
    """The command line of a hook: it calls loki, and where that is gone it does nothing.

    Its exit code is 0 also where a loki of an older version refuses it: to agents 2 is a veto.

    Args:
        name: of the agent.
        scope: settings that others share have it by name, too.
        environment: variables; of them ``PATH``.
    """
    own = Path(sys.executable).parent / "loki"
    words = [str(own)] if own.exists() else [sys.executable, "-m", "loki"]
    program, said = shlex.quote(words[0]), shlex.join([*words, "hook", name])
    by_name = f"! command -v loki >/dev/null || loki hook {name} || true"
    if scope != "project":
        return f"test ! -x {program} || {said} || true"
    if _is_on_path(own, environment):
        return by_name
    return f"test -x {program} && {said} || {by_name}"


def _is_on_path(own: Path, environment: Mapping[str, str]) -> bool:
    """Whether ``loki`` calls this loki in any terminal: not for a virtual environment that is active."""
    found = shutil.which("loki", path=environment.get("PATH"))
    if found is None or os.path.realpath(found) != os.path.realpath(own):
        return False
    return sys.prefix == sys.base_prefix or Path(found).parent != own.parent


# --- What is there --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HookStatus:
    """What stands in one of an agent's settings.

    Attributes:
        agent: whose.
        scope: which of them.
        path: the file.
        events: events with loki's hooks; none: it is not installed there.
        missing: events that it listens to today, without one.
        commands: the command lines.
        problem: why it does not work, or "".
    """

    agent: HookedAgent
    scope: str
    path: Path
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    problem: str = ""


def hook_status(project: Path, environment: Mapping[str, str]) -> list[HookStatus]:
    """What stands in the settings of all agents, where there are any.

    Args:
        project: the project's folder.
        environment: variables, some of which say where a user's settings are.
    """
    return [
        _standing(agent, scope, path, project, environment)
        for agent in AGENTS.values()
        for scope in agent.files
        if (path := agent.path(scope, project, environment)).exists()
    ]


def _standing(
    agent: HookedAgent, scope: str, path: Path, project: Path, environment: Mapping[str, str]
) -> HookStatus:
    try:
        text = _read(path) or ""
        found = commands(text, comments=agent.comments)
        off = _switched_off(read(text, comments=agent.comments).value)
    except ConfigError as error:
        return HookStatus(agent, scope, path, problem=str(_at(path, error)))
    events = tuple(dict.fromkeys(event for event, _ in found))
    lines = tuple(dict.fromkeys(line for _, line in found))
    if not events:
        return HookStatus(agent, scope, path)
    missing = tuple(event for event, _ in agent.events() if event not in events)
    problem = off
    for line in lines:
        problem = problem or _problem(line, project, environment)
    if missing and not problem:
        problem = f"no hook for {', '.join(missing)}: install it again"
    return HookStatus(agent, scope, path, events, missing, lines, problem)


def _switched_off(said: object) -> str:
    """Why no hook runs at all, or ""."""
    if not isinstance(said, dict):
        return ""
    if said.get("disableAllHooks") is True:
        return '"disableAllHooks" is true'
    config = said.get("hooksConfig")
    if isinstance(config, dict) and config.get("enabled") is False:
        return '"hooksConfig.enabled" is false'
    return ""


def _problem(line: str, project: Path, environment: Mapping[str, str]) -> str:
    """Why a command line does not work, or ""."""
    event = json.dumps({"hook_event_name": PROBE, "cwd": str(project)})
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            input=event,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=project,
            env=dict(environment),
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be run: {type(error).__name__}"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return f"it ended with exit code {done.returncode}: {last}"
    return "" if '"loki"' in done.stdout else "it does not find loki any more: install it again"


# --- Files ----------------------------------------------------------------------------------------


def _path(agent: HookedAgent, scope: str, project: Path, environment: Mapping[str, str]) -> Path:
    if scope not in agent.files:
        known = ", ".join(f"--{one}" for one in agent.files)
        raise UsageError(f"{agent.title} has no settings for --{scope}, expected one of {known}")
    if scope != "user" and not project.is_dir():
        raise UsageError(f"no such project: {project} is not a folder")
    return agent.path(scope, project, environment)


def _read(path: Path) -> str | None:
    """A file's text; None: there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    if len(data) > LARGEST:
        raise ConfigError(f"found more than {LARGEST >> 20} MB, expected settings", file=str(path))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("found what is no UTF-8", file=str(path), line=line) from error


def _at(path: Path, error: ConfigError) -> ConfigError:
    if error.file:
        return error
    return ConfigError(error.reason, file=str(path), line=error.line, column=error.column)


def _new_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o644 & ~mask
