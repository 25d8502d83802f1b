"""What loki puts into an agent's settings, and how it is taken out again. Pure: text in, text out.

An agent's hooks stand under ``hooks``, by event: groups, each with a matcher and commands. loki's own
are known by their command line, so that no record of them is needed; whatever others put there stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loki.adapters.hooks.json_text import Node, add, cut, nodes, read, was_empty
from loki.base.error import ConfigError

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
        for which, group in enumerate(nodes(node)):
            yield at, which, group


def _of(group: object) -> list[Any]:
    hooks = group.get(HOOKS) if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _has_ours(group: object) -> bool:
    return any(_is_our_hook(hook) for hook in _of(group))


def _is_our_hook(hook: object) -> bool:
    return isinstance(hook, dict) and is_ours(hook.get("command"))


def _all_ours(hooks: object) -> bool:
    return (
        isinstance(hooks, dict)
        and bool(hooks)
        and all(
            isinstance(groups, list) and len(groups) == 1 and _has_ours(groups[0])
            for groups in hooks.values()
        )
    )
