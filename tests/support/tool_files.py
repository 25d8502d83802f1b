"""The tool files that loki brings, as they were written."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from support.paths import ROOT

TOOLS = ROOT / "python/loki/recognition/tools"


@cache
def tool_files() -> dict[str, dict[str, Any]]:
    """Each by its name; read once, and by the parser in C: the other one takes seconds for them."""
    return {
        path.stem: yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
        for path in sorted(TOOLS.glob("*.yml"))
    }
