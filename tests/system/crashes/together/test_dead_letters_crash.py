"""Who is killed while a task is given up, or reviewed, loses nothing; several reviews decide once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import loki
from loki.jobs.dead_letters.dead_letter_review import Answers, Scope
from loki.jobs.dead_letters.dead_letters import DeadLetters
from loki.jobs.queue.queue import queue_of
from support.dead_letters import (
    KEY_ERROR,
    give_up,
    letter,
    make_project,
    places,
    raw,
    write_letters,
)
from support.forked import exit_codes, fork
from support.journal import die_at_call, killed

EVERY = 1 if os.environ.get("LOKI_THOROUGH") else 7
"""Of the calls that change something on the disk, every so many-th is tried."""

SAID = {
    "retried": Answers(new_approach="ask the caller what it wants"),
    "fixed": Answers(fixed_by="5fd6e0c"),
    "simplified": Answers(simpler_scope=Scope("fit half of it")),
    "abandoned": Answers(abandon="nobody needs it"),
    "unclear": Answers(readings=("all of it", "half of it")),
}

AFTERWARDS = {
    "retried": "pending",
    "fixed": "pending",
    "simplified": "dead-letter",
    "simplified-simpler-1": "pending",
    "abandoned": "abandoned",
    "unclear": "dead-letter",
    **dict.fromkeys(("a", "b", "c", "plain"), "dead-letter"),
}


def make(folder: Path) -> loki.Workspace:
    folder.mkdir()
    workspace = make_project(folder)
    letters = [letter(name) for name in ("a", "b", "c", "plain", *SAID)]
    for one in letters[:3]:
        one["attempts"][0]["error_message"] = KEY_ERROR
    write_letters(workspace, letters)
    return workspace


def look(workspace: loki.Workspace) -> None:
    DeadLetters(workspace).review(said=SAID)


def check(workspace: loki.Workspace) -> None:
    assert places(workspace) == AFTERWARDS
    reviews = DeadLetters(workspace)
    known = reviews.queue.dead_letter_metadata()
    assert (known["total_recovered"], known["total_abandoned"]) == (2, 1)
    assert known["last_reviewed"]
    asked = sorted(sorted(one.tasks) for one in reviews.escalations.open())
    assert asked == [["a", "b", "c"], ["unclear"]]
    assert raw(workspace, "simplified")["simpler_task"] == "simplified-simpler-1"
    assert raw(workspace, "abandoned")["reason"] == "nobody needs it"


def dies(number: int, work: Callable[[], object]) -> bool:
    """Do it in a child that is killed before the n-th call that changes the disk; whether it was."""

    def child() -> None:
        die_at_call(number)
        work()

    return killed(child)


def until_it_lives(first: int, work: Callable[[int], bool]) -> int:
    """Do it, killed ever later, until it is not killed any more; how often it was."""
    number = first
    while work(number):
        number += EVERY
    return (number - first) // EVERY


def test_a_review_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    def work(number: int) -> bool:
        workspace = make(tmp_path / str(number))
        before = set(places(workspace))
        was = dies(number, lambda: look(workspace))
        lists = queue_of(workspace).lists()
        assert all(lists.where(id_) for id_ in before), "each is in a list at every moment"
        look(workspace)
        check(workspace)
        return was

    assert until_it_lives(1, work) > 5


def test_a_loop_that_is_killed_as_it_gives_up_is_among_the_dead_letters(tmp_path: Path) -> None:
    def work(number: int) -> bool:
        folder = tmp_path / str(number)
        folder.mkdir()
        workspace = make_project(folder)
        was = dies(number, lambda: give_up(workspace))
        outcome = give_up(loki.Workspace(folder, clock=workspace.clock)) if was else None
        DeadLetters(workspace).review()
        assert places(workspace) == {workspace.tasks()[0]: "dead-letter"}
        entry = raw(workspace, workspace.tasks()[0])
        assert entry["failure_count"] == len(entry["attempts"]) >= 2
        assert outcome is None or outcome.status == "failed"
        return was

    first = 60  # what comes before is the loop's own, and tested there
    assert until_it_lives(first, work) > 2


def test_a_review_at_one_moment_changes_nothing_the_second_time(tmp_path: Path) -> None:
    workspace = make(tmp_path / "project")
    look(workspace)
    before = {p: p.read_bytes() for p in (workspace.folder / "queue").glob("*.json")}
    pages = {p: p.read_bytes() for p in (workspace.folder / "escalations").iterdir()}
    DeadLetters(workspace).review()
    assert {p: p.read_bytes() for p in (workspace.folder / "queue").glob("*.json")} == before
    assert {p: p.read_bytes() for p in (workspace.folder / "escalations").iterdir()} == pages


@pytest.mark.parametrize("processes", [4])
def test_several_reviews_at_once_decide_once(tmp_path: Path, processes: int) -> None:
    workspace = make(tmp_path / "project")
    children = [fork(lambda: look(workspace)) for _ in range(processes)]
    assert exit_codes(children) == [0] * processes
    check(workspace)
