"""Who knows how commands run for a folder; light, as every workspace says so when it is made."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from loki.action.processes.command_guard import Ward


class Provider(Protocol):
    """Says how commands run in its folders: a workspace."""

    @property
    def ward(self) -> Ward:
        """What looks after them."""


_providers: weakref.WeakValueDictionary[str, Provider] = weakref.WeakValueDictionary()


def register(root: Path, provider: Provider) -> None:
    """Say who knows how commands run for a folder; the last one counts, as long as it lives.

    Args:
        root: the folder, resolved.
        provider: who knows.
    """
    _providers[str(root)] = provider


def provider_of(root: Path) -> Provider | None:
    """Who knows, if anybody does."""
    return _providers.get(str(root))
