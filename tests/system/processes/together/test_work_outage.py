"""``loki work`` while a circuit breaker is open, and after a worker was killed: the real command."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

import loki
from support.command import LOKI
from support.crew import make_agent, outcomes, submit, where, work


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README").write_text("nothing\n")
    return project


def trip(project: Path) -> None:
    breaker = loki.Workspace(project).breakers()["api/other"]
    for _ in range(3):
        permit = breaker.try_acquire()
        assert permit is not None
        permit.failure("503 overloaded")


def test_only_what_is_urgent_goes_out_while_a_breaker_is_open(
    project: Path, tmp_path: Path
) -> None:
    agent, log = make_agent(tmp_path)
    queue = submit(project, ["waits", "waits-too"])
    submit(project, ["now"], urgent=True)
    submit(project, ["behind"], urgent=True, background=True)
    trip(project)
    done = work(project, "--agent-command", agent, "--json")

    assert done.code == 6, done.err
    assert outcomes(done.out) == {"now": "completed"}
    pending = dict.fromkeys(("waits", "waits-too", "behind"), "pending")
    assert where(queue) == {"now": "completed", **pending}

    loki.Workspace(project).breakers()["api/other"].close()
    assert work(project, "--agent-command", agent, "--workers", "2").code == 0
    assert set(where(queue).values()) == {"completed"}
    assert log.read_text().count("begin") == 4


def test_a_task_whose_agent_is_down_is_paused_and_nothing_of_it_is_lost(project: Path) -> None:
    down = project.parent / "down.sh"
    down.write_text("#!/bin/sh\necho 'API Error: 529 overloaded_error' >&2\nexit 1\n")
    down.chmod(0o755)
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text('[loop]\nbackoff = "10ms"\n')
    queue = submit(project, ["one"])
    done = work(project, "--agent-command", str(down), "--json")

    assert done.code == 6, done.err
    assert outcomes(done.out) == {"one": "paused"}
    assert where(queue) == {"one": "pending"}
    assert queue.tasks("pending")[0].blocked is None


def test_nobody_takes_over_before_the_last_program_of_a_killed_worker_is_gone(
    project: Path, tmp_path: Path
) -> None:
    """Its agent does not listen to SIGTERM: it has its grace, and its lock, before it is ended."""
    lock = tmp_path / "held"
    stubborn = f'trap "" TERM; exec 9> {lock}; flock -n 9 || echo "twice $name $$" >> {tmp_path}/agent.log; '
    agent, log = make_agent(tmp_path, stubborn + "sleep 600 & wait; wait")
    queue = submit(project, ["one"])
    first = subprocess.Popen(
        [*LOKI, "work", "--project", str(project), "--agent-command", agent],
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while not lock.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()

    quick, _ = make_agent(tmp_path, stubborn.replace('trap "" TERM; ', "") + ":")
    done = work(project, "--agent-command", quick)
    assert done.code == 0, done.err
    assert where(queue) == {"one": "completed"}
    said = [line.split()[0] for line in log.read_text().splitlines()]
    assert said == ["begin", "begin", "end"]
    assert json.loads((project / ".loki/queue/completed.json").read_text())["tasks"][0]["lost"] == 1


def test_workers_on_one_file_land_one_after_the_other(project: Path, tmp_path: Path) -> None:
    """Each adds a line to the same file; none is lost, and none overwrites another's."""
    (project / "log.txt").write_text("")
    agent = tmp_path / "add.sh"
    agent.write_text(
        "#!/bin/sh\n"
        'while read -r line; do case "$line" in *"make "*) name="${line#*make }"; '
        'name="${name%%[!a-z0-9-]*}"; break;; esac; done\n'
        "cat > /dev/null\n"
        'echo "$name" >> log.txt; echo "$name" > "$name.txt"\n'
    )
    agent.chmod(0o755)
    names = [f"t-{number}" for number in range(4)]
    queue = submit(project, names, max_attempts=8)
    done = work(project, "--agent-command", str(agent), "--workers", "4")

    # A landing is in the way of three others at most, three times at most.
    assert done.code == 0, done.err
    assert where(queue) == dict.fromkeys(names, "completed")
    assert sorted((project / "log.txt").read_text().split()) == names
    assert sorted(path.stem for path in project.glob("t-*.txt")) == names
