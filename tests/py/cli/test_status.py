"""`loki status`, the command: what it says where a part of the project cannot be read."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loki.cli.app import app


def test_a_queue_that_cannot_be_read_is_no_queue_in_which_nothing_waits(tmp_path: Path) -> None:
    queue = tmp_path / ".loki" / "queue"
    queue.mkdir(parents=True)
    (queue / "pending.json").write_text('[{"id": "a",')

    told = CliRunner().invoke(app, ["status", "--project", str(tmp_path)])
    assert told.exit_code == 0
    assert "The queue cannot be read" in told.stdout
    assert ".loki/queue/pending.json:1:13: is no JSON" in told.stdout
    assert "Nothing else waits for you." in told.stdout
    data = CliRunner().invoke(app, ["status", "--project", str(tmp_path), "--json"])
    assert [".loki/queue/pending.json" in why for why in json.loads(data.stdout)["unread"]] == [
        True
    ]


def test_recurring_tasks_stand_in_columns(tmp_path: Path) -> None:
    for words in (["--id", "a"], ["--id", "longer"]):
        said = ["recur", "add", "--every", "1h", "--project", str(tmp_path), *words, "--", "true"]
        assert CliRunner().invoke(app, said).exit_code == 0
    told = CliRunner().invoke(app, ["recur", "list", "--project", str(tmp_path)]).stdout
    assert len({one.index("scheduled") for one in told.splitlines()}) == 1


@pytest.mark.parametrize("command", ["status", "dead-letters"])
def test_warnings_say_that_they_are_loki_s(tmp_path: Path, command: str) -> None:
    queue = tmp_path / ".loki" / "queue"
    queue.mkdir(parents=True)
    (queue / "pending.json").write_text("[null]")
    logging.getLogger("loki").handlers.clear()

    told = CliRunner().invoke(app, [command, "--project", str(tmp_path)])
    warned = [one for one in told.stderr.splitlines() if "entry 1" in one]
    assert warned
    assert all(one.startswith("loki: warning: ") for one in warned)
