"""What a crash of the machine leaves of loki's work: `python -m benchmarks.machine_crash`.

Each scenario runs again and again, and the machine goes down before another call that changes the disk
(`benchmarks.machine`). From each crash come several states of the disk, with what was not synced there,
gone, or in part; each is started from, as after a reboot, and held to what was promised: what was
acknowledged is there, what was not is wholly there or not at all, and nothing ends in an error.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import loki
from benchmarks.machine import Crash, crashed
from loki.action.changes.change import Change, Edit
from loki.action.changes.journal import Journal
from loki.base import locks
from loki.base.atomic_file import is_temporary
from loki.jobs.queue import queue_file_sync, worker_lock
from loki.jobs.queue.queue import Queue
from loki.jobs.queue.queued_task import LISTS, QueuedTask
from loki.jobs.queue.worker_lock import Worker
from loki.people.request import HumanReviews
from loki.stores.file_store import FileStore
from loki.testing import ManualClock

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Scenario:
    """Work, and what was promised of it.

    Attributes:
        make: makes the project; work: tells what is acknowledged.
        check: what is wrong after a reboot, in sentences, given the project and what was acknowledged.
    """

    make: Callable[[Path], None]
    work: Callable[[Path, Tell], object]
    check: Callable[[Path, list[str]], Iterator[str]]


# --- a task's changes -----------------------------------------------------------------------------

OLD = {"a.py": b"old a\n", "old/gone.py": b"gone\n"}
CHANGES = (
    Change((Edit("a.py", b"new a\n"), Edit("old/gone.py", None), Edit("new/b.py", b"b\n"))),
    Change((Edit("a.py", b"newer a\n"), Edit("link", b"a.py", mode="symlink"))),
)
NEW = {"a.py": b"new a\n", "new/b.py": b"b\n"}
NEWER = {"a.py": b"newer a\n", "new/b.py": b"b\n", "link": b"newer a\n"}


def _make_files(project: Path) -> None:
    (project / "old").mkdir()
    for name, data in OLD.items():
        (project / name).write_bytes(data)


def _journal(project: Path) -> Journal:
    return Journal(project / ".loki/tasks/t/undo", project)


def _change_files(project: Path, tell: Tell) -> None:
    task = _journal(project)
    for number, change in enumerate(CHANGES, 1):
        task.apply(change)  # not settled: it is there all the same
        tell(f"applied {number}")
    task.finish()
    task.undo()
    tell("undone")


def _files(project: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file() and ".loki" not in path.parts
    }


def _check_files(project: Path, told: list[str]) -> Iterator[str]:
    found = _journal(project).recover()
    yield from found.damaged
    yield from (conflict.reason for conflict in found.conflicts)
    states = [OLD, NEW, NEWER, OLD]
    here = _files(project)
    # What was acknowledged, or what was under way then.
    if here not in states[len(told) : len(told) + 2]:
        yield f"after {told or 'nothing'} the files are {sorted(here)}"
    _journal(project).undo()
    if _files(project) != OLD:
        yield "undo does not lead back to the start"


# --- the queue ------------------------------------------------------------------------------------


def _queue(project: Path) -> Queue:
    return Queue(FileStore(project / ".loki"), ManualClock())


def _use_queue(project: Path, tell: Tell) -> None:
    queue = _queue(project)
    for name in ("a", "b", "c", "d"):
        queue.submit(QueuedTask(name, f"make {name}"))
        tell(f"{name} pending")
    with Worker(project / ".loki") as one:
        for verb in ("complete", "fail", "release"):
            claim = queue.lease(one)
            assert claim is not None
            name = claim.task.id
            tell(f"{name} in-progress")
            if verb == "complete":
                queue.complete(claim)
                tell(f"{name} completed")
            elif verb == "fail":
                queue.fail(claim, "no")
                tell(f"{name} failed")
            else:
                queue.release(claim)
                tell(f"{name} pending")


def _check_queue(project: Path, told: list[str]) -> Iterator[str]:
    queue, folder = _queue(project), project / ".loki/queue"
    known = dict(line.split() for line in told)
    where = {task.id: queue.where(task.id) for task in queue.tasks()}
    yield from (f"{name} is lost" for name in known.keys() - where.keys())
    for name, place in known.items():
        if place in {"completed", "failed"} and where.get(name) != place:
            yield f"{name} was acknowledged as {place} and is {where.get(name)}"
    queue.submit(QueuedTask("last", "make last", priority="critical"))
    with Worker(project / ".loki") as one:
        claim = queue.lease(one)
        if claim is None or claim.task.id != "last":
            yield "what is submitted now cannot be claimed"
        try:
            current = json.loads((folder / "current-task.json").read_bytes())["id"]
        except (OSError, ValueError, KeyError) as error:
            yield f"current-task.json: {error!r}"
        else:
            if current not in {"last", *(n for n, at in where.items() if at == "in-progress")}:
                yield f"current-task.json names {current}"
    lists = {
        name: [task["id"] for task in json.loads((folder / f"{name}.json").read_bytes())["tasks"]]
        for name in LISTS
        if (folder / f"{name}.json").exists()
    }
    ids = sorted(id_ for some in lists.values() for id_ in some)
    if ids != sorted({*where, "last"}):
        yield f"the lists have {ids}, the queue {sorted(where)}"


# --- what a person is asked -------------------------------------------------------------------------


def _reviews(project: Path) -> HumanReviews:
    return HumanReviews(FileStore(project / ".loki"), ManualClock())


def _ask(project: Path, tell: Tell) -> None:
    here = _reviews(project)
    for name in "abc":
        tell(f"asked {here.ask(reason='cost_limit', task_id=name).id}")
    for one in here.open()[:2]:
        here.decide(one.id, by="ann")
        tell(f"decided {one.id}")


def _check_reviews(project: Path, told: list[str]) -> Iterator[str]:
    here = _reviews(project)
    decided = {one.id for one in here.decisions()}
    known = decided | {one.id for one in here.open()}
    for line in told:
        what, id_ = line.split()
        if id_ not in (decided if what == "decided" else known):
            yield f"{line}, and it is lost"
    for one in here.open():
        here.decide(one.id, by="bob")
    if here.open():
        yield "an answered request is open"


# --- a whole run ------------------------------------------------------------------------------------

CHECK = 'test "$(cat answer.txt)" = three'


def _make_project(project: Path) -> None:
    (project / "answer.txt").write_text("one\n")


def _agent(briefing: loki.Briefing) -> dict[str, str]:
    is_first = (briefing.root / "answer.txt").read_text() == "one\n"
    return {"answer.txt": "two\n" if is_first else "three\n", "made/x.txt": "x\n"}


def _run(project: Path, tell: Tell) -> loki.Outcome:
    outcome = loki.run(
        "answer three", agent=_agent, checks=[f"sh -c '{CHECK}'"], path=str(project), id="t"
    )
    tell(outcome.status)
    return outcome


def _check_run(project: Path, told: list[str]) -> Iterator[str]:
    workspace = loki.Workspace(project)
    with workspace.exclusive():
        workspace.journal("t").recover()
    here = _files(project)
    if (here.get("made/x.txt") == b"x\n") == (here["answer.txt"] == b"one\n"):
        yield f"half a change: {here}"
    if told == ["success"] and here["answer.txt"] != b"three\n":
        yield "a task that had succeeded is not in the project any more"
    if (again := _run(project, lambda _: None).status) != "success":
        yield f"gone on with, it ends as {again}"
    if _files(project).get("answer.txt") != b"three\n":
        yield "gone on with, it says success without its change"


SCENARIOS = {
    "changes": Scenario(_make_files, _change_files, _check_files),
    "queue": Scenario(lambda _: None, _use_queue, _check_queue),
    "questions": Scenario(lambda _: None, _ask, _check_reviews),
    "run": Scenario(_make_project, _run, _check_run),
}


@dataclass
class Result:
    """Crashes and states that were tried, and what was wrong in them."""

    crashes: int = 0
    states: int = 0
    problems: list[str] = field(default_factory=list)


def tried(
    scenario: Scenario,
    *,
    most: int | None = None,
    seconds: float = math.inf,
    seeds: int = 3,
    seed: int = 0,
) -> Result:
    """Crash a scenario before each call that changes the disk, in any order.

    Args:
        scenario: which.
        most: calls; None: all. seconds: after which no other is begun.
        seeds: states of each crash, beside two. seed: for what is left to chance.
    """
    result, chance, end = Result(), random.Random(seed), time.monotonic() + seconds
    last = _try(scenario, 0, seeds, chance, result)
    for at in chance.sample(range(1, last + 1), min(last, most or last)):
        if time.monotonic() > end:
            break
        _try(scenario, at, seeds, chance, result)
    return result


def _try(scenario: Scenario, at: int, seeds: int, chance: random.Random, result: Result) -> int:
    """Crash it at one call, and look at what that leaves; how many calls there were."""
    with tempfile.TemporaryDirectory(prefix="loki-crash-", dir=MEMORY) as name:
        crash = _crash(scenario, Path(name), at)
        result.crashes += 1
        for what, keeps in crash.states(seeds, chance):
            copy = Path(name, "after")
            crash.write(copy, keeps, chance)
            result.states += 1
            result.problems += [
                f"at call {at}, {what}: {problem}"
                for problem in _after_reboot(scenario, copy, crash.acknowledged)
            ]
            shutil.rmtree(copy)
        return crash.disk.calls


def _crash(scenario: Scenario, folder: Path, at: int) -> Crash:
    project = folder / "project"
    project.mkdir()
    scenario.make(project)
    return crashed(project, lambda tell: scenario.work(project, tell), at)


def _after_reboot(scenario: Scenario, project: Path, told: list[str]) -> list[str]:
    """What is wrong in a state, looked at by a process of the next boot."""
    said = project.with_name("said")
    child = os.fork()
    if child == 0:
        try:
            for module in (locks, worker_lock, queue_file_sync):
                vars(module)["boot_id"] = lambda: "the next"
            locks._where.cache_clear()
            problems = list(scenario.check(project, told))
            # Below .loki they go with time: of another boot nobody can tell whether they are written.
            problems += [
                f"{path.name} is left in the project"
                for path in project.rglob("*")
                if is_temporary(path.name) and ".loki" not in path.parts
            ]
        except BaseException:
            problems = [traceback.format_exc()]
        said.write_text(json.dumps(problems))
        os._exit(0)
    os.waitpid(child, 0)
    found: list[str] = json.loads(said.read_bytes())
    return found


def main(words: list[str]) -> int:
    """Tries each scenario and prints a row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120, help="for each scenario, at most")
    parser.add_argument("--seeds", type=int, default=6, help="states of each crash, beside two")
    parser.add_argument("--only", choices=SCENARIOS, nargs="*", default=list(SCENARIOS))
    options = parser.parse_args(words)
    sys.stdout.write("| what | crashes | states of the disk | wrong |\n|---|---|---|---|\n")
    wrong = 0
    for name in options.only:
        found = tried(SCENARIOS[name], seconds=options.seconds, seeds=options.seeds)
        row = f"| {name} | {found.crashes} | {found.states} | {len(found.problems)} |\n"
        sys.stdout.write(row)
        sys.stdout.flush()
        sys.stderr.write("".join(f"{name}: {problem}\n" for problem in found.problems[:5]))
        wrong += len(found.problems)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
