"""`loki hook AGENT` as an agent calls it: it never gets in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.hook_events import event

WHY = "ValueError: no such column: user_id"

Done = subprocess.CompletedProcess[str]


def call(project: Path, stdin: str | bytes, agent: str = "claude-code", **environment: str) -> Done:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-m", "loki", "hook", agent],
        input=data,
        capture_output=True,
        cwd=project,
        env={**{k: v for k, v in os.environ.items() if k != "LOKI_TASK"}, **environment},
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def said(project: Path, name: str = "PostToolUseFailure", **fields: object) -> str:
    """An event; without a number, so that each call of the hook is another call of the tool."""
    told = {**event("claude-code", name), "cwd": str(project), "tool_use_id": "", **fields}
    return json.dumps(told)


def edited(project: Path, text: str) -> str:
    fields: Mapping[str, object] = {"file_path": "a.py", "content": text}
    return said(project, "PostToolUse", tool_name="Write", tool_input=fields, tool_response={})


def is_silent(done: Done, complains: str = "") -> bool:
    """Whether the agent goes on as if nothing had been called; whoever looks finds one line."""
    lines = done.stderr.splitlines()
    heard = len(lines) == 1 and complains in lines[0] if complains else not lines
    return done.returncode == 0 and done.stdout == "" and heard


def test_a_failure_that_comes_back_is_told(tmp_path: Path) -> None:
    failing = said(tmp_path, error=f"Exit code 1\n{WHY}")
    for text in ("x", "y"):
        assert is_silent(call(tmp_path, failing))
        assert is_silent(call(tmp_path, edited(tmp_path, text)))
    done = call(tmp_path, failing)
    assert done.returncode == 0
    assert WHY in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("stdin", "complains"),
    [
        ("", "found no JSON on standard input"),
        ("{", "found no JSON on standard input"),
        ("[]", "hook_event_name"),
        ("[" * 100_000, "RecursionError"),
        (b"\xff\xfe{}", "found no JSON on standard input"),
        ('{"hook_event_name": 3}', "hook_event_name"),
    ],
)  # fmt: skip
def test_what_is_no_event_is_one_line_on_stderr(
    stdin: str | bytes, complains: str, tmp_path: Path
) -> None:
    assert is_silent(call(tmp_path, stdin), complains)
    assert not (tmp_path / ".loki").exists()


def test_events_nobody_knows_say_nothing(tmp_path: Path) -> None:
    assert is_silent(call(tmp_path, '{"hook_event_name": "BrandNew", "x": [1, {"y": null}]}'))


def test_a_huge_event_is_not_looked_at(tmp_path: Path) -> None:
    huge = said(tmp_path, error="x" * (33 << 20))
    assert is_silent(call(tmp_path, huge), "more than 32 MB")


def test_a_large_output_is_looked_at(tmp_path: Path) -> None:
    large = said(tmp_path, error="Exit code 1\n" + "noise\n" * 200_000 + WHY)
    for text in ("x", "y"):
        assert is_silent(call(tmp_path, large))
        assert is_silent(call(tmp_path, edited(tmp_path, text)))
    assert WHY in call(tmp_path, large).stdout


def test_a_broken_configuration_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki" / "config.toml").write_text("[loop\n")
    assert is_silent(call(tmp_path, said(tmp_path)), "config.toml")


def test_a_torn_state_is_begun_anew(tmp_path: Path) -> None:
    call(tmp_path, said(tmp_path))
    for file in (tmp_path / ".loki").rglob("*.json*"):
        if file.is_file():
            file.write_bytes(b'{"version": 99, \xff')
    done = call(tmp_path, said(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) <= 1


def test_a_project_that_is_gone(tmp_path: Path) -> None:
    assert is_silent(call(tmp_path, said(tmp_path / "gone")), "not a folder")


@pytest.mark.parametrize("target", [None, "/proc/self", "/nowhere/at/all"])
def test_where_nothing_can_be_written(target: str | None, tmp_path: Path) -> None:
    """.loki is a file, a folder of the kernel's, or a link to nothing: also for root."""
    if target is None:
        (tmp_path / ".loki").write_text("")
    else:
        (tmp_path / ".loki").symlink_to(target)
    done = call(tmp_path, said(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) == 1


def test_secrets_do_not_come_back(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    failing = said(tmp_path, error=f"Exit code 1\nValueError: token {key} refused by x")
    for text in ("x", "y"):
        call(tmp_path, failing)
        call(tmp_path, edited(tmp_path, text))
    done = call(tmp_path, failing)
    assert "ValueError" in done.stdout
    kept = "".join(f.read_text("utf-8", "replace") for f in tmp_path.rglob("*") if f.is_file())
    assert key not in done.stdout + kept


def test_a_session_of_another_agent_is_another(tmp_path: Path) -> None:
    call(tmp_path, said(tmp_path))
    call(tmp_path, edited(tmp_path, "x"))
    failing = {**event("gemini", "AfterTool"), "cwd": str(tmp_path)}
    failing["session_id"] = event("claude-code", "Stop")["session_id"]
    assert is_silent(call(tmp_path, json.dumps(failing), "gemini"))


def test_no_agent_of_that_name_is_a_mistake_of_a_person(tmp_path: Path) -> None:
    done = call(tmp_path, "{}", "cursor")
    assert done.returncode == 2
    assert "cursor" in done.stderr
