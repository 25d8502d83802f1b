"""Runs of agents that get on: none of them hears anything. False alarms are the measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki import Monitor
from support.tool_calls import (
    PASSED,
    REFUSED,
    Made,
    bash,
    edit,
    failed_edit,
    function,
    heard,
    missing,
    mypy_fails,
    pytest_fails,
    read,
    shell,
)

TYPES = (
    "app.py:{}: error: Incompatible return value type  [return-value]\nFound {} errors in 1 file\n"
)

HEALTHY: dict[str, list[Made]] = {
    "explores: searches that find nothing, a file that is not there": [
        bash("ls -la", "app.py\n"),
        bash("grep -rn login src", "", 1),
        bash("grep -rn log_in src", "", 1),
        bash("rg -n 'def login'", "", 1),
        missing("src/login.py"),
        missing("src/auth/login.py"),
        bash("find . -name '*login*' | head", ""),
        bash("cat src/login.py", "cat: src/login.py: No such file or directory\n", 1),
        read("app.py"),
        bash("git log --oneline -5", "abc1234 first\n"),
    ],
    "test first, red, green, twice": [
        edit("test_app.py", "def test_a(): ..."),
        bash("pytest -q", pytest_fails("test_a", "NameError: name 'login' is not defined"), 1),
        edit("app.py", "def login(): ..."),
        bash("pytest -q", PASSED),
        edit("test_app.py", "def test_b(): ..."),
        bash("pytest -q", pytest_fails("test_b", "NameError: name 'logout' is not defined"), 1),
        edit("app.py", "def logout(): ..."),
        bash("pytest -q", PASSED),
    ],
    "looks at one failure in several ways before the first edit": [
        bash("pytest -x", pytest_fails(), 1),
        bash("pytest -x -v", pytest_fails(), 1),
        bash("pytest test_app.py::test_a -vv --tb=long", pytest_fails(), 1),
        read("app.py"),
        bash("python -c 'import app; app.call()'", "KeyError: 'next'\n", 1),
        bash("pytest test_app.py::test_a --pdb 2>&1 | tail -30", pytest_fails(), 1),
        edit("app.py", "fixed"),
        bash("pytest -q", PASSED),
    ],
    "several failures, mended one by one": [
        bash("pytest -q", pytest_fails("test_a", "KeyError: 'a'"), 1),
        edit("app.py", "1"),
        bash("pytest -q", pytest_fails("test_b", "ValueError: bad date 'x'"), 1),
        edit("app.py", "2"),
        bash("pytest -q", pytest_fails("test_c", "TypeError: 'int' object is not iterable"), 1),
        edit("app.py", "3"),
        bash("pytest -q", PASSED),
    ],
    "the network fails once": [
        bash("curl -s https://api.example.com/v1", REFUSED, 7),
        bash("curl -s https://api.example.com/v1", "{}"),
        bash("pip install httpx", "ERROR: Could not find a version: Connection refused\n", 1),
        bash("pip install httpx", "Successfully installed httpx\n"),
    ],
    "a long build is cut off, runs again with more time, and passes": [
        bash("make -j4", "[ 10%] Building\nCommand timed out after 2m 0.0s\n", 124),
        bash("timeout 900 make -j4", "[100%] Built target app\n"),
        bash("./build/app --version", "1.0\n"),
    ],
    "waits until its own server is up": [
        bash("npm start &", ""),
        bash(
            "curl -s localhost:3000/health",
            "curl: (7) Failed to connect to localhost port 3000\n",
            7,
        ),
        bash(
            "sleep 1 && curl -s localhost:3000/health",
            "curl: (7) Failed to connect to localhost\n",
            7,
        ),
        bash(
            "curl -s localhost:3000/health",
            "curl: (7) Failed to connect to localhost port 3000\n",
            7,
        ),
        bash(
            "curl -s localhost:3000/health",
            "curl: (7) Failed to connect to localhost port 3000\n",
            7,
        ),
        bash("curl -s localhost:3000/health", "ok"),
    ],
    "a program is not there, so it takes another": [
        bash("rg TODO", "bash: line 1: rg: command not found\n", 127),
        bash("grep -rn TODO .", "./app.py:3:# TODO\n"),
    ],
    "an edit does not fit, it reads and edits again": [
        failed_edit("app.py", "a"),
        read("app.py"),
        failed_edit("app.py", "b"),
        read("app.py"),
        edit("app.py", "c"),
        bash("pytest -q", PASSED),
    ],
    "a flaky test fails once": [
        bash("pytest -q", pytest_fails("test_race", "TimeoutError: no answer"), 1),
        bash("pytest -q", PASSED),
        edit("app.py", "lock"),
        bash("pytest -q", PASSED),
        bash("pytest -q", pytest_fails("test_race", "TimeoutError: no answer"), 1),
        bash("pytest -q", PASSED),
    ],
    "checks that a word is gone, after each edit": [
        bash("grep -rn old_name src", "src/a.py: old_name\n"),
        edit("src/a.py"),
        bash("grep -rn old_name src", "", 1),
        edit("src/b.py"),
        bash("grep -rn old_name src", "", 1),
        edit("src/c.py"),
        bash("grep -rn old_name src", "", 1),
    ],
    "types: many errors, fewer each time": [
        bash("mypy .", mypy_fails(4, 3), 1),
        edit("app.py", "1"),
        bash("mypy .", mypy_fails(2, 30).replace("return value", "argument"), 1),
        edit("app.py", "2"),
        bash("mypy .", "Success: no issues found in 3 source files\n"),
    ],
    "types: the first error stays while others are mended, last first": [
        bash("mypy .", mypy_fails(9), 1),
        edit("app.py", "1"),
        bash("mypy .", mypy_fails(6), 1),
        edit("app.py", "2"),
        bash("mypy . | head -5", mypy_fails(2), 1),
        bash("mypy .", mypy_fails(4), 1),
        edit("app.py", "3"),
        bash("mypy .", mypy_fails(1), 1),
        edit("app.py", "3"),
        bash("mypy .", "Success: no issues found in 3 source files\n"),
    ],
    "Codex: a list of words, the exit code in the text": [
        shell("bash", "-lc", "rg --files | head", output="app.py\n"),
        shell("bash", "-lc", "sed -n 1,80p app.py", output="import os\n"),
        shell("bash", "-lc", "pytest -q", output=pytest_fails(), code=1),
        Made(bash("").call.__class__("apply_patch", {"input": "*** Begin Patch"}), "Success."),
        shell("bash", "-lc", "pytest -q", output=PASSED),
    ],
    "a framework's function tools, which say nothing of success": [
        function("list_files", "app.py\ntest_app.py", path="."),
        function("read_file", "raise KeyError('next')\n# Error: see below", path="app.py"),
        function("run_tests", pytest_fails()),
        function("write_file", "written", path="app.py", content="fixed"),
        function("run_tests", PASSED),
    ],
    "LangChain: a terminal, and a tool that raises once": [
        bash(
            "python app.py", "Traceback (most recent call last):\nKeyError: 'next'\n", 1, "terminal"
        ),
        function("get_weather", ValueError("unknown city 'Pari'"), city="Pari"),
        function("get_weather", "18 °C", city="Paris"),
        function("search", "no results", query="login bug"),
        function("search", "no results", query="login error"),
    ],
    "goes back with git, mends it another way": [
        bash("cargo test", "error[E0382]: borrow of moved value: `x`\n --> src/lib.rs:3:5\n", 101),
        edit("src/lib.rs", "x.clone()"),
        bash("cargo test", "error[E0308]: mismatched types\n --> src/lib.rs:9:5\n", 101),
        bash("git checkout src/lib.rs", ""),
        edit("src/lib.rs", "&x"),
        bash("cargo test", "test result: ok. 3 passed; 0 failed\n"),
    ],
    "mends a regression in a test that it had mended before": [
        bash("pytest -q", pytest_fails(), 1),
        edit("app.py", "1"),
        bash("pytest -q", PASSED),
        edit("app.py", "2"),
        bash("pytest -q", pytest_fails(), 1),
        edit("app.py", "3"),
        bash("pytest -q", PASSED),
    ],
    "one test of a file passes, then the file fails elsewhere": [
        bash("pytest -q", pytest_fails("test_a"), 1),
        edit("app.py", "1"),
        bash("pytest test_app.py -k test_a", "1 passed in 0.01s\n"),
        bash("pytest -q", pytest_fails("test_b", "ValueError: bad date 'x'"), 1),
        edit("app.py", "2"),
        bash("pytest -q", PASSED),
    ],
    "web pages that are not there": [
        function(
            "WebFetch", "Request failed with status code 404", url="https://docs.example.org/a"
        ),
        function(
            "WebFetch", "Request failed with status code 404", url="https://docs.example.org/b"
        ),
        function(
            "WebFetch", "Request failed with status code 404", url="https://docs.example.org/c"
        ),
        function("WebFetch", "The page says …", url="https://docs.example.org/d"),
    ],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_hears_nothing(tmp_path: Path, name: str) -> None:
    monitor = Monitor(tmp_path)
    assert set(heard(monitor, HEALTHY[name])) == {"none"}
    assert monitor.instructions() == ""


def test_a_test_that_is_mended_at_the_third_try_hears_nothing(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    made = [
        bash("pytest -q", pytest_fails(), 1),
        edit("app.py", "return None"),
        bash("pytest -q", pytest_fails(), 1),
        edit("app.py", "return ''"),
        bash("pytest -q", PASSED),
    ]
    assert set(heard(monitor, made)) == {"none"}
    assert monitor.instructions() == ""


def test_a_failure_that_is_mended_binds_nobody_any_more(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    made: list[Made] = []
    for text in ("a", "b", "c"):
        made += [bash("pytest -q", pytest_fails(), 1), edit("app.py", text)]
    assert heard(monitor, made).count("nudge") == 1
    assert "KeyError" in monitor.instructions()
    assert heard(monitor, [bash("pytest -q", PASSED)]) == ["none"]
    assert monitor.instructions() == ""


def test_all_of_them_in_one_session_hear_nothing(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, session="all")
    for name, made in HEALTHY.items():
        assert set(heard(monitor, [*made, bash("git commit -am x")])) == {"none"}, name
