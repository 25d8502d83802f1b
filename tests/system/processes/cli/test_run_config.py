"""`loki run --kind config_change` without a check: its criterion, that the file parses, needs no command: with processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from support.command import loki


def _run(project: Path, script: str, *more: str) -> tuple[int, dict[str, Any], str]:
    agent = f"{sys.executable} -c {script!r}"
    run = ("run", "--json", "--task", "raise the limit in app.toml", "--kind", "config_change")
    code, out, err = loki(*run, "--agent-command", agent, *more, cwd=project)
    return code, json.loads(out or "{}"), err


def test_it_is_done_once_what_was_changed_parses(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text("limit = 1\n")
    (tmp_path / "broken.json").write_text("{")  # nobody's business
    code, outcome, said = _run(tmp_path, "open('app.toml', 'w').write('limit = 2\\n')")
    assert (code, outcome["status"], outcome["attempts"]) == (0, "success", 1), said
    (task,) = (tmp_path / ".loki/tasks").iterdir()
    (record,) = [
        json.loads(line) for line in (task / "attempts.jsonl").read_text().splitlines()[:1]
    ]
    assert record["checks"][0]["output"] == "parses: app.toml"


def test_what_is_no_configuration_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text("limit = 1\n")
    code, outcome, said = _run(
        tmp_path, "open('notes.txt', 'w').write('raised the limit')", "--max-attempts", "1"
    )
    assert (code, outcome["status"]) == (4, "failed"), said
    assert "nothing that was changed is a file that loki can parse (notes.txt)" in said
