"""``loki edit`` of a recurring task that an agent works on, with the real command: with processes."""

from __future__ import annotations

import json
from datetime import timedelta
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


def test_what_is_to_be_achieved_by_whom_and_how_it_is_checked(smoke: Smoke) -> None:
    """The next run asks the new agent for the new task, and looks with the new checks."""
    smoke.loki("tick")
    assert task(smoke)["consecutive_failures"] == 1
    other = smoke.program("other", "cat > $TOOLS/other-asked; echo hello > c.txt")
    said = smoke.loki("edit", "nightly", "--task", "write c.txt", "--check", "test -f c.txt",
                      "--check", "grep -q hello c.txt", "--agent-command", str(other))  # fmt: skip
    assert "changed nightly" in said
    assert "backoff iteration 1" in said  # what is counted against it stays
    after = task(smoke)
    assert after["title"] == after["agent"]["task"] == "write c.txt"
    assert after["agent"]["max_attempts"] == 1  # what was not named stays
    smoke.now += timedelta(days=1)
    smoke.loki("tick")
    assert (smoke.root / "c.txt").read_text() == "hello\n"
    assert "write c.txt" in (smoke.tools / "other-asked").read_text()
    assert task(smoke)["consecutive_failures"] == 0
    assert "test -f c.txt" in smoke.loki("recur", "show", "nightly")
