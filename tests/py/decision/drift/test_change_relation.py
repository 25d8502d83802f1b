"""Which files of a change a task is about, and how far the others are."""

from __future__ import annotations

import pytest

from loki.decision.drift.task_relation import Goal, Relation, Touched, is_test

LOGIN = Goal(
    "fix the login",
    named={"app/login.py", "tests/test_login.py"},
    imports={"app/login.py": {"app/session.py"}, "app/session.py": {"lib/clock.py"}},
)


def far(goal: Goal, *files: Touched) -> set[str]:
    relation = Relation(goal, files)
    return {file.path for file in files if relation.is_far(file.path)}


@pytest.mark.parametrize(
    "path",
    [
        "app/login.py",
        "app/session.py",
        "lib/clock.py",
        "web/login.css",
        "app/login.h",
        "package-lock.json",
        "CHANGELOG.md",
    ],
)
def test_a_task_is_about(path: str) -> None:
    assert not far(LOGIN, Touched(path, added=500))


def test_a_task_is_not_about_the_rest() -> None:
    assert far(LOGIN, Touched("game/draw.py", added=5)) == {"game/draw.py"}


def test_names_tie_files_together() -> None:
    login = Touched("app/login.py", words=frozenset({"draw_badge"}))
    draw = Touched("game/draw.py", "created", 90, defines=frozenset({"draw_badge"}))
    brush = Touched("game/brush.py", "created", 90, imports=frozenset({"draw"}))
    assert not far(LOGIN, login, draw, brush)
    assert far(LOGIN, login, brush) == {"game/brush.py"}


def test_companions_are_small() -> None:
    assert not far(LOGIN, Touched("pyproject.toml", added=3))
    assert far(LOGIN, Touched("pyproject.toml", added=90))


def test_support_of_tests_is_no_work_elsewhere() -> None:
    assert not far(LOGIN, Touched("tests/data/users.json", "created", 90))
    assert far(LOGIN, Touched("tests/test_games.py", "created", 90))


def test_a_scope_says_itself_how_far_it_goes() -> None:
    goal = Goal("fix the login", scope=("app/",), named={"lib/clock.py"})
    assert far(goal, Touched("lib/clock.py"), Touched("app/x.py")) == {"lib/clock.py"}


def test_what_nothing_is_known_of_has_no_reference() -> None:
    assert not Relation(Goal("Improve the code"), [Touched("a.py")]).has_reference
    assert Relation(LOGIN, [Touched("a.py")]).has_reference
    pointing = Goal("draw the login", project={"web/login.ts", "x.ts"})
    assert Relation(pointing, [Touched("x.ts")]).has_reference


def test_tests_are_known_by_their_names() -> None:
    assert is_test(Touched("tests/test_a.py"))
    assert is_test(Touched("a_test.go"))
    assert not is_test(Touched("tests/data/a.json"))
    assert not is_test(Touched("tests/conftest.py"))
