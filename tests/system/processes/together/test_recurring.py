"""Recurring tasks with the real command: killed, interrupted, shared, and shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import command
from support.command import LOKI

START = "2026-04-04T10:00:00Z"


def loki(project: Path, *words: str, now: str = START, code: int = 0) -> str:
    """What the command says at a time; it ends with this code."""
    done = command.loki(*words, cwd=project, environment={"LOKI_NOW": now})
    assert done.code == code, done
    return done.out + done.err


def data(project: Path, *words: str, now: str = START) -> Any:
    return json.loads(loki(project, *words, "--json", now=now))


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A task whose command says that it runs, and goes on."""
    os.mkfifo(tmp_path / "says")
    loki(tmp_path, "recur", "add", "--every", "1h", "--id", "slow", "--shell",
         "echo > says; sleep 600; touch survived")  # fmt: skip
    return tmp_path


def begin(project: Path, *words: str) -> subprocess.Popen[bytes]:
    """A command that is under way: its task runs when this returns."""
    environment = {**os.environ, "LOKI_NOW": START}
    process = subprocess.Popen([*LOKI, *words], cwd=project, env=environment)
    (project / "says").read_text()  # blocks until the task writes
    return process


def test_a_killed_dispatcher_costs_no_failure(waiting: Path) -> None:
    process = begin(waiting, "tick")
    assert "slow is running already" in loki(waiting, "recur", "run", "slow", code=2)
    assert data(waiting, "tick")["runs"] == []  # it is not taken from a dispatcher that lives
    process.kill()
    process.wait()
    later = data(waiting, "tick", now="2026-04-04T10:30:00Z")["runs"]
    assert [(run["number"], run["status"]) for run in later] == [(1, "cancelled")]
    task = data(waiting, "show", "slow")
    assert (task["consecutive_failures"], task["total_failures"]) == (0, 0)
    assert task["next_run_at"] == "2026-04-04T11:30:00.000Z"
    assert not (waiting / "survived").exists()


@pytest.mark.parametrize("words", [("tick",), ("tick", "--watch"), ("recur", "run", "slow")])
def test_ctrl_c_ends_runs_as_cancelled(waiting: Path, words: tuple[str, ...]) -> None:
    process = begin(waiting, *words)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    (run,) = data(waiting, "recur", "history", "slow")
    assert (run["status"], run["reason"]) == ("cancelled", "interrupted")
    assert data(waiting, "show", "slow")["total_failures"] == 0


