"""Runs of agents that get nowhere: each says when it must be heard."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki import Monitor
from support.tool_calls import (
    REFUSED,
    Made,
    bash,
    edit,
    failed_edit,
    function,
    heard,
    missing,
    pytest_fails,
    read,
)

A, B = (
    pytest_fails("test_a", "KeyError: 'next'"),
    pytest_fails("test_b", "ValueError: bad date 'x'"),
)
E = "tool_use_error: unknown table 'users'"


def turn(*outputs: str) -> list[Made]:
    """A check that fails, an edit; for each output."""
    made = []
    for number, output in enumerate(outputs):
        made += [bash("pytest -q", output, 1), edit("app.py", f"return {number}")]
    return made


UNHEALTHY: dict[str, tuple[list[Made], dict[int, str]]] = {
    "the same fix again and again": (
        [bash("pytest -q", A, 1), edit("app.py", "x")] * 4,
        {4: "nudge", 5: "nudge", 6: "nudge", 7: "nudge"},  # the same change, too
    ),
    "the same fix until it is stopped": (
        [bash("pytest -q", A, 1), edit("app.py", "x")] * 7,
        {**dict.fromkeys(range(4, 12), "nudge"), 12: "stop", 13: "nudge"},
    ),
    "different fixes, the same failure": (
        turn(*[A] * 13),
        {**dict.fromkeys(range(4, 22, 2), "nudge"), 22: "stop", 24: "stop"},
    ),
    "A, B, A, B": (
        turn(A, B, A, B, A, B),
        {8: "nudge", 10: "nudge"},
    ),
    "A, B, C in turn": (
        turn(*(A, B, pytest_fails("test_c", "TypeError: 'int' object is not iterable")) * 3),
        {12: "nudge", 14: "nudge", 16: "nudge"},
    ),
    "the very same check again, with no edit": (
        [bash("pytest -q", A, 1), read("app.py")] * 6,
        {4: "nudge", 6: "nudge", 7: "nudge", 8: "nudge", 9: "nudge", 10: "stop", 11: "nudge"},
    ),
    "hammering an API that is down": (
        [bash("curl -s https://api.example.com/v1", REFUSED, 7)] * 6,
        {3: "refuse", 4: "refuse", 5: "refuse"},
    ),
    "a tool whose service is down": (
        [function("get_weather", ConnectionRefusedError("Connection refused"), city="Paris")] * 5,
        {3: "refuse", 4: "refuse"},
    ),
    "reading the same missing file": (
        [missing("src/login.py")] * 6,
        {2: "nudge", 3: "nudge", 4: "nudge", 5: "stop"},
    ),
    "running a program that is not there": (
        [bash("rg TODO", "bash: line 1: rg: command not found\n", 127)] * 6,
        {2: "nudge", 3: "nudge", 4: "nudge", 5: "stop"},
    ),
    "running it with other arguments": (
        [
            bash(f"rg {word}", "bash: line 1: rg: command not found\n", 127)
            for word in ("TODO", "FIXME", "XXX", "HACK")
        ],
        {3: "nudge"},
    ),
    "the same edit that does not fit": (
        [failed_edit("app.py")] * 6,
        {2: "nudge", 3: "nudge", 4: "nudge", 5: "stop"},
    ),
    "a function tool with the same wrong argument": (
        [function("query", ValueError(E), table="users")] * 6,
        {2: "nudge", 3: "nudge", 4: "nudge", 5: "stop"},
    ),
    "a function tool whose tests fail after each write": (
        [function("run_tests", A), function("write_file", "ok", path="app.py", content="x")] * 4,
        {2: "nudge", 4: "nudge", 5: "nudge", 6: "nudge", 7: "nudge"},
    ),
    "types: the same error, and nothing fewer": (
        [
            bash(
                "mypy .", "app.py:3: error: Incompatible types  [return-value]\nFound 2 errors\n", 1
            ),
            edit("app.py"),
        ]
        * 4,
        {4: "nudge", 5: "nudge", 6: "nudge", 7: "nudge"},
    ),
    "installs what there is none of": (
        [
            bash("pip install reqests", "ERROR: No matching distribution found for reqests\n", 1),
            bash("pip install reqests", "ERROR: No matching distribution found for reqests\n", 1),
        ]
        * 3,
        {2: "nudge", 3: "nudge", 4: "nudge", 5: "stop"},
    ),
}


@pytest.mark.parametrize("name", UNHEALTHY)
def test_an_unhealthy_run_is_heard_in_time(tmp_path: Path, name: str) -> None:
    made, expected = UNHEALTHY[name]
    said = heard(Monitor(tmp_path), made)
    assert {index: kind for index, kind in enumerate(said) if kind != "none"} == expected


def test_infrastructure_is_never_stuck(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for _ in range(10):
        reaction = monitor.after(bash("curl https://a.example.com").call, REFUSED, exit_code=7)
        assert reaction.kind == "none"
