"""``loki dead-letters`` as a person and as a script meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import loki
from support.command import loki as call
from support.dead_letters import letter, make_project, places, raw, write_letters


def shown(*arguments: str, cwd: Path) -> str:
    code, out, error = call("dead-letters", *arguments, cwd=cwd)
    assert code == 0, error
    return out


def answered(*arguments: str, cwd: Path) -> Any:
    return json.loads(shown(*arguments, "--json", cwd=cwd))


@pytest.fixture
def workspace(tmp_path: Path) -> loki.Workspace:
    return make_project(tmp_path)


def test_where_nothing_was_given_up(tmp_path: Path) -> None:
    assert shown(cwd=tmp_path) == "No dead letters: no task was given up.\n"
    assert shown("review", cwd=tmp_path) == "No dead letters: no task was given up.\n"
    assert answered("list", cwd=tmp_path)["tasks"] == []


def test_what_stands_before_a_command_is_meant_for_it(
    workspace: loki.Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_letters(workspace, [letter("a")])
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    told = shown("--project", str(workspace.root), "--json", "list", cwd=elsewhere)
    assert [one["task_id"] for one in json.loads(told)["tasks"]] == ["a"]


def test_loki_tick_reviews_once_a_day(workspace: loki.Workspace) -> None:
    write_letters(workspace, [letter("a")])
    for reviewed in (True, False):
        code, _, error = call("tick", cwd=workspace.root)
        assert code == 0, error
        assert ("a: stays: nothing has changed" in error) is reviewed


def test_a_person_abandons_several_and_says_why(workspace: loki.Workspace) -> None:
    write_letters(workspace, [letter("a"), letter("b"), letter("c")])
    data = answered("abandon", "a", "b", "--reason", "dropped", "--by", "ann", cwd=workspace.root)
    assert [one["task_id"] for one in data["reviewed"]] == ["a", "b"]
    assert data["metadata"]["total_abandoned"] == 2
    assert places(workspace) == {"a": "abandoned", "b": "abandoned", "c": "dead-letter"}
    assert raw(workspace, "a")["reason"] == "dropped"
    told = shown("abandon", "c", "--reason", "dropped", cwd=workspace.root)
    assert "kept    its attempts, pages and edits; loki undo c restores the files" in told


def test_a_simpler_task(workspace: loki.Workspace) -> None:
    write_letters(workspace, [letter("a")])
    (one,) = answered("retry", "a", "--simpler", "do half of it", cwd=workspace.root)["reviewed"]
    assert places(workspace) == {"a": "dead-letter", one["new_task"]: "pending"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "x"), "no dead letter 'x'; there are: a, ab"),
        (("retry", "x"), "no dead letter 'x'"),
        (("retry", ""), "no dead letter ''"),
        (("retry", "a", "--approach", "b", "--simpler", "c"), "expected one of --approach"),
        (("abandon", "a", "--reason", " "), "expected why the task is given up"),
        (("review", "--reviewer", "a", "--reviewer-command", "b"), "not both"),
        (("review", "--reviewer-command", "no-such-program-here"), "no-such-program-here"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    workspace: loki.Workspace, arguments: tuple[str, ...], says: str
) -> None:
    write_letters(workspace, [letter("a"), letter("ab")])
    code, _, error = call("dead-letters", *arguments, cwd=workspace.root)
    assert code == 2
    assert says in error
    assert places(workspace) == {"a": "dead-letter", "ab": "dead-letter"}
