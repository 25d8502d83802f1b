"""`loki hook install`, `uninstall` and `status`, as a person types them: with processes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loki.adapters.hooks.hooked_agents import AGENTS
from support.cli_hook import Person

NAMES = tuple(AGENTS)


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    made = Person(tmp_path)
    monkeypatch.chdir(made.project)
    return made


@pytest.mark.parametrize("agent", NAMES)
def test_status_says_that_it_works_and_when_it_does_not(agent: str, person: Person) -> None:
    assert "No agent has loki's hooks here" in person.types("status")[1]
    person.types("install", agent)
    code, out, _ = person.types("status")
    assert (code, "works" in out) == (0, True)
    assert ("once you trust it" in out) == ("loki cannot see" in out) == (agent != "claude-code")
    data: list[dict[str, Any]] = json.loads(person.types("status", "--json")[1])
    assert [(one["agent"], one["works"]) for one in data] == [(agent, True)]
    path = Path(data[0]["path"])
    path.write_text(path.read_text().replace(str(Path(sys.executable).parent), "/gone/bin"))
    code, out, _ = person.types("status", path="/usr/bin:/bin")
    assert code == 1
    assert "install it again" in out
    assert person.types("install", agent)[0] == 0
    assert person.types("status")[0] == 0


def test_gemini_reads_comments(person: Person) -> None:
    text = '{\n  // mine\n  "theme": "x", // dark\n}\n'
    path = person.writes("gemini", "project", text)
    assert person.types("install", "gemini")[0] == 0
    assert "// mine" in path.read_text()
    assert person.types("status")[0] == 0
    assert person.types("uninstall", "gemini")[0] == 0
    assert path.read_text() == text


def test_the_command_line_does_nothing_where_loki_is_gone(person: Person) -> None:
    person.types("install", "gemini")
    said = json.loads(person.file("gemini", "project").read_text())
    line = said["hooks"]["AfterTool"][0]["hooks"][0]["command"]
    gone = line.replace(str(Path(sys.executable).parent), "/gone/bin")
    for shell in ("sh", "bash"):
        if shutil.which(shell):
            done = subprocess.run(
                [shell, "-c", gone], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
