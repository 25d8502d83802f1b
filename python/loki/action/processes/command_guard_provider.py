"""Who knows how commands run for a folder; light, as every workspace says so when it is made."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from loki.action.processes.command_guard import CommandGuard


_providers: dict[str, tuple[weakref.ref[Any], Callable[[Any], CommandGuard]]] = {}


def register(root: Path, owner: Any, command_guard: Callable[[Any], CommandGuard]) -> None:
    """Say who knows how commands run for a folder; the last one counts, as long as it lives.

    Args:
        root: the folder, resolved.
        owner: who knows: a workspace.
        command_guard: what looks after the folder's commands, asked of the owner when it is first needed.
    """
    key = str(root)

    def gone(reference: weakref.ref[Any]) -> None:
        if (found := _providers.get(key)) is not None and found[0] is reference:
            del _providers[key]

    _providers[key] = (weakref.ref(owner, gone), command_guard)


def registered(root: Path) -> CommandGuard | None:
    """What looks after a folder's commands, if anybody said so."""
    found = _providers.get(str(root))
    owner = found[0]() if found is not None else None
    return found[1](owner) if found is not None and owner is not None else None
