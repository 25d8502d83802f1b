"""What tests of together/test_outside of both tiers share."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from loki.cli.app import app

AWAY = "../../../outside"


def task(**more: Any) -> dict[str, Any]:
    return {"id": AWAY, "title": "x", "checks": ["true"], "agent_command": "true", **more}


def outside(project: Path) -> dict[str, bytes | None]:
    """All that is beside the project."""
    found: dict[str, bytes | None] = {}
    for place, _, names in os.walk(project.parent):
        if Path(place).is_relative_to(project):
            continue
        found[place] = None
        # Beside a database stand files of SQLite's own as long as anybody has it open.
        kept = (name for name in names if not name.startswith("queue.db-"))
        found.update({f"{place}/{name}": Path(place, name).read_bytes() for name in kept})
    return found


def loki_says(arguments: list[str]) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), arguments
    return done.output


def write(project: Path, files: dict[str, Any]) -> None:
    for name, data in files.items():
        path = project / ".loki" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data) + "\n")
