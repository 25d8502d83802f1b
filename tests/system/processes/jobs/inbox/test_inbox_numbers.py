"""A number that was shown never comes to mean something else, and what is left alone stays so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import loki
from loki.cli.app import app
from loki.execution.assembly import signals_of
from loki.jobs.inbox.inbox import requests
from loki.jobs.inbox.request_kind import numbered, numbers_log
from loki.jobs.queue.queue import queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.jobs.recurring.recurring_tasks import RecurringTasks
from loki.people.request import LOG, OLDER_NUMBERS
from support.command import LOKI
from support.crew import make_agent, submit, where
from support.triage import NOW, failing


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> loki.Workspace:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return loki.Workspace()


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def block(workspace: loki.Workspace, *names: str, why: str = "it is not decided") -> None:
    queue = queue_of(workspace)
    for name in names:
        if queue.find(name) is None:
            queue.submit(QueuedTask(name, f"make {name}"))
        queue.block(name, why)


def shown(workspace: loki.Workspace) -> dict[str, int]:
    """By id, the number that `loki status` shows."""
    assert run("status").exit_code == 0
    found = json.loads(run("status", "--json").stdout)["waiting"]
    return {one["id"]: one["number"] for one in found}


def test_what_was_shown_is_what_is_answered(workspace: loki.Workspace) -> None:
    block(workspace, "a", "b")
    assert shown(workspace) == {"a": 1, "b": 2}
    block(workspace, "0-comes-first")
    assert run("approve", "1").exit_code == 0  # the list is another one by now
    assert shown(workspace) == {"0-comes-first": 3, "b": 2}
    block(workspace, "a", why="something else")
    late = run("approve", "1")
    assert (late.exit_code, "1 was blocked a, which waits no longer" in late.output) == (2, True)
    assert shown(workspace)["a"] == 4
    assert run("reject", "2", "nobody wants it").exit_code == 0
    assert where(queue_of(workspace))["b"] == "abandoned"
    unknown = run("approve", "9")
    assert (unknown.exit_code, "no 9 was shown" in unknown.output) == (2, True)


def test_what_a_person_says_to_a_blocked_task_reaches_its_agent(
    workspace: loki.Workspace, tmp_path: Path
) -> None:
    block(workspace, "a")
    queue_of(workspace).edit("a", checks=("test -f a.txt",))
    shown(workspace)
    assert "Next: loki work" in run("approve", "1", "the name is a.txt, in lower case").output
    program = tmp_path / "agent.sh"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/told\ntouch a.txt\n")
    program.chmod(0o755)
    assert run("work", "--agent-command", str(program)).exit_code == 0
    assert "the name is a.txt, in lower case" in (tmp_path / "told").read_text()


def test_what_is_left_alone_is_shown_again_once_it_has_changed(workspace: loki.Workspace) -> None:
    workspace.breakers()["api/claude"].isolate()
    assert shown(workspace) == {"api/claude": 1}
    assert "left as it is" in run("reject", "1").output
    assert shown(workspace) == {}
    workspace.breakers()["api/claude"].close()
    workspace.breakers()["api/claude"].isolate()
    assert shown(workspace) == {"api/claude": 2}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"given": {"x": [1]}, "next": "2", "left": 3}', '{"given": 7}',
     '{"event": "numbered", "key": [], "number": "1"}\n{"event": "numbered", "number": true}\n{"ev'],
)  # fmt: skip
@pytest.mark.parametrize("file", [LOG, OLDER_NUMBERS])
def test_a_file_that_somebody_broke_does_no_harm(
    workspace: loki.Workspace, file: str, text: str
) -> None:
    block(workspace, "a")
    (workspace.folder / file).parent.mkdir(exist_ok=True)
    (workspace.folder / file).write_text(text)
    assert shown(workspace) == {"a": 1}
    assert run("approve", "1").exit_code == 0


def test_numbers_of_before_there_was_a_log_mean_the_same(workspace: loki.Workspace) -> None:
    block(workspace, "a", "b")
    keys = {one.id: one.key for one in requests(workspace)}
    older = {"next": 8, "given": {keys["a"]: [7, "blocked a"]}, "left": [keys["b"]]}
    (workspace.folder / "state").mkdir(exist_ok=True)
    (workspace.folder / OLDER_NUMBERS).write_text(json.dumps(older))
    assert shown(workspace) == {"a": 7}
    block(workspace, "c")
    assert shown(workspace) == {"a": 7, "c": 8}


def test_a_number_is_given_once_whoever_writes_it_again(workspace: loki.Workspace) -> None:
    block(workspace, "a", "b")
    assert shown(workspace) == {"a": 1, "b": 2}
    log = numbers_log(workspace)
    log.add("numbered", "blocked b", key="theirs", number=1)
    log.add("numbered", "blocked a", key=requests(workspace)[0].key, number=9)
    assert shown(workspace) == {"a": 1, "b": 2}


def test_every_answer_stands_in_the_log(workspace: loki.Workspace) -> None:
    block(workspace, "a")
    shown(workspace)
    assert run("approve", "1", "the name is a.txt", "--by", "ann").exit_code == 0
    (line,) = numbers_log(workspace).all("answered")
    said = {name: line[name] for name in ("id", "kind", "answer", "by", "note", "tasks")}
    assert said == {
        "id": "a", "kind": "blocked", "answer": "approved", "by": "ann", "note": "the name is a.txt",
        "tasks": ["a"],
    }  # fmt: skip
    assert "May it go on?" in line["question"]


NUMBERS = """
import loki
from loki.jobs.inbox.request_kind import numbered
from loki.jobs.inbox.inbox import requests
workspace = loki.Workspace()
print(sorted((one.id, one.number) for one in numbered(workspace, requests(workspace))))
"""


def test_processes_give_each_thing_one_number(workspace: loki.Workspace) -> None:
    block(workspace, *"abcdef")
    looks = [
        subprocess.Popen([sys.executable, "-c", NUMBERS], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    told = {look.communicate(timeout=60)[0] for look in looks}
    assert len(told) == 1
    found = [one.number for one in numbered(workspace, requests(workspace))]
    assert sorted(found) == [1, 2, 3, 4, 5, 6]


def test_plain_loki_begins_with_what_waits(workspace: loki.Workspace) -> None:
    plain = run()
    assert plain.exit_code == 0
    assert plain.output.lstrip().startswith("Usage")  # there is nothing of loki's here yet
    block(workspace, "a")
    told = run().output
    assert told.startswith("1 thing waits for you:")
    assert told.index('loki reject 1 "why"') < told.index("Usage")


def test_up_does_what_work_tick_and_signals_do(workspace: loki.Workspace, tmp_path: Path) -> None:
    agent, _ = make_agent(tmp_path)
    queue = submit(workspace.root, ["a"])
    ran = tmp_path / "ran"
    RecurringTasks(workspace.store).add(
        failing("nightly", command=("touch", str(ran)), consecutive_failures=0, next_run_at=NOW)
    )
    up = subprocess.Popen(
        [*LOKI, "up", "--agent-command", agent], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        signals_of(workspace).emit("DOCS_NEEDED", data={"description": "The login takes a token"})
        end = time.monotonic() + 60
        while not (
            where(queue).get("a") == "completed"
            and ran.exists()
            and any("token" in task.title for task in queue.tasks())
        ):
            assert time.monotonic() < end, where(queue)
            assert up.poll() is None
            time.sleep(0.1)
        stopped = subprocess.run([*LOKI, "stop"], capture_output=True, check=False)
        output, _ = up.communicate(timeout=60)
    finally:
        up.kill()
        up.communicate()
    assert (up.returncode, stopped.returncode) == (130, 0), output
    assert b"Up: queue (5 tasks at a time), recurring tasks, signals." in output
