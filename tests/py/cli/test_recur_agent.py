"""``loki edit`` of a recurring task that an agent works on, with the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.smoke import Smoke


@pytest.fixture
def smoke(tmp_path: Path) -> Smoke:
    found = Smoke(tmp_path / "shop")
    agent = found.program("writes", "cat > $TOOLS/asked; echo hello > a.txt")
    found.loki("recur", "add", "--every", "1h", "--id", "nightly", "--task", "write a file",
               "--check", "test -f b.txt", "--max-attempts", "1",
               "--agent-command", str(agent))  # fmt: skip
    return found


def task(smoke: Smoke) -> Any:
    return json.loads(smoke.loki("show", "nightly", "--json"))


def test_who_works_is_one(smoke: Smoke) -> None:
    """Whoever worked before goes; '' takes away what may be missing; a title of its own stays."""
    smoke.config("true")
    smoke.loki("edit", "nightly", "--title", "Files", "--evaluate-command", "cat")
    smoke.loki("edit", "nightly", "--agent", "doc", "--task", "write d.txt", "--scope", "src",
               "--kind", "feature", "--complexity", "low", "--max-attempts", "2")  # fmt: skip
    part = task(smoke)["agent"]
    assert (part["agent"], part["agent_command"]) == ("doc", None)
    assert (part["kind"], part["complexity"], part["max_attempts"]) == ("feature", "low", 2)
    assert (part["evaluate_command"], part["scope"]) == ("cat", ["src"])
    smoke.loki("edit", "nightly", "--evaluate-command", "", "--scope", "")
    after = task(smoke)
    assert (after["agent"]["evaluate_command"], after["agent"]["scope"]) == (None, [])
    assert after["title"] == "Files"
    shown = smoke.loki("recur", "show", "nightly")
    assert "task      write d.txt" in shown
    assert "agent     doc" in shown


REFUSED = {
    ("--agent", "doc", "--agent-command", "true"): "not both",
    ("--agent", "nobody"): "nobody",
    ("--agent-command", "no-such-program"): "no-such-program",
    ("--check", "no-such-check"): "no-such-check",
    ("--task", " "): "--task is empty",
    ("--kind", "poem"): "poem",
    ("--task", "use ghp_" + "a1B2" * 9): "secret",
    ("--command", "true"): "agent's task",
}


def test_what_cannot_work_changes_nothing(smoke: Smoke) -> None:
    before = task(smoke)
    for words, said in REFUSED.items():
        smoke.loki("edit", "nightly", *words, status=2)
        assert said in smoke.said, words
    assert task(smoke) == before


def test_an_empty_schedule_is_refused(smoke: Smoke) -> None:
    smoke.loki("recur", "add", "--cron", "@daily", "--id", "backup", "--", "true")
    smoke.loki("edit", "backup", "--cron", "", status=2)
    assert "found 0 fields" in smoke.said
    smoke.loki("edit", "backup", "--zone", "Europe/Berlin")
    told = json.loads(smoke.loki("show", "backup", "--json"))["schedule"]
    assert told == {"cron": "@daily", "zone": "Europe/Berlin"}
    smoke.loki("edit", "nightly", "--max-iterations", "3")
    assert task(smoke)["schedule"]["max_iterations"] == 3


def test_a_command_has_no_agent(smoke: Smoke) -> None:
    smoke.loki("recur", "add", "--every", "1h", "--id", "backup", "--", "true")
    smoke.loki("edit", "backup", "--check", "true", status=2)
    assert "backup runs a command" in smoke.said
