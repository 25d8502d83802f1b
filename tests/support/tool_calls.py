"""What coding agents do, as calls of tools: for tests of the monitor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loki import Monitor, ToolCall


@dataclass(frozen=True)
class Made:
    """A call that was made, and what came of it."""

    call: ToolCall
    output: str | BaseException = "ok"
    how: dict[str, Any] = field(default_factory=dict)


def bash(command: str, output: str = "", code: int = 0, tool: str = "Bash") -> Made:
    """A command line, as Claude Code runs it."""
    call = ToolCall(tool, {"command": command, "description": "runs it"})
    return Made(call, output, {"exit_code": code})


def shell(*words: str, output: str = "", code: int = 0) -> Made:
    """A command as a list of words, as Codex runs it; the exit code stands in the text."""
    call = ToolCall("shell", {"command": list(words), "timeout_ms": 1000})
    return Made(call, f"Exit code: {code}\nWall time: 1 s\nOutput:\n{output}")


def edit(path: str, text: str = "x", tool: str = "Edit", **how: Any) -> Made:
    """An edit that went well, unless `how` says something else."""
    call = ToolCall(tool, {"file_path": path, "old_string": "pass", "new_string": text})
    return Made(call, how.pop("output", "The file has been updated."), {"ok": True, **how})


def failed_edit(path: str, text: str = "x") -> Made:
    """An edit of what is not there."""
    return edit(path, text, ok=False, output=f"String to replace not found in {path}.")


def read(path: str, tool: str = "Read") -> Made:
    """A file that is there."""
    return Made(ToolCall(tool, {"file_path": path}), "1\timport os\n", {"ok": True})


def missing(path: str, tool: str = "Read") -> Made:
    """A file that is not there."""
    return Made(ToolCall(tool, {"file_path": path}), "File does not exist.", {"ok": False})


def function(name: str, output: str | BaseException = "ok", **arguments: Any) -> Made:
    """A function tool of a framework: it says nothing of whether it went well."""
    return Made(ToolCall(name, arguments), output)


def pytest_fails(test: str = "test_a", said: str = "KeyError: 'next'", line: int = 4) -> str:
    """What pytest prints of one failing test."""
    kind = said.split(":", 1)[0] if "Error" in said else "AssertionError"
    return (
        "============================= test session starts ==============================\n"
        "collected 3 items\n\n"
        "test_app.py .F.                                                          [100%]\n\n"
        "=================================== FAILURES ===================================\n"
        f"____________________________________ {test} ____________________________________\n\n"
        f"    def {test}():\n>       call()\n\ntest_app.py:{line}: \n"
        "_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _\n\n"
        f"    def call():\n>       raise it\nE       {said}\n\napp.py:9: {kind}\n"
        "=========================== short test summary info ============================\n"
        f"FAILED test_app.py::{test} - {said}\n"
        "========================= 1 failed, 2 passed in 0.03s ==========================\n"
    )


def red_before(passed: int) -> str:
    """What pytest prints of a test that was red before, and is not the task."""
    return (
        "E   KeyError: 'zone'\napp/clock.py:9: KeyError\n"
        f"FAILED tests/test_clock.py::test_zone - KeyError: 'zone'\n1 failed, {passed} passed in 1.0s"
    )


def mypy_fails(errors: int, first: int = 3) -> str:
    """What mypy prints of so many errors, the first one on a line."""
    said = 'app.py:{}: error: Incompatible return value type (got "{}")  [return-value]\n'
    lines = [said.format(first, "int"), *(said.format(40 + n, f"T{n}") for n in range(errors - 1))]
    return "".join(lines) + f"Found {errors} errors in 1 file (checked 3 source files)\n"


PASSED = "3 passed in 0.02s\n"
REFUSED = "curl: (7) Failed to connect to api.example.com port 443 after 3 ms: Connection refused\n"


def heard(monitor: Monitor, made: list[Made]) -> list[str]:
    """What a monitor says to each of the calls; a call that it refuses is not made."""
    said: list[str] = []
    for one in made:
        reaction = monitor.before(one.call)
        if not reaction:
            reaction = monitor.after(one.call, one.output, **one.how)
        said.append(reaction.kind)
    return said
