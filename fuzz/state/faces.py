"""Every way to look at a project, by name: commands, the library, the MCP server, the analysis, hooks."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import loki
from fuzz.state.project import CHECK, run
from loki import analysis
from loki.adapters.hooks import hook_handler
from loki.adapters.mcp import Tools
from loki.decision.monitor.tool_call import ToolCall
from loki.jobs.work import task_interventions

Face = Callable[[], object]

PYTHON = shlex.quote(sys.executable)
EDIT = f"{PYTHON} -S -c \"open('z.py', 'a').write('z = 1')\""
OUTPUT = "FAILED tests/test_calc.py::test_add - assert -1 == 5"
UP = 0.4
"""Seconds after which `loki up` is ended: it has looked at everything by then. Chosen."""

EVENTS = Path(__file__).parents[2] / "tests" / "py" / "support" / "hook_events"

LOOKS = (
    "status", "status --json", "show", "show --json", "history", "history --json", "report", "report --html",
    "report --json", "queue", "queue --all --json", "queue show third", "queue show gives-up", "dead-letters",
    "dead-letters --json", "breakers", "breakers --json", "signals", "signals --all --json",
    "signals show HUMAN_REVIEW_NEEDED", "recur list", "recur list --json", "recur show cycle", "recur show morning --json",
    "recur history cycle --output", "pipeline show", "pipeline show answer", "pipeline show --json", "approve", "reject",
    "review", "patterns check", "show waits", "hook status",
    "dead-letters show gives-up", "dead-letters show gives-up --json", "breakers show api/model", "recur history morning --json",
    "review --json", "pipeline check answer.yml", "queue --list pending --json",
)  # fmt: skip
"""Commands that change nothing."""

ACTS = (
    f"run --task 'mend it' --kind bug_fix --max-attempts 1 --check '{CHECK}' --agent-command \"{EDIT}\"",
    "tick", "work", "recur run cycle", "recur remove morning", "recur pause cycle", "recur resume morning",
    "recur edit cycle --every 20m", "queue block waits --reason no", "queue unblock third", "queue priority waits high",
    "queue retry gives-up", "queue remove waits", "dead-letters review", "dead-letters abandon gives-up --reason x",
    "signals handle", "signals clear DOCS_NEEDED", "signals give DOCS_NEEDED --description x", "breakers reset api/model",
    "breakers open api/other", "close", "approve waits", "reject waits --note no", "pipeline resume answer --approve",
    f"submit --task again --check true --agent-command \"{EDIT}\"", "cancel waits",
    "drain", "stop", "edit waits --check true", "edit cycle --every 30m", "queue retry third", "dead-letters retry gives-up",
    "approve 1", "reject 1 no", "approve 2 words", "breakers close api/model", "breakers isolate api/model",
    "pipeline run answer.yml --agent-command 'true'", "signals clear DRIFT_DETECTED", "recur add --every 5m --id new -- true",
)  # fmt: skip
"""Commands that change something, whatever it is."""


def tasks() -> list[str]:
    """Ids of the tasks of the project at hand."""
    return loki.Workspace(".").tasks()


def looks() -> dict[str, Face]:
    """Those that leave what they read as it is, or set it aside."""
    found: dict[str, Face] = {line: _command(line) for line in LOOKS}
    for task in tasks():
        found[f"show {task}"] = _command(f"show {task} --output")
        found[f"history --task {task}"] = _command(f"history --task {task}")
    found["explain"] = lambda: run("explain", data=OUTPUT)
    found["analysis"] = _analysis
    found["library"] = _library
    found["mcp"] = _mcp
    return found


def acts() -> dict[str, Face]:
    """Those that go on with what they read."""
    found: dict[str, Face] = {line: _command(line) for line in ACTS}
    for task in tasks():
        found[f"undo {task}"] = _command(f"undo {task} --force")
        found[f"resume {task}"] = _command(
            f"resume {task} --context x --agent-command {shlex.quote(EDIT)}"
        )
        found[f"abort {task}"] = _command(f"resume {task} --abort")
    found["monitor"] = _monitor
    found["up"] = _up
    found["mcp acts"] = _mcp_acts
    found["library acts"] = _library_acts
    found["tests"] = _tests
    found["hooks"] = _hooks
    return found


def _command(line: str) -> Face:
    words = shlex.split(line)
    return lambda: run(*words)


def _analysis() -> None:
    tables = analysis.history(".")
    for name in tables.names:
        tables[name]
    repr(tables)


def _library() -> None:
    workspace = loki.Workspace(".")
    for task in workspace.tasks():
        workspace.history(task).attempts()
    list(workspace.executions())
    workspace.review()
    _ = workspace.signs().armed


def _mcp() -> None:
    tools = Tools(loki.Workspace("."), "an-agent")
    tools.explain(OUTPUT, "pytest -q", 1)
    tools.tried(OUTPUT)


def _mcp_acts() -> None:
    tools = Tools(loki.Workspace("."), "an-agent")
    tools.report("did nothing", OUTPUT, "pytest -q", 1)
    tools.next(OUTPUT, "pytest -q", 1)


def _library_acts() -> None:
    line = iter(range(9))
    outcome = loki.run(
        "by hand", agent=lambda _: {"y.py": f"y = {next(line)}\n"}, checks=["false"], max_attempts=2
    )
    workspace = loki.Workspace(".")
    with workspace.resume(outcome.task_id) as task:
        task.run(lambda _: {"y.py": "z = 1\n"})
    workspace.breakers()["api/model"].snapshot()
    workspace.runs().open()


def _up() -> None:
    """All that goes on by itself, until somebody ends it."""
    ends = threading.Timer(UP, task_interventions.broadcast, (Path(".loki"), "stop", 0.0))
    ends.start()
    try:
        run("up", "--workers", "1")
    finally:
        ends.join()


def _tests() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--loki",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    if (
        done.returncode not in {0, 1}
        or "INTERNALERROR" in done.stdout
        or "Traceback" in done.stderr
    ):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])


def _monitor() -> None:
    monitor = loki.Monitor(".", session="one", agent="an-agent")
    call = ToolCall("bash", {"command": "pytest -q"}, id="c9")
    monitor.before(call)
    monitor.after(call, "FAILED tests/test_calc.py::test_add - assert 3 == 5\n", ok=False)
    monitor.ending("All tests pass now.")


def _hooks() -> None:
    for event in json.loads((EVENTS / "claude-code.json").read_text())[:6]:
        hook_handler.answer("claude-code", {**event, "cwd": str(Path.cwd())}, os.environ)
