"""A person ends what is under way, in whichever process: real workers, agents, checks and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import loki
from loki.base import locks
from loki.jobs.queue.queue import Queue, queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory import task_record
from support.command import LOKI
from support.crew import is_running, where
from support.working import in_copy

AGENT = "#!/bin/sh\ncat > /dev/null\necho x > a.txt\necho $$ > {pid}\n{then}\n"
CHECK = "#!/bin/sh\ntest -f a.txt || exit 1\necho $$ > {pid}\n{then}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "kept.txt").write_text("as it was")
    return root


def program(folder: Path, name: str, text: str, then: str = ":") -> tuple[str, Path]:
    """An executable, and where it says its process; it does something else afterwards."""
    path, pid = folder / f"{name}.sh", folder / f"{name}.pid"
    path.write_text(text.format(pid=pid, then=then))
    path.chmod(0o755)
    return str(path), pid


def submit(project: Path, check: str = "test -f a.txt", *names: str) -> Queue:
    queue = queue_of(loki.Workspace(project))
    for name in names or ("a",):
        task = QueuedTask(name, f"make {name}", kind="refactor", complexity="low", checks=(check,))
        queue.submit(task)
    return queue


def begin(project: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*LOKI, *words, "--project", str(project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(project: Path, *words: str, code: int = 0) -> str:
    process = begin(project, *words)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    return output


def until(holds: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def said(pid: Path) -> int:
    """The process that a program said that it is."""
    until(lambda: pid.exists() and pid.read_text().strip())
    return int(pid.read_text())


def ended(process: subprocess.Popen[str], code: int) -> str:
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    return output


@pytest.mark.parametrize(
    ("slow", "words"),
    [("agent", ("cancel", "a", "no more")), ("check", ("resume", "a", "--abort"))],
    ids=["agent", "check"],
)
def test_a_task_under_work_is_ended_and_nothing_of_it_lands(
    project: Path, tmp_path: Path, slow: str, words: tuple[str, ...]
) -> None:
    agent, agents = program(tmp_path, "agent", AGENT, "sleep 90" if slow == "agent" else ":")
    check, checks = program(tmp_path, "check", CHECK, "sleep 90" if slow == "check" else ":")
    queue = submit(project, check)
    worker = begin(project, "work", "--agent-command", agent)
    pid = said(agents if slow == "agent" else checks)
    begun = time.monotonic()
    assert "aborted a" in run(project, *words)
    assert time.monotonic() - begun < 80
    assert "1 cancelled" in ended(worker, 0)
    assert not is_running(pid)
    assert where(queue) == {"a": "abandoned"}
    assert not (project / "a.txt").exists()
    record = task_record.load(loki.Workspace(project).store, "a")
    assert record.trigger == "aborted"
    assert not (project / ".loki/tasks/a/cancel").exists()


def test_a_task_that_waits_to_land_is_ended(project: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    agent, _ = program(tmp_path, "agent", AGENT, f"while ! test -f {go}; do sleep 0.05; done")
    check, checks = program(tmp_path, "check", CHECK)
    queue = submit(project, check)
    worker = begin(project, "work", "--agent-command", agent)
    until((project / ".loki/tasks/a/task.json").exists)  # the copy is taken
    with locks.hold(project / ".loki/run", timeout=20):
        go.touch()
        said(checks)  # of the work: from here on there is only the landing
        cancel = begin(project, "cancel", "a")
        until(lambda: where(queue) != {"a": "in-progress"})
        worker.wait(60)
    assert "aborted a" in ended(cancel, 0)
    assert "1 cancelled" in ended(worker, 0)
    assert where(queue) == {"a": "abandoned"}
    assert not (project / "a.txt").exists()


def test_what_is_given_up_at_the_very_end_of_its_checks_does_not_land(project: Path) -> None:
    mark = project / ".loki/tasks/t/cancel"
    gives_up = f"import pathlib; pathlib.Path({str(mark)!r}).touch()"
    outcome, files = in_copy(
        project,
        lambda _: {"a.txt": "x"},
        id="t",
        checks=[f'{sys.executable} -S -c "{gives_up}"'],
    )
    assert outcome.status == "interrupted"
    assert set(files) == {"kept.txt"}


def test_a_run_in_another_process_is_ended_and_its_files_are_restored(
    project: Path, tmp_path: Path
) -> None:
    agent, _ = program(tmp_path, "agent", AGENT.replace("a.txt", "kept.txt"))
    check, checks = program(
        tmp_path, "check", CHECK.replace("test -f a.txt", "grep x kept.txt"), "sleep 90"
    )
    words = ("--task", "mend it", "--check", check, "--agent-command", agent)
    process = begin(project, "run", *words)
    pid = said(checks)
    assert (project / "kept.txt").read_text() == "x\n"
    assert "restored kept.txt" in run(project, "cancel", "mend-it", "the page is gone")
    ended(process, 130)
    assert not is_running(pid)
    assert (project / "kept.txt").read_text() == "as it was"
    assert "aborted by a person, and its changes undone: the page is gone" in run(
        project, "show", "mend-it"
    )


def test_a_word_outlives_who_said_it(project: Path, tmp_path: Path) -> None:
    agent, agents = program(tmp_path, "agent", AGENT, "sleep 90")
    queue = submit(project)
    worker = begin(project, "work", "--agent-command", agent)
    said(agents)
    with locks.hold(project / ".loki/queue-next"), locks.hold(project / ".loki/queue"):
        worker.send_signal(signal.SIGSTOP)  # where it holds neither
        stat = Path(f"/proc/{worker.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    cancel = begin(project, "cancel", "a")
    until((project / ".loki/tasks/a/cancel").exists)
    cancel.kill()
    cancel.communicate()
    worker.send_signal(signal.SIGCONT)
    assert "1 cancelled" in ended(worker, 0)
    assert not (project / "a.txt").exists()
    assert "gives it up" in run(project, "queue")  # and nobody takes it up meanwhile
    queue.unblock("a")
    quick, _ = program(tmp_path, "quick", AGENT)
    run(project, "work", "--agent-command", quick)  # the word of then is not meant for it
    assert where(queue) == {"a": "completed"}


def test_a_task_that_waits_or_was_never_begun_is_given_up(project: Path) -> None:
    queue = submit(project)
    assert "never begun" in run(project, "cancel", "a", "the page is gone")
    task = queue.find("a")
    assert task is not None
    assert (where(queue), task.raw["reason"]) == ({"a": "abandoned"}, "the page is gone")
    assert "no task" in run(project, "cancel", "b", code=2)


def test_what_has_landed_is_not_given_up(project: Path, tmp_path: Path) -> None:
    agent, _ = program(tmp_path, "agent", AGENT)
    submit(project)
    run(project, "work", "--agent-command", agent)
    assert "has ended: success" in run(project, "cancel", "a", code=2)
    assert (project / "a.txt").exists()


def test_drain_does_what_is_in_hand_and_stop_gives_it_back(project: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    agent, agents = program(
        tmp_path, "agent", AGENT, f"while ! test -f {go}; do sleep 0.05; done; touch b.txt"
    )
    queue = submit(project, "test -f a.txt", "a", "b")
    worker = begin(project, "work", "--workers", "1", "--watch", "--agent-command", agent)
    ticker = begin(project, "tick", "--watch")
    said(agents)
    until(lambda: len(os.listdir(f"/proc/{ticker.pid}/task")) >= 3)  # it listens
    drain = begin(project, "drain")
    until((project / ".loki/state/stop.json").exists)
    ended(ticker, 0)
    assert drain.poll() is None  # it waits for what is in hand
    go.touch()
    assert "Nobody is at work" in ended(drain, 0)
    ended(worker, 0)
    assert where(queue) == {"a": "completed", "b": "pending"}

    go.unlink()
    agents.unlink()
    worker = begin(project, "work", "--workers", "1", "--agent-command", agent)
    pid = said(agents)  # the drain of before was not meant for this one
    assert "Nobody is at work" in run(project, "stop")
    ended(worker, 130)
    assert not is_running(pid)
    assert where(queue) == {"a": "completed", "b": "pending"}
