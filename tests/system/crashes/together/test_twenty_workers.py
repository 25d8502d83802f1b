"""Twenty workers on one queue, killed at random: each task ends exactly once, none runs twice at once.

What happened is seen from outside: each task's agent says in a log when it begins and when it ends.
A killed agent never says that it ends. Nobody may begin its task while anything of it still runs:
every agent holds a lock of its task's own while it runs, and one that finds it held says so.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import loki
from loki.jobs.queue.queue import queue_of
from support.crew import make_agent, submit, where
from support.paths import ROOT

WORKERS = 20
IS_THOROUGH = os.environ.get("LOKI_THOROUGH") == "1"
TASKS, KILLS, SECONDS = (500, 60, 1800) if IS_THOROUGH else (60, 12, 240)


class Killer:
    """Keeps twenty workers alive, and kills one of them at moments that a seed chooses."""

    def __init__(self, project: Path, agent: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.nursery = subprocess.Popen(
            [sys.executable, "-m", "support.nursery", str(project), agent],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.nursery.stdout is not None
        os.set_blocking(self.nursery.stdout.fileno(), False)
        self.alive: list[int] = []
        self.codes: Counter[str] = Counter()
        self.killed = 0
        self._rest = b""

    def start(self, count: int) -> None:
        assert self.nursery.stdin is not None
        self.nursery.stdin.write(b"x" * count)
        self.nursery.stdin.flush()

    def hear(self) -> int:
        """Take in what the nursery says; how many were killed since."""
        assert self.nursery.stdout is not None
        said = self.nursery.stdout.read() or b""
        *lines, self._rest = (self._rest + said).split(b"\n")
        killed = 0
        for line in lines:
            what, pid, *code = line.decode().split()
            if what == "started":
                self.alive.append(int(pid))
                continue
            self.alive.remove(int(pid))
            self.codes[f"{what} {code[0]}"] += 1
            killed += what == "killed"
        return killed

    def kill_one(self) -> None:
        if self.alive:
            self.killed += 1
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.random.choice(self.alive), signal.SIGKILL)


def test_each_task_ends_exactly_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README").write_text("nothing\n")
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text("[work]\nparallel = 20\n")
    locks = tmp_path / "locks"
    locks.mkdir()
    agent, log = make_agent(
        tmp_path,
        f'exec 9> "{locks}/$name"; flock -n 9 || echo "twice $name $$" >> "{log_of(tmp_path)}"; '
        "sleep 0.05",
    )
    names = [f"t-{number:03}" for number in range(TASKS)]
    queue = submit(project, names)
    began = time.monotonic()

    killer = Killer(project, agent, seed=8)
    killer.start(WORKERS)
    done = 0
    while done < TASKS and time.monotonic() - began < SECONDS:
        assert killer.nursery.poll() is None
        if back := killer.hear():
            killer.start(back)  # twenty again
        # Kills are spread over the tasks, at moments that nobody has planned.
        if killer.killed < KILLS and killer.killed * TASKS <= done * KILLS:
            killer.kill_one()
        done = log.read_text().count("end ")
        time.sleep(killer.random.uniform(0.02, 0.2))
    assert killer.nursery.stdin is not None
    assert killer.nursery.stdout is not None
    killer.nursery.stdin.close()
    killer.nursery.wait(60)
    killer.hear()
    killer.nursery.stdout.close()
    seconds = time.monotonic() - began
    print(
        f"{TASKS} tasks, {WORKERS} workers, {killer.killed} kills: {seconds:.1f} s, {killer.codes}"
    )

    assert where(queue) == dict.fromkeys(names, "completed")
    assert killer.killed >= KILLS // 2
    assert killer.codes.keys() <= {"exit 0", "killed 9"}
    said = Counter(tuple(line.split()[:2]) for line in log.read_text().splitlines())
    assert not [name for what, name in said if what == "twice"]
    assert all(said["end", name] >= 1 for name in names)
    # Each has landed, wholly and once, and what landed can be undone.
    assert sorted(path.name for path in project.glob("*.txt")) == [f"{name}.txt" for name in names]
    assert not list(project.glob(".loki-*"))
    workspace = loki.Workspace(project)
    assert all(list(workspace.journal(name).changes()) == [f"{name}.txt"] for name in names)
    assert list(queue_of(workspace).lists().complaints()) == []


def log_of(folder: Path) -> Path:
    return folder / "agent.log"
