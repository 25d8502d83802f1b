"""A person gives a run of a pipeline up, or stops it: between stages, in one, and after its process died."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

import loki
from loki.action.pipelines import pipeline_record
from loki.execution.pipeline import Pipeline
from support import command
from support.command import LOKI
from support.crew import is_running

FILE = """\
version: 1
name: ship
stages:
  - {{id: first, agent: a, kind: refactor, description: Make one, checks: [test -f one.txt]}}
  - id: second
    agent: a
    kind: refactor
    description: Make two
    checks: [test -f two.txt]
    retry: {{max_attempts: 3, backoff: fixed, initial_delay_seconds: {delay}}}
"""
MAKES = "#!/bin/sh\ncat > /dev/null\nif test -f one.txt; then echo $$ > {pid}; {second}; else echo x > one.txt; fi\n"

IDLE = "echo x > other.txt"
"""What makes a try of the second stage fail."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".loki").mkdir(parents=True)
    (root / ".loki/config.toml").write_text("[loop]\nmax_retries = 0\n")
    (root / "kept.txt").write_text("as it was")
    return root


def begin(project: Path, tmp_path: Path, second: str, delay: int = 60) -> subprocess.Popen[str]:
    """A run whose first stage succeeds, in a process of its own."""
    (project / "ship.yml").write_text(FILE.format(delay=delay))
    agent = tmp_path / "agent.sh"
    agent.write_text(MAKES.format(pid=tmp_path / "pid", second=second))
    agent.chmod(0o755)
    words = [*LOKI, "pipeline", "run", "ship.yml", "--agent-command", str(agent)]
    with (tmp_path / "log").open("w") as log:
        return subprocess.Popen(words, cwd=project, stdout=log, stderr=log, text=True)


def run(project: Path, *words: str, code: int = 0) -> str:
    done = command.loki(*words, "--project", str(project))
    assert done.code == code, done
    return done.out + done.err


def phase(project: Path) -> str:
    record = project / ".loki/pipelines/ship-1/pipeline.json"
    return str(json.loads(record.read_text())["phase"]) if record.exists() else ""


def until(project: Path, tmp_path: Path, wanted: str) -> int:
    """The second stage's agent, once the run stands so."""
    end = time.monotonic() + 60
    pid = tmp_path / "pid"
    while phase(project) != wanted or not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < end, phase(project)
        time.sleep(0.02)
    return int(pid.read_text())


@pytest.mark.parametrize("where", ["running", "retry_wait"])
def test_a_run_in_another_process_is_given_up_and_every_stage_undone(
    project: Path, tmp_path: Path, where: str
) -> None:
    process = begin(project, tmp_path, "sleep 90" if where == "running" else IDLE)
    pid = until(project, tmp_path, where)
    assert (project / "one.txt").exists()
    begun = time.monotonic()
    told = run(project, "cancel", "ship-1", "the page is gone")
    assert time.monotonic() - begun < 80
    assert "restored one.txt" in told
    process.wait(60)
    assert process.returncode == 130
    assert not is_running(pid)
    assert {path.name for path in project.iterdir()} == {".loki", "kept.txt", "ship.yml"}
    assert "gave it up: the page is gone" in run(project, "pipeline", "show", "ship-1")
    assert "Nothing waits for you" in run(project, "status")
    assert "has ended: failed" in run(project, "cancel", "ship-1", code=2)
    assert not (project / ".loki/pipelines/ship-1/cancel").exists()


def test_the_next_run_begins_at_the_first_stage(project: Path, tmp_path: Path) -> None:
    process = begin(project, tmp_path, "sleep 90")
    until(project, tmp_path, "running")
    run(project, "cancel", "ship-1")
    process.wait(60)
    (tmp_path / "pid").unlink()
    again = begin(project, tmp_path, "echo x > two.txt")
    assert again.wait(60) == 0
    assert [data["run"] for data in records(project)] == ["ship-1", "ship-2"]


def records(project: Path) -> list[dict[str, object]]:
    return pipeline_record.runs(loki.Workspace(project).store)


@pytest.mark.parametrize("how", ["cancel", "reject"])
def test_a_run_whose_process_was_killed_is_given_up_also_without_its_file(
    project: Path, tmp_path: Path, how: str
) -> None:
    process = begin(project, tmp_path, "sleep 90")
    until(project, tmp_path, "running")
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    (project / "ship.yml").unlink()
    if how == "cancel":
        run(project, "cancel", "ship-1")
    else:
        assert "it goes on when you say so" in run(project, "status")
        assert "given up: ship-1" in run(project, "reject", "1", "not wanted")
    assert not (project / "one.txt").exists()
    assert phase(project) == "failed"


def test_what_somebody_changed_since_is_left_alone(project: Path, tmp_path: Path) -> None:
    process = begin(project, tmp_path, "sleep 90")
    until(project, tmp_path, "running")
    run(project, "stop")
    assert process.wait(60) == 130
    (project / "one.txt").write_text("mine")
    assert "--force overwrites" in run(project, "cancel", "ship-1", code=1)
    assert ((project / "one.txt").read_text(), phase(project)) == ("mine", "interrupted")
    run(project, "cancel", "ship-1", "--force")
    assert not (project / "one.txt").exists()


def test_a_stage_alone_is_not_given_up(project: Path, tmp_path: Path) -> None:
    process = begin(project, tmp_path, "sleep 90")
    until(project, tmp_path, "running")
    assert "loki cancel ship-1" in run(project, "cancel", "ship-1.second", code=2)
    run(project, "stop")
    process.wait(60)
    assert "loki cancel ship-1" in run(project, "cancel", "ship-1.second", code=2)


def test_stop_is_heard_between_two_tries(project: Path, tmp_path: Path) -> None:
    process = begin(project, tmp_path, IDLE)
    until(project, tmp_path, "retry_wait")
    assert "Nobody is at work" in run(project, "stop")
    assert process.wait(60) == 130
    assert phase(project) == "interrupted"


def test_a_word_that_comes_before_a_stage_begins_ends_it(project: Path) -> None:
    """Said between a stage's end and the next one's begin, it is not lost."""
    pipeline = Pipeline.loads(FILE.format(delay=1))
    folder = project / ".loki"

    def agent(briefing: loki.Briefing) -> dict[str, str]:
        (folder / "pipelines/ship-1/cancel").touch()
        time.sleep(1)
        return {"one.txt": "x", "two.txt": "y"}

    outcome = pipeline.run(agent, path=project)
    assert outcome.status == "interrupted"
    assert not (project / "two.txt").exists()
