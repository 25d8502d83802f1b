"""loki: failure handling for autonomous coding agents.

The public names, nothing else. Each is loaded when it is first used, so that ``import loki`` stays
light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loki.action.agent import Agent as Agent
    from loki.action.agent import Briefing as Briefing
    from loki.action.agent import Proposal as Proposal
    from loki.action.change import Change as Change
    from loki.action.change import Edit as Edit
    from loki.agents.command import CommandAgent as CommandAgent
    from loki.agents.scripted import ScriptedAgent as ScriptedAgent
    from loki.base.error import (
        AgentError as AgentError,
    )
    from loki.base.error import (
        ConfigError as ConfigError,
    )
    from loki.base.error import (
        LokiError as LokiError,
    )
    from loki.base.error import (
        StoreError as StoreError,
    )
    from loki.base.error import (
        UsageError as UsageError,
    )
    from loki.decision.backoff import Backoff as Backoff

__version__ = "0.1.0"

# Public name -> the module that it lives in.
_HOME = {
    "Agent": "loki.action.agent",
    "Backoff": "loki.decision.backoff",
    "Briefing": "loki.action.agent",
    "Change": "loki.action.change",
    "CommandAgent": "loki.agents.command",
    "Edit": "loki.action.change",
    "Proposal": "loki.action.agent",
    "ScriptedAgent": "loki.agents.scripted",
    **dict.fromkeys(
        ("AgentError", "ConfigError", "LokiError", "StoreError", "UsageError"), "loki.base.error"
    ),
}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'loki' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
