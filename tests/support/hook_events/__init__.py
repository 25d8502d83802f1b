"""What Claude Code 2.1.330, Codex 0.169.0 and Gemini CLI 0.61.0 gave their hooks, recorded.

Each ran a failing command, one that went well, wrote a file, read one that is not there (not Codex),
and ended with a claim. Only the folders are other ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def events(agent: str) -> list[dict[str, Any]]:
    """All events of an agent, in order."""
    said: list[dict[str, Any]] = json.loads((HERE / f"{agent}.json").read_text("utf-8"))
    return said


def event(agent: str, name: str, which: int = 0) -> dict[str, Any]:
    """One of an agent's events by name, the first or a later one."""
    return [one for one in events(agent) if one["hook_event_name"] == name][which]
