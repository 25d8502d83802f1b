"""``loki work``, the real command: what becomes of each task, and what it ends with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import loki
from loki.jobs.queue.queued_task import QueuedTask
from support import command
from support.crew import make_agent, outcomes, overlaps, submit, where, work
from support.project import QUICK, RIGHT, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def test_it_works_off_the_queue(project: Path, tmp_path: Path) -> None:
    agent, log = make_agent(tmp_path)
    queue = submit(project, ["one", "two", "three"])
    done = work(project, "--agent-command", agent, "--workers", "2", "--json")

    assert done.code == 0, done.err
    assert outcomes(done.out) == dict.fromkeys(("one", "two", "three"), "completed")
    assert where(queue) == dict.fromkeys(("one", "two", "three"), "completed")
    assert all((project / f"{name}.txt").exists() for name in ("one", "two", "three"))
    assert overlaps(log) == []
    assert "begun" in done.err
    assert "completed after 1 attempt" in done.err
    again = work(project, "--agent-command", agent)
    assert (again.code, "Nothing to work on" in again.out) == (0, True)


def test_what_another_program_has_in_progress_is_not_waited_for(
    project: Path, tmp_path: Path
) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(project, ["mine"])
    submit(project, ["after"], dependencies=("theirs",))
    theirs = [{"id": "theirs", "title": "long gone"}]
    (project / ".loki/queue/in-progress.json").write_text(json.dumps(theirs))
    done = work(project, "--agent-command", agent)
    assert done.code == 0, done.err
    assert where(queue) == {"mine": "completed", "after": "pending", "theirs": "in-progress"}


def test_priorities_and_dependencies_hold(project: Path, tmp_path: Path) -> None:
    agent, log = make_agent(tmp_path)
    queue = submit(project, ["low"], priority="low", dependencies=("high",))
    submit(project, ["middle"])
    submit(project, ["high"], priority="high")
    done = work(project, "--agent-command", agent, "--workers", "1")
    assert done.code == 0, done.err
    order = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("begin")]
    assert order[0] == "high"
    assert set(where(queue).values()) == {"completed"}


def test_each_end_has_its_place_and_the_most_severe_is_the_exit_code(
    project: Path, tmp_path: Path
) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(project, ["fine"])
    for task in (
        QueuedTask("hopeless", "make it", checks=(QUICK,), max_attempts=1),
        QueuedTask("asks", "make asks", kind="feature", checks=("true", "approval: looks right")),
        QueuedTask("nobody", "make x", checks=("no-such-program-here",)),
        QueuedTask("later", "make later", dependencies=("hopeless",), checks=("true",)),
    ):
        queue.submit(task)
    before = (project / "calc.py").read_bytes()
    done = work(project, "--agent-command", agent, "--json")

    assert done.code == 4, done.err
    assert outcomes(done.out) == {
        "fine": "completed",
        "hopeless": "dead-letter",
        "asks": "blocked",
        "nobody": "blocked",
    }
    pending = {task.id: task for task in queue.tasks("pending")}
    assert pending.keys() == {"asks", "nobody", "later"}
    asks, nobody = pending["asks"].blocked, pending["nobody"].blocked
    assert asks is not None
    assert "loki approve asks" in asks.reason
    assert nobody is not None
    assert "no-such-program-here" in nobody.reason
    assert (project / "calc.py").read_bytes() == before
    assert not (project / "asks.txt").exists()
    shown = json.loads((project / ".loki/queue/dead-letter.json").read_text())["tasks"]
    assert [task["task_id"] for task in shown] == ["hopeless"]


def test_who_cannot_work_is_refused_before_anything_is_claimed(project: Path) -> None:
    queue = submit(project, ["one", "two"])
    for words in (("--agent-command", "./no-such-agent"), ("--agent", "nobody")):
        done = work(project, *words)
        assert done.code == 2, done.err
        assert "agent" in done.err
    assert [task.blocked for task in queue.tasks("pending")] == [None, None]


def test_tasks_that_name_nobody_wait_for_who_brings_an_agent(project: Path, tmp_path: Path) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(project, ["one", "two"])
    queue.submit(QueuedTask("own", "make own", checks=("test -f own.txt",), agent_command=agent))
    done = work(project)
    assert done.code == 3
    assert "2 tasks name nobody who works on it: expected --agent or --agent-command" in done.out
    assert where(queue) == {"one": "pending", "two": "pending", "own": "completed"}
    assert all(task.blocked is None for task in queue.tasks("pending"))
    assert work(project, "--agent-command", agent).code == 0
    assert set(where(queue).values()) == {"completed"}


def test_an_agent_beside_the_project_is_found_from_its_copies(
    project: Path, tmp_path: Path
) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(project, ["one"])
    name = os.path.relpath(agent, project)
    assert name.startswith("../")
    assert work(project, "--agent-command", name).code == 0
    assert where(queue) == {"one": "completed"}


def test_a_task_that_is_approved_goes_on_and_lands(project: Path, tmp_path: Path) -> None:
    agent, log = make_agent(tmp_path)
    queue = submit(project, [])
    queue.submit(
        QueuedTask("asks", "make asks", kind="feature", checks=("true", "approval: looks right"))
    )
    assert work(project, "--agent-command", agent).code == 3
    loki.Workspace(project).approve("asks", "looks right")
    queue.unblock("asks")
    done = work(project, "--agent-command", agent)

    assert done.code == 0, done.err
    assert where(queue) == {"asks": "completed"}
    assert (project / "asks.txt").exists()
    assert log.read_text().count("begin") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_the_tasks_in_flight_back(
    project: Path, tmp_path: Path, number: signal.Signals
) -> None:
    started = tmp_path / "started"
    agent, _ = make_agent(tmp_path, f"touch {started}; sleep 60")
    queue = submit(project, ["one", "two"])
    loki_ = subprocess.Popen(
        [
            *command.LOKI,
            "work",
            "--project",
            str(project),
            "--workers",
            "1",
            "--agent-command",
            agent,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(started)
    loki_.send_signal(number)
    _, told = loki_.communicate(timeout=30)

    assert loki_.returncode == 130
    assert "interrupted, pending again" in told
    assert where(queue) == {"one": "pending", "two": "pending"}
    record = json.loads((project / ".loki/tasks/one/task.json").read_text())
    assert record["outcome"]["status"] == "interrupted"
    attempts = loki.Workspace(project).history("one").attempts()
    assert [attempt.result for attempt in attempts] == ["interrupted"]

    quick, _ = make_agent(tmp_path)
    assert work(project, "--agent-command", quick).code == 0
    assert set(where(queue).values()) == {"completed"}


def wait_for(path: Path) -> None:
    """Until another process has made a file."""
    import time

    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_max_tasks_and_tasks_that_name_their_own_agent(project: Path, tmp_path: Path) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(project, ["one", "two"], agent_command=agent)
    done = work(project, "--max-tasks", "1")
    assert done.code == 0, done.err
    assert sorted(where(queue).values()) == ["completed", "pending"]


def test_a_person_goes_on_with_what_a_worker_could_not_end(project: Path, tmp_path: Path) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(project, [])
    queue.submit(QueuedTask("half", "make half", checks=(QUICK,), max_attempts=1))
    assert work(project, "--agent-command", agent).code == 4
    assert not (project / "half.txt").exists()
    shown = run_loki(project, "show", "half")
    assert "unfinished-half.patch" in shown
    assert "loki resume half" in shown

    (project / "calc.py").write_text(RIGHT)
    told = run_loki(project, "resume", "half")
    assert "success" in told
    assert (project / "half.txt").exists()
    assert where(queue) == {"half": "completed"}
    assert "unfinished" not in run_loki(project, "show", "half")


def run_loki(project: Path, *words: str) -> str:
    done = command.loki(*words, "--project", str(project))
    return done.out + done.err


def test_what_an_open_breaker_keeps_waiting_is_said(project: Path, tmp_path: Path) -> None:
    agent, _ = make_agent(tmp_path)
    submit(project, ["one", "two"])
    submit(project, ["now"], urgent=True)
    loki.Workspace(project).breakers()["api/claude"].open()

    done = work(project, "--agent-command", agent)
    assert done.code == 6
    assert "1 completed" in done.out
    assert "2 tasks wait while a circuit breaker is open (loki breakers)" in done.out
    assert "one, two" in done.out
    again = work(project, "--agent-command", agent, "--json")
    assert json.loads(again.out)["held_up"] == ["one", "two"]
    told = work(project, "--agent-command", agent).out
    assert "Nothing to work on" not in told
    assert "2 tasks wait" in told
