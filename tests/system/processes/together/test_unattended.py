"""What a run promises to who is not there: killed at any instant, nothing is torn or lost."""

from __future__ import annotations

import errno
import logging
import os
import random
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.action.loop.performer import Performer
from loki.base.atomic_file import temporary_name
from loki.stores.file_store import ForgivingStore
from support.journal import die_at_call, killed

EVERY = 1 if os.environ.get("LOKI_THOROUGH") else 4
"""Of the moments at which a call changes something on the disk, every so many-th is tried."""

BEFORE, MIDDLE, AFTER = "one\n", "two\n", "three\n"
OTHER = "untouched\n"
NAMES = {".loki", "answer.txt", "check.sh", "made", "other.txt"}
CHECK = "sh check.sh"
SCRIPT = """\
if [ "$(cat answer.txt)" != three ]; then
  echo "answer.txt:1: error: the answer is $(cat answer.txt), expected three"
  exit 1
fi
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


def make(project: Path) -> Path:
    project.mkdir()
    (project / "answer.txt").write_text(BEFORE)
    (project / "other.txt").write_text(OTHER)
    (project / "check.sh").write_text(SCRIPT)
    return project


def agent(briefing: loki.Briefing) -> dict[str, str]:
    """Wrong at first; right once the project has its first change."""
    is_first = (briefing.root / "answer.txt").read_text() == BEFORE
    return {"answer.txt": MIDDLE if is_first else AFTER, "made/by/agent.txt": "x\n"}


def run(project: Path) -> loki.Outcome:
    return loki.run("answer three", agent=agent, checks=[CHECK], path=str(project))


def telling(acknowledged: int) -> None:
    """In a forked child: write a byte to a pipe once an attempt's record has been kept."""
    append = ForgivingStore.append

    def tell(self: ForgivingStore, log: str, record: Any, *, durable: bool = True) -> None:
        append(self, log, record, durable=durable)
        if log.endswith("attempts.jsonl") and "attempt" in record:
            os.write(acknowledged, b"x")

    ForgivingStore.append = tell  # type: ignore[method-assign]


def die_at_effect(number: int) -> None:
    """In a forked child: SIGKILL before (odd) or after (even) the n-th half of an effect."""
    left = number
    original = Performer.perform

    def perform(self: Performer, effect: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = original(self, effect)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Performer.perform = perform  # type: ignore[method-assign]


def survives(project: Path, die: Callable[[], None]) -> bool:
    """Run in a child that dies; whether it did. Then everything that was promised is looked at."""
    reader, writer = os.pipe()

    def work() -> None:
        telling(writer)
        die()
        run(project)

    was_killed = killed(work)
    os.close(writer)
    acknowledged = len(os.read(reader, 100))
    os.close(reader)
    # The next start mends what was left, before anything else is done.
    workspace = loki.Workspace(project)
    with workspace.task("answer three", checks=[CHECK]) as task:
        content = (project / "answer.txt").read_text()
        assert content in {BEFORE, MIDDLE, AFTER}
        assert (project / "made/by/agent.txt").exists() == (content != BEFORE), "half a change"
        assert {path.name for path in project.iterdir()} <= NAMES, "strays"
        kept = workspace.history(task.spec.id).attempts()
        assert len(kept) >= acknowledged, "an attempt that was acknowledged is lost"
    outcome = run(project)
    assert outcome.status == "success", outcome
    attempts = workspace.history(outcome.task_id).attempts()
    assert [attempt.attempt for attempt in attempts] == list(range(1, len(attempts) + 1))
    assert (project / "answer.txt").read_text() == AFTER
    workspace.journal(outcome.task_id).undo()
    assert (project / "answer.txt").read_text() == BEFORE
    assert (project / "other.txt").read_text() == OTHER
    assert not (project / "made").exists()
    return was_killed


def test_killed_before_and_after_every_effect(tmp_path: Path) -> None:
    number = 0
    was_killed = True
    while was_killed:
        number += 1
        project = make(tmp_path / str(number))
        was_killed = survives(project, lambda n=number: die_at_effect(n))  # type: ignore[misc]
    assert number > 30, "two attempts have more effects than that"


def test_killed_before_what_changes_the_disk(tmp_path: Path) -> None:
    number = 1
    was_killed = True
    while was_killed:
        project = make(tmp_path / str(number))
        was_killed = survives(project, lambda n=number: die_at_call(n))  # type: ignore[misc]
        number += EVERY
    assert number > 50, "two attempts write more than that"


@pytest.mark.parametrize("seed", random.sample(range(10**6), 3))
def test_killed_at_random(project: Path, seed: int) -> None:
    """A real command line with a real agent, killed wherever it happens to be."""
    script = project.parent / "agent.sh"
    script.write_text("cat > /dev/null; echo three > answer.txt\n")
    command = [
        sys.executable, "-m", "loki", "run", "--task", "answer three", "--check", CHECK,
        "--agent-command", shlex.join(["sh", str(script)]),
    ]  # fmt: skip
    work = subprocess.Popen(
        command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        work.wait(random.Random(seed).uniform(0.2, 1.5))
    except subprocess.TimeoutExpired:
        work.kill()
        work.wait()
    again = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert again.returncode == 0, (seed, again.stderr)
    assert (project / "answer.txt").read_text() == AFTER
    assert (project / "other.txt").read_text() == OTHER


def test_what_strangers_left_half_written_is_swept_up_an_hour_later(project: Path) -> None:
    """Of another machine, or before a boot, nobody can tell whether they write it still."""
    folder = project / ".loki" / "tasks" / "a-1"
    folder.mkdir(parents=True)
    old, fresh, own = folder / ".loki-1.tmp", folder / ".loki-2.tmp", folder / temporary_name()
    for path in (old, fresh, own):
        path.write_text("half of it")
    long_ago = fresh.stat().st_mtime - 2 * 3600
    for path in (old, own):
        os.utime(path, (long_ago, long_ago))
    assert run(project).status == "success"
    assert not old.exists()
    assert fresh.exists(), "another process may be writing it"
    assert own.exists(), "its writer lives"


# --- a disk that is full, or may not be written -----------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything below ``.loki`` fails with "no space left", as it does on a full disk."""
    refused: list[str] = []
    original = os.open

    def opened(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if ".loki" in Path(path).parts and flags & (os.O_WRONLY | os.O_RDWR):
            refused.append(str(path))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return original(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", opened)
    return refused


def test_a_full_disk_degrades_with_one_warning(
    project: Path, full_disk: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "loki"):
        outcome = run(project)
    assert full_disk, "nothing was refused: the test is no test"
    assert (outcome.status, outcome.attempts) == ("success", 2)
    warnings = [record.getMessage() for record in caplog.records]
    stored = [warning for warning in warnings if "kept in memory only" in warning]
    assert len(stored) == 1
    assert "No space left on device" in stored[0]


def test_a_second_run_is_refused_and_changes_nothing(project: Path) -> None:
    workspace = loki.Workspace(project)
    with workspace.task("one", checks=[CHECK]), pytest.raises(loki.UsageError, match="another"):
        loki.run("two", agent=agent, checks=[CHECK], path=str(project))
    assert (project / "answer.txt").read_text() == BEFORE
    assert loki.Workspace(project).history("two").attempts() == []
