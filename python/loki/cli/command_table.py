"""Where each command is: loaded when it is called, as all of them together take longer than most work."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.main import get_group

COMMANDS = {
    "run": "run:command",
    "submit": "submit:command",
    "resume": "resume:command",
    "status": "status:command",
    "inbox": "inbox:command",
    "approve": "inbox:approve",
    "reject": "inbox:reject",
    "answer": "inbox:answer",
    "explain": "explain:command",
    "show": "show:command",
    "history": "history:command",
    "close": "close:command",
    "review": "review:command",
    "report": "report:command",
    "pause": "recur_change:pause",
    "edit": "recur_change:edit",
    "tick": "tick:command",
    "undo": "undo:command",
    "up": "up:command",
    "work": "work:command",
    "cancel": "stop:cancel",
    "drain": "stop:drain",
    "stop": "stop:stop",
    "mcp": "mcp:command",
    "demo": "demo:command",
    "breakers": "breakers:app",
    "queue": "queue:app",
    "dead-letters": "dead_letters:app",
    "hook": "hook:app",
    "replay": "replay:command",
    "patterns": "patterns:app",
    "pipeline": "pipeline:app",
    "recur": "recur:app",
    "signals": "signals:app",
}
"""Module of this package, and what in it is the command, or the group of commands; in the order in
which `loki --help` shows them."""


class CommandGroup(MutableMapping[str, Any]):
    """Commands by name, each made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = dict.fromkeys(COMMANDS)

    def __getitem__(self, name: str) -> Any:
        if self._made[name] is None:
            self._made[name] = _made(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def _made(name: str) -> Any:
    where, _, what = COMMANDS[name].partition(":")
    module = import_module(f"loki.cli.{where}")
    found = getattr(module, what)
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name, cls=getattr(module, "Command", None))(found)
    return get_group(alone).commands[name]
