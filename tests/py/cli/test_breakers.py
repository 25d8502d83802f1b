"""`loki breakers` as its users meet it, beside who uses the breakers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import loki
from support import command


def run(project: Path, *arguments: str) -> command.Ended:
    return command.loki("breakers", *arguments, cwd=project)


def data(project: Path, *arguments: str) -> Any:
    code, out, err = run(project, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture
def breakers(tmp_path: Path) -> loki.Breakers:
    """One that tripped, and one that had a failure."""
    found = loki.Workspace(tmp_path).breakers()
    for _ in range(3):
        found["api/claude"].guard().failure("529 overloaded")
    found["api/openai"].guard().failure(OSError("connection lost"))
    return found


def test_lists_what_a_person_wants_to_know(tmp_path: Path, breakers: loki.Breakers) -> None:
    code, out, _ = run(tmp_path)
    assert code == 0
    head, claude, openai = out.splitlines()
    assert head.split() == ["NAME", "STATE", "FAILURES", "COOLDOWN", "LAST", "ERROR"]
    assert claude.split()[:3] == ["api/claude", "OPEN", "3"]
    assert claude.endswith("s left  529 overloaded")
    assert openai.split() == [
        *("api/openai", "CLOSED", "1", "-"),
        *("OSError:", "connection", "lost"),
    ]
    listed = data(tmp_path, "list")
    assert [one["name"] for one in data(tmp_path)] == [one["name"] for one in listed]
    assert [(one["name"], one["state"], one["failure_count"]) for one in listed] == [
        ("api/claude", "OPEN", 3),
        ("api/openai", "CLOSED", 1),
    ]
    assert 290 < listed[0]["retry_after"] <= 300
    assert listed[0]["cooldown_until"].endswith("Z")


def test_nothing_to_list_says_where_to_look(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path)
    assert (code, "loki breakers --help" in out) == (0, True)
    assert data(tmp_path) == []


def test_by_hand_what_runs_follows(tmp_path: Path, breakers: loki.Breakers) -> None:
    """Each action shows what came of it, and the process that uses the breaker sees it."""
    claude = breakers["api/claude"]
    assert data(tmp_path, "close", "api/claude")["state"] == "CLOSED"
    assert claude.snapshot().state == "CLOSED"
    assert data(tmp_path, "isolate", "api/claude")["is_isolated"] is True
    assert claude.snapshot().retry_after is None
    code, out, _ = run(tmp_path, "open", "api/claude")
    assert (code, "300 s left" in out) == (0, True)
    assert claude.snapshot().retry_after is not None
    assert data(tmp_path, "reset", "api/openai")["failure_count"] == 0
    assert breakers["api/openai"].snapshot().failure_count == 0
    code, out, _ = run(tmp_path, "show", "api/claude")
    assert code == 0
    assert "state     OPEN" in out


def test_a_wrong_name_is_answered_with_the_nearest(tmp_path: Path, breakers: loki.Breakers) -> None:
    for wrong, near in (("api/cluade", "api/claude"), ("openai", "api/openai")):
        code, out, err = run(tmp_path, "close", wrong)
        assert (code, out) == (2, "")
        assert f"did you mean {near}?" in err
    code, _, err = run(tmp_path, "show", "zzz")
    assert code == 2
    assert "there are: api/claude, api/openai" in err
    assert "--new" not in err
    code, _, err = run(tmp_path, "isolate", "api/new")
    assert (code, "--new" in err) == (2, True)
    assert data(tmp_path, "isolate", "api/new", "--new")["is_isolated"] is True


def test_options_may_stand_before_the_command(tmp_path: Path, breakers: loki.Breakers) -> None:
    """They are not lost: another project's breaker of that name stays as it is."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    loki.Workspace(elsewhere).breakers()["api/claude"].open()
    code, out, _ = run(elsewhere, "--json", "--project", "..", "close", "api/claude")
    assert code == 0
    assert json.loads(out)["state"] == "CLOSED"
    assert breakers["api/claude"].snapshot().state == "CLOSED"
    assert data(elsewhere, "show", "api/claude")["state"] == "OPEN"
    assert data(elsewhere, "--project", ".", "show", "api/claude", "--project", "..")["state"] == (
        "CLOSED"
    )


def test_errors_and_names_write_on_their_line_alone(
    tmp_path: Path, breakers: loki.Breakers
) -> None:
    """A terminal obeys nothing that an error says."""
    breakers["a\nb\x1b]0;x"].guard().failure("first\nsecond \x9b2J\x07")
    for arguments in ((), ("show", "a\nb\x1b]0;x")):
        _, out, _ = run(tmp_path, *arguments)
        assert "a b ]0;x" in out
        assert "first second 2J" in out
        assert not any(c in out for c in "\x1b\x9b\x07")


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, breakers: loki.Breakers) -> None:
    """With where it is kept."""
    (tmp_path / ".loki/state/circuit-breakers.json").write_text("{", "utf-8")
    code, out, err = run(tmp_path)
    assert code == 0
    assert "set aside as circuit-breakers.json.corrupt-1" in err
    assert out.startswith("No breaker")


def test_help_teaches(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, "--help")
    assert code == 0
    for part in ("HALF_OPEN", "loki breakers isolate api/claude", "watch"):
        assert part in out
