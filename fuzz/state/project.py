"""A project in which loki has really worked: each command ran, and what they wrote is what is damaged."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import loki
from loki.cli.app import app
from loki.decision.monitor.tool_call import ToolCall

PYTHON = shlex.quote(sys.executable)
CHECK = f"{PYTHON} -S check.py"
WRONG = "def add(a, b):\n    return a - b\n"
PIPELINE = """\
name: answer
version: 1
description: Answers.
checks: ["test -f check.py"]
stages:
  - id: plan
    agent: planner
    mode: plan
    description: Say what to write.
    outputs: [plan]
  - id: write
    agent: writer
    mode: agent
    description: Write it.
    inputs: [plan]
    requires_approval: true
"""


def run(*words: str, data: str = "") -> str:
    """What a command printed; whatever it is that it ends with, it is no exception."""
    done = CliRunner().invoke(app, words, input=data)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def agent(code: str) -> str:
    """The command of an agent that edits by a line of Python."""
    return f"{PYTHON} -S -c {shlex.quote(code)}"


def make(root: Path, *, quick: bool = False) -> None:
    """Make it; the working folder is the project's afterwards.

    Args:
        root: a folder that does not exist.
        quick: only what takes a second or two; else half a minute.
    """
    (root / "tests").mkdir(parents=True)
    (root / "calc.py").write_text(WRONG)
    (root / "tests" / "test_calc.py").write_text(
        "from calc import add\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    (root / "check.py").write_text("from calc import add\nassert add(2, 3) == 5, add(2, 3)\n")
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (root / "answer.yml").write_text(PIPELINE)
    (root / ".gitignore").write_text("__pycache__/\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=root, check=True)
    os.chdir(root)
    with contextlib.redirect_stderr(io.StringIO()):
        _work(quick=quick)


CONFIG = """\
[signs]
threshold = 2

[work]
parallel = 2
"""
PATTERNS = """\
version: 2
extends: default
patterns:
  - id: answer-missing
    signals: [{literal: "no answer"}]
    strategy: analyze_then_fix
    description: Nothing answered.
    max_auto_retries: 2
    auto_fixable: false
"""


def _settings() -> None:
    """What people write."""
    for name, text in (("config.toml", CONFIG), ("failure-patterns.yml", PATTERNS)):
        Path(".loki", name).write_text(text)


def _work(*, quick: bool) -> None:
    if quick:
        _few()
    else:
        _tasks()
        _queue()
        _recurring()
    _people()
    _monitor()
    _settings()
    run("status")  # acts on what waits: what is looked at afterwards stays as it is


def _few() -> None:
    lines = iter(("x = 1\n", "x = 2\n"))
    edit = lambda _: {"calc.py": WRONG + next(lines)}  # noqa: E731 - an agent, in a line
    loki.run("never mended", agent=edit, checks=[CHECK], max_attempts=2)
    for title in ("waits", "third"):
        run("submit", "--task", title, "--id", title, "--check", "true", "--agent-command", "true")
    run("recur", "add", "--every", "10m", "--id", "cycle", "--", "true")
    run("recur", "add", "--cron", "30 8 * * mon-fri", "--id", "morning", "--", "false")


def _tasks() -> None:
    lines = "import random; open('calc.py', 'a').write(f'x = {random.random()}' + chr(10))"
    common = ("--check", CHECK, "--max-attempts", "3")
    run("run", "--task", "never mended", *common, "--agent-command", agent(lines))
    run("run", "--task", "never mended either", *common, "--agent-command", agent(lines))
    run(
        "run",
        "--task",
        "broken",
        *common,
        "--agent-command",
        agent("open('calc.py', 'w').write('def (')"),
    )
    stuck = agent(
        "import sys; print('Permission denied: /etc/shadow', file=sys.stderr); sys.exit(1)"
    )
    run("run", "--task", "asks", *common, "--agent-command", stuck)
    (asks,) = [one for one in loki.Workspace(".").tasks() if one.startswith("asks")]
    run("resume", asks, "--context", "look at calc.py", "--agent-command", agent(lines))
    mend = "t = open('calc.py').read(); open('calc.py', 'w').write(t.replace('a - b', 'a + b'))"
    pytest = f"{PYTHON} -m pytest -q -p no:cacheprovider -p no:randomly"
    run("run", "--task", "mend it", "--check", pytest, "--agent-command", agent(mend), "--reflect")
    run(
        "pipeline",
        "run",
        "answer.yml",
        "--agent-command",
        f"{PYTHON} -S -c \"print('write three')\"",
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--loki", "-p", "no:cacheprovider"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )


def _queue() -> None:
    lines = agent("open('other.py', 'a').write('y = 1' + chr(10))")
    for title, kind in (
        ("first", "feature"),
        ("second", "bug_fix"),
        ("third", "bug_fix"),
        ("done", "bug_fix"),
    ):
        run(
            "submit", "--task", title, "--id", title, "--check", f"{PYTHON} -S -c pass",
            "--agent-command", lines, "--kind", kind,
        )  # fmt: skip
    run("submit", "--task", "not wanted", "--id", "unwanted", "--check", "true")
    run("queue", "remove", "unwanted")
    run("submit", "--task", "gives up", "--id", "gives-up", "--check", "false",
        "--agent-command", lines, "--max-attempts", "1")  # fmt: skip
    run("queue", "block", "third", "--reason", "not yet")
    run("work")
    run("submit", "--task", "waits", "--id", "waits", "--check", "true", "--agent-command", lines)
    run("dead-letters", "review")


def _recurring() -> None:
    run("recur", "add", "--every", "10m", "--id", "cycle", "--", "true")
    run("recur", "add", "--cron", "30 8 * * mon-fri", "--id", "morning", "--", "false")
    run("recur", "run", "cycle")
    run("recur", "run", "morning")
    run("recur", "pause", "morning")
    run("tick")


def _people() -> None:
    for kind, *words in (
        ("DOCS_NEEDED", "--description", "the login takes a token now"),
        ("FEATURE_READY", "search"),
        ("HUMAN_REVIEW_NEEDED", "--say", "reason=who decides?", "--say", "task_id=waits"),
    ):
        run("signals", "give", kind, *words)
    drift = {"timestamp": "2026-04-04T12:00:00Z", "task_id": "waits", "severity": "low"}
    drift |= {"planned_action": "a", "detected_drift": "b", "agent": "c", "original_goal": "d"}
    signals = Path(".loki", "signals")
    signals.mkdir(exist_ok=True)
    (signals / "DRIFT_DETECTED").write_text(json.dumps({**drift, "drift_distance": 1}) + "\n")
    run("breakers", "open", "api/model", "--new")
    run("close")


def _monitor() -> None:
    monitor = loki.Monitor(".", session="one", agent="an-agent")
    for number in range(4):
        call = ToolCall("bash", {"command": "pytest -q"}, id=f"c{number}")
        failed = f"E   assert {number} == 5\nFAILED tests/test_calc.py::test_add - assert {number} == 5\n"
        monitor.after(call, failed, ok=False)
    monitor.ending("All tests pass now.")


def fresh(pristine: Path, into: Path) -> None:
    """A copy of a project that was made."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(pristine, into, symlinks=True)
