"""A test has one name, and a project one history, wherever pytest was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.pytest_plugin.options import project_root_of
from support.suite import Suite, outcomes

BAD = "def test_bad():\n    assert 1 == 2\n"


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        (".", ()),
        ("tests", ()),
        (".", ("--rootdir=tests",)),
        (".", ("tests/deep",)),
        ("tests/deep", ("..",)),
    ],
)
def test_the_same_from_any_folder(tmp_path: Path, folder: str, arguments: tuple[str, ...]) -> None:
    suite = Suite(tmp_path).put("tests/deep/test_a.py", BAD)
    suite.git("init", "-q", ".")
    ran = suite.pytest("--loki", *arguments, cwd=tmp_path / folder)
    assert set(outcomes(ran)) == {"tests/deep/test_a.py::test_bad"}
    failure = ran.run.failures[0].failure
    assert (failure.path, failure.line) == ("tests/deep/test_a.py", 2)


def test_a_configured_root_is_the_project(tmp_path: Path) -> None:
    """Of several projects in a repository each has its own history, unless the whole has one."""
    suite = Suite(tmp_path).put("one/pytest.ini", "[pytest]\n").put("one/test_a.py", BAD)
    suite.git("init", "-q", ".")
    suite.pytest("--loki", cwd=tmp_path / "one")
    assert (tmp_path / "one/.loki").is_dir()
    assert not (tmp_path / ".loki").exists()


def test_the_nearest_history_is_used(tmp_path: Path) -> None:
    inner = tmp_path / "packages" / "one"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".loki").mkdir()
    place = project_root_of(inner, is_configured=True, started_in=inner)
    assert (place.project, place.prefix) == (tmp_path, "packages/one/")
    (inner / ".loki").mkdir()
    assert project_root_of(inner, is_configured=True, started_in=inner).project == inner


def test_folders_above_a_repository_do_not_count(tmp_path: Path) -> None:
    (tmp_path / ".loki").mkdir()
    inner = tmp_path / "project"
    (inner / ".git").mkdir(parents=True)
    assert project_root_of(inner, is_configured=False, started_in=inner).project == inner


def test_a_test_that_changes_the_folder(tmp_path: Path) -> None:
    """Paths are found although pytest writes them relative to where the test went."""
    text = (
        "def test_a(monkeypatch, tmp_path):\n    monkeypatch.chdir(tmp_path)\n    assert 1 == 2\n"
    )
    ran = (
        Suite(tmp_path / "project")
        .put("test_a.py", text)
        .pytest("--loki", "-p", "no:cacheprovider")
    )
    failure = ran.run.failures[0].failure
    assert (failure.path, failure.line) == ("test_a.py", 3)