def test_several_dispatchers_run_everything_once(tmp_path: Path) -> None:
    names = [f"t{n}" for n in range(8)]
    for name in names:
        loki(
            tmp_path,
            "recur",
            "add",
            "--every",
            "1h",
            "--id",
            name,
            "--shell",
            f"echo x >> {name}.txt",
        )
    environment = {**os.environ, "LOKI_NOW": START}
    words = [*LOKI, "tick", "--watch", "--for", "90m"]
    processes = [subprocess.Popen(words, cwd=tmp_path, env=environment) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    for name in names:
        runs = data(tmp_path, "recur", "history", name)
        assert [run["status"] for run in runs] == ["success", "success"]
        assert [run["started_at"][11:16] for run in runs] == ["10:00", "11:00"]
        assert (tmp_path / f"{name}.txt").read_text() == "x\n" * 2


def test_secrets_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    refused = loki(tmp_path, "recur", "add", "--every", "1h", "--", "echo", token, code=2)
    assert "a secret would be kept" in refused
    assert token not in refused
    monkeypatch.setenv("GITHUB_TOKEN", token)
    add = ("recur", "add", "--every", "1h", "--shell", "echo token=$GITHUB_TOKEN; exit 1")
    loki(tmp_path, *add, "--id", "without")
    loki(tmp_path, *add, "--id", "with", "--pass-env", "GITHUB_TOKEN")
    loki(tmp_path, "tick")
    kept = [path.read_text() for path in (tmp_path / ".loki").rglob("*") if path.is_file()]
    assert token not in "".join(kept)
    assert "token=\n" in loki(tmp_path, "recur", "history", "without", "--output")
    printed = (tmp_path / ".loki/recurring/with/output/1.log").read_text()
    assert printed.startswith("token=")
    assert len(printed) > len("token=\n")


def test_a_time_out_is_a_failure(tmp_path: Path) -> None:
    loki(
        tmp_path,
        "recur",
        "add",
        "--every",
        "1h",
        "--id",
        "t",
        "--timeout",
        "100ms",
        "--",
        "sleep",
        "60",
    )
    assert "took longer than 0.1 s" in loki(tmp_path, "tick")
    (run,) = data(tmp_path, "recur", "history", "t")
    assert (run["status"], run["timed_out"]) == ("failed", True)


def test_an_agent_goes_through_the_loop_and_can_be_rescued(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    agent = (
        "--cron",
        "@daily",
        "--task",
        "make b",
        "--check",
        "test -f b.txt",
        "--max-attempts",
        "1",
    )
    loki(tmp_path, "recur", "add", *agent, "--id", "good", "--agent-command", "touch b.txt")
    loki(tmp_path, "recur", "add", *agent, "--id", "bad", "--agent-command", "sh -c 'echo hello > c.txt'",
         "--evaluate-command", "sh -c 'grep -q hello && echo APPROVED'", "--check", "test -f d.txt")  # fmt: skip
    told = loki(tmp_path, "tick", "--watch", "--for", "15h")
    assert "good run 1 success" in told
    assert "bad run 1 rescued" in told
    task = data(tmp_path, "show", "bad")
    assert (task["consecutive_failures"], task["iterations"]) == (0, 1)
    assert task["recent_runs"][0]["task_id"] == "bad-1"
    assert "attempt 1" in loki(tmp_path, "show", "bad-1")


def test_an_open_breaker_puts_an_agent_off(tmp_path: Path) -> None:
    loki(tmp_path, "recur", "add", "--every", "1h", "--id", "a", "--task", "x", "--check", "test -f b",
         "--agent-command", "touch b")  # fmt: skip
    loki(tmp_path, "breakers", "open", "agent/touch", "--new")
    done = data(tmp_path, "tick")
    assert [(one["task"], one["until"]) for one in done["put_off"]] == [
        ("a", "2026-04-04T10:05:00.000Z")
    ]
    task = data(tmp_path, "show", "a")
    assert (task["total_failures"], task["runs"]) == (0, 0)
    assert "a run 1 success" in loki(tmp_path, "tick", now="2026-04-04T10:05:00Z")


def test_what_a_person_sees_and_does(tmp_path: Path) -> None:
    added = loki(tmp_path, "recur", "add", "--cron", "0 9 * * mon-fri", "--zone", "Europe/Berlin",
                 "--id", "backup", "--", "false")  # fmt: skip
    assert added.count("next  ") == 3
    assert "Mon 2026-04-06 09:00:00 CEST" in added
    ticked = loki(tmp_path, "tick", now="2026-04-08T07:00:00Z")
    assert "backup run 1 failed: exit code 1 (2 missed runs before it)" in ticked
    now = "2026-04-08T08:00:00Z"
    told = loki(tmp_path, "show", "back", now=now)
    assert "failures  1 in a row (1 in all)" in told
    assert "backoff iteration 1, cap 1d" in told
    assert "failed, exit code 1" in told
    assert "signature" not in told  # as nothing was recognized
    loki(tmp_path, "pause", "backup", "--reason", "new disk", now=now)
    assert "paused by" in loki(tmp_path, "recur", "show", "backup", now=now)
    assert "Nothing was due" in loki(tmp_path, "tick", now="2026-04-11T08:00:00Z")
    assert "backoff iteration 1" in loki(tmp_path, "resume", "backup", now=now)
    loki(tmp_path, "edit", "backup", "--reset-failures", "--schedule", "30 9 * * *", now=now)
    task = data(tmp_path, "show", "backup", now=now)
    assert (task["consecutive_failures"], task["total_failures"]) == (0, 1)
    assert task["next_run_at"] == "2026-04-09T07:30:00.000Z"
    assert "expected one of" in loki(tmp_path, "edit", "backup", "--schedule", "@noon", code=2)
    assert "there are: backup" in loki(tmp_path, "recur", "show", "x", code=2)
    loki(tmp_path, "recur", "remove", "backup")
    assert "No recurring task here yet" in loki(tmp_path, "recur", "list")


def test_people_are_told_of_a_task_that_stopped(tmp_path: Path) -> None:
    (tmp_path / ".loki").mkdir()
    (tmp_path / ".loki/config.toml").write_text('[notify]\ncommand = "tee -a told.json"\n')
    loki(tmp_path, "recur", "add", "--every", "1m", "--id", "c", "--max-failure-restarts", "0",
         "--", "false")  # fmt: skip
    assert "The recurring task c stopped" in loki(tmp_path, "tick")
    told = json.loads((tmp_path / "told.json").read_text())
    assert (told["kind"], told["task_id"], told["answer"]) == (
        "recurring_stopped",
        "c",
        "loki resume c",
    )
    assert "loki recur show c" in loki(tmp_path, "status")
    loki(tmp_path, "resume", "c")
    assert "resume c" not in loki(tmp_path, "status")


def test_a_task_whose_file_cannot_be_used_waits_for_a_person(tmp_path: Path) -> None:
    """It never runs, and nothing else would say so."""
    loki(tmp_path, "recur", "add", "--every", "1m", "--id", "c", "--", "true")
    (tmp_path / ".loki/recurring/c/task.json").write_text("{")
    (waits,) = data(tmp_path, "status")["waiting"]
    assert (waits["id"], waits["kind"]) == ("c", "recurring")
    assert "recurring/c/task.json cannot be used: no JSON" in waits["asked"]
    loki(tmp_path, "recur", "remove", "c")
    assert data(tmp_path, "status")["waiting"] == []
