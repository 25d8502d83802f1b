"""`--agent` and `--agent-command`: who works, and what is said where nobody can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import command, replay
from support.project import QUICK, RIGHT, make_project

TASK = ("run", "--task", "make add add", "--check", QUICK)


@pytest.fixture
def bin_(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    fix = f"cat > calc.py <<'END'\n{RIGHT}END"
    replay.program(folder, "claude", replay.lines(replay.claude_events()), fix)
    return folder


def loki(*arguments: str, cwd: Path, bin_: Path) -> command.Ended:
    """Exit code, stdout and stderr."""
    path = f"{bin_}:{os.environ['PATH']}"
    return command.loki(*arguments, cwd=cwd, environment={"PATH": path, "COLUMNS": "200"})


def test_a_preset_works(tmp_path: Path, bin_: Path) -> None:
    root = make_project(tmp_path / "project", git=True)
    code, out, err = loki(*TASK, "--agent", "claude", "--agent-timeout", "5m", cwd=root, bin_=bin_)
    assert code == 0, err
    assert "success after 1 attempt" in out
    assert "[agent] claude: Write note.txt" in err, "what it does is shown while it works"
    assert "[agent] claude: 380 tokens, $0.002612" in err
    assert "--permission-mode" in (bin_ / "claude.arguments").read_text()


def test_a_task_goes_on_with_the_agent_it_had(tmp_path: Path, bin_: Path) -> None:
    root = make_project(tmp_path / "project", git=True)
    limit = replay.claude_result(subtype="error_max_turns", result=None)
    replay.program(bin_, "claude", replay.lines([limit]), "", "exit 1")
    code, out, _ = loki(*TASK, "--agent", "claude", "--pass-env", "GH_*", cwd=root, bin_=bin_)
    assert code == 3, out
    assert "a limit that its own options set (error_max_turns)" in out
    fix = f"cat > calc.py <<'END'\n{RIGHT}END"
    replay.program(bin_, "claude", replay.lines(replay.claude_events()), fix)
    code, out, err = loki("resume", "make", "--context", "Try again", cwd=root, bin_=bin_)
    assert code == 0, err
    assert "[agent] claude: Write note.txt" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "who works? Expected --agent with a program that loki knows"),
        (("--agent", "claude", "--agent-command", "x"), "one of them"),
        (("--agent", "cluade"), "did you mean 'claude'"),
        (("--agent", "gemini"), "agent gemini: cannot run 'gemini': there is no such program"),
        (("--agent", "claude", "--briefing", "stdin"), "--briefing is for --agent-command"),
        (("--agent", "claude", "--agent-timeout", "5"), "--agent-timeout"),
    ],
)
def test_what_is_said_where_nobody_can_work(
    tmp_path: Path, bin_: Path, words: tuple[str, ...], said: str
) -> None:
    root = make_project(tmp_path / "project")
    code, out, err = loki(*TASK, *words, cwd=root, bin_=bin_)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_a_preset_works_for_a_stage(tmp_path: Path, bin_: Path) -> None:
    root = make_project(tmp_path / "project", git=True)
    (root / "mend.yml").write_text(
        "name: mend\nversion: 1\nstages:\n"
        f"  - {{id: fix, agent: writer, description: make add add, checks: [{QUICK!r}]}}\n"
    )
    words = ("pipeline", "run", "mend.yml", "--agent", "writer=claude")
    code, out, err = loki(*words, cwd=root, bin_=bin_)
    assert code == 0, err + out
    assert "[agent] writer: Write note.txt" in err
    assert "--permission-mode" in (bin_ / "claude.arguments").read_text()
