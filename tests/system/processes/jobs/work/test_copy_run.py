"""A task in a copy: what succeeds lands whole, what does not leaves the project as it is."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

import loki
from loki.action.agent_protocol import Briefing
from loki.action.changes.change import Change, Edit
from support.project import QUICK, RIGHT, make_project
from support.working import PASSES, files, in_copy

FIX = {"calc.py": RIGHT}


@pytest.fixture(params=[False, True], ids=["plain", "git"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return make_project(tmp_path / "project", git=request.param)


def test_success_lands_and_can_be_undone(project: Path) -> None:
    before = files(project)
    outcome, after = in_copy(project, lambda _: FIX, checks=[QUICK], kind="bug_fix")

    assert (outcome.status, outcome.files) == ("success", ("calc.py",))
    assert after == {**before, "calc.py": RIGHT.encode()}
    workspace = loki.Workspace(project)
    assert workspace.journal(outcome.task_id).undo().restored == ("calc.py",)
    assert files(project) == before


def test_the_agent_sees_the_tree_as_it_is_and_not_the_project(project: Path) -> None:
    (project / "notes.txt").write_text("not committed\n")
    seen: list[Path] = []

    def agent(briefing: Briefing) -> dict[str, str]:
        seen.append(briefing.root)
        assert (briefing.root / "notes.txt").read_text() == "not committed\n"
        (briefing.root / "stray.txt").write_text("by an agent that edits by itself")
        return FIX

    outcome, after = in_copy(project, agent, checks=[QUICK])

    assert outcome.status == "success"
    assert not seen[0].is_relative_to(project)
    assert not seen[0].exists()
    assert "stray.txt" not in after


def test_what_fails_leaves_the_project_and_keeps_a_patch(project: Path) -> None:
    before = files(project)
    outcome, after = in_copy(
        project, lambda _: {"calc.py": "broken\n"}, checks=[QUICK], max_attempts=1
    )

    assert (outcome.status, after) == ("failed", before)
    patch = project / ".loki" / "tasks" / outcome.task_id / f"unfinished-{outcome.task_id}.patch"
    assert "+broken" in patch.read_text()


def test_resuming_brings_in_what_is_unfinished(project: Path) -> None:
    outcome, _ = in_copy(
        project, lambda _: {"half.py": "half = 1\n"}, checks=[QUICK], max_attempts=1
    )
    assert outcome.status == "failed"

    with loki.Workspace(project).resume(outcome.task_id, context="the sign is wrong") as task:
        assert (project / "half.py").read_text() == "half = 1\n"
        resumed = task.run(lambda _: FIX)

    assert resumed.status == "success"
    assert sorted(resumed.files) == ["calc.py", "half.py"]
    folder = project / ".loki" / "tasks" / outcome.task_id
    assert not list(folder.glob("unfinished*")) + list(folder.glob("work*"))
    loki.Workspace(project).journal(outcome.task_id).undo()
    assert not (project / "half.py").exists()


def test_unfinished_work_that_does_not_fit_any_more_stays_a_patch(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outcome, _ = in_copy(project, lambda _: {"calc.py": "half\n"}, checks=[QUICK], max_attempts=1)
    (project / "calc.py").write_text(RIGHT)
    with loki.Workspace(project).resume(outcome.task_id) as task:
        assert task.run(lambda _: {}).status == "success"

    assert (project / "calc.py").read_text() == RIGHT
    assert "does not fit any more" in caplog.text


def test_an_interrupted_task_goes_on_in_the_next_copy(project: Path) -> None:
    def stopped(_: Briefing) -> dict[str, str]:
        raise KeyboardInterrupt

    def agent(briefing: Briefing) -> dict[str, str]:
        return {"half.py": "half = 1\n"} if briefing.attempt == 1 else stopped(briefing)

    outcome, after = in_copy(project, agent, checks=[QUICK])
    assert (outcome.status, "half.py" in after) == ("interrupted", False)

    outcome, after = in_copy(project, lambda _: FIX, checks=[QUICK])
    assert (outcome.status, sorted(outcome.files)) == ("success", ["calc.py", "half.py"])
    assert after["half.py"] == b"half = 1\n"


def test_deletions_renames_links_and_executable_bits_land(project: Path) -> None:
    change = Change(
        (
            Edit("tests/test_calc.py", None),
            Edit("checks/test_calc.py", (project / "tests/test_calc.py").read_bytes()),
            Edit("run.sh", b"#!/bin/sh\n", mode="executable"),
            Edit("link.py", b"calc.py", mode="symlink"),
        )
    )
    before = files(project)
    outcome, after = in_copy(project, lambda _: change, kind="refactor")

    assert outcome.status == "success"
    assert not (project / "tests").exists()
    assert after["checks/test_calc.py"] == before["tests/test_calc.py"]
    assert stat.S_IMODE((project / "run.sh").stat().st_mode) & 0o111
    assert os.readlink(project / "link.py") == "calc.py"
    loki.Workspace(project).journal(outcome.task_id).undo()
    assert files(project) == before


def test_a_conflict_begins_again_on_the_newer_project(project: Path) -> None:
    told: list[str] = []

    def agent(briefing: Briefing) -> dict[str, str]:
        told.append(str(briefing))
        there = (briefing.root / "calc.py").read_text()
        if len(told) == 1:  # somebody else is quicker
            (project / "calc.py").write_text("# theirs\n" + there)
        return {"calc.py": there.replace("a - b", "a + b")}

    outcome, after = in_copy(project, agent, checks=[QUICK])

    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert after["calc.py"] == b"# theirs\n" + RIGHT.encode()
    first = loki.Workspace(project).history(outcome.task_id).attempts()[0]
    assert (first.result, first.pattern_matched, first.phase) == (
        "failed",
        "merge-conflict",
        "land",
    )
    assert "merge conflict" in told[1]
    assert "a + b" in told[1]
    assert not loki.Workspace(project).signs().armed
    loki.Workspace(project).journal(outcome.task_id).undo()
    assert (
        (project / "calc.py").read_text().startswith("# theirs\ndef add(a, b):\n    return a - b")
    )


def test_conflicts_without_end_are_a_dead_letter_or_a_persons(project: Path) -> None:
    count = 0

    def agent(briefing: Briefing) -> dict[str, str]:
        nonlocal count
        count += 1
        (project / "calc.py").write_text(f"# {count}\n")
        return {"calc.py": RIGHT + f"# by attempt {count}\n"}

    outcome, after = in_copy(project, agent, checks=[QUICK], max_attempts=3)

    assert outcome.status in {"failed", "escalated"}
    assert outcome.attempts <= 3
    assert after["calc.py"] == f"# {count}\n".encode()


def test_passing_alone_and_failing_together_is_no_success(project: Path) -> None:
    """Another task landed what makes this one's change wrong, in other files."""
    (project / "check.py").write_text(
        "import os\nassert not (os.path.exists('a.txt') and os.path.exists('b.txt')), 'a and b'\n"
    )
    calls = 0

    def agent(briefing: Briefing) -> dict[str, str | None]:
        nonlocal calls
        calls += 1
        if calls == 1:
            (project / "b.txt").write_text("theirs\n")
            return {"a.txt": "ours\n"}
        assert (briefing.root / "b.txt").exists()
        assert (briefing.root / "a.txt").exists()
        return {"a.txt": None, "c.txt": "ours\n"}

    outcome, after = in_copy(project, agent, checks=[QUICK])

    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert {"b.txt", "c.txt"} <= after.keys()
    assert "a.txt" not in after


def test_what_landed_elsewhere_is_checked_together_and_then_lands(project: Path) -> None:
    calls = 0

    def agent(_: Briefing) -> dict[str, str]:
        nonlocal calls
        calls += 1
        (project / "theirs.txt").write_text(f"{calls}\n")
        return FIX

    outcome, after = in_copy(project, agent, checks=[QUICK])
    assert (outcome.status, outcome.attempts, after["theirs.txt"]) == ("success", 1, b"1\n")


def test_dependencies_that_git_ignores_are_there(project: Path) -> None:
    (project / "node_modules" / "x").mkdir(parents=True)
    (project / "node_modules" / "x" / "i.js").write_text("1\n")
    there = "test -f node_modules/x/i.js"
    outcome, after = in_copy(project, lambda _: {"a.txt": "a\n"}, checks=[f"sh -c '{there}'"])

    assert outcome.status == "success"
    assert "node_modules" not in {Path(path).parts[0] for path in after if "x" not in path}
    assert not (project / "node_modules").is_symlink()


def test_the_index_and_history_of_git_are_left_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", git=True)
    (project / "calc.py").write_text("# staged\n" + (project / "calc.py").read_text())
    subprocess.run(["git", "add", "calc.py"], cwd=project, check=True)

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=project, check=True, capture_output=True).stdout

    staged, log = git("diff", "--cached"), git("log", "--all", "--format=%H")
    outcome, _ = in_copy(project, lambda _: {"new.py": "x = 1\n"}, checks=[PASSES])

    assert outcome.status == "success"
    assert (git("diff", "--cached"), git("log", "--all", "--format=%H")) == (staged, log)
    assert b"?? new.py" in git("status", "--porcelain")


def test_what_is_new_in_the_project_comes_into_the_copy(project: Path) -> None:
    """Files that changed, came, went, and a folder that became a file; beside the work."""
    (project / "folder").mkdir()
    (project / "folder" / "a.txt").write_text("a\n")
    seen: list[str] = []

    def agent(briefing: Briefing) -> dict[str, str]:
        (project / "check.py").write_text("print('new')\n")
        (project / "tests" / "test_calc.py").unlink()
        (project / "deep" / "er").mkdir(parents=True)
        (project / "deep" / "er" / "b.txt").write_text("b\n")
        (project / "run.sh").write_text("#!/bin/sh\n")
        (project / "run.sh").chmod(0o755)
        (project / "folder" / "a.txt").unlink()
        (project / "folder").rmdir()
        (project / "folder").write_text("a file\n")
        seen.append(str(briefing.root))
        return FIX

    check = (
        "test -e tests/test_calc.py || { grep -q new check.py && test -f deep/er/b.txt "
        "&& test -x run.sh && test -f folder && grep -q 'a + b' calc.py; }"
    )
    outcome, after = in_copy(project, agent, checks=[f'sh -c "{check}"'])
    assert (outcome.status, outcome.attempts) == ("success", 1)
    assert after["calc.py"] == RIGHT.encode()
    assert after["folder"] == b"a file\n"


def test_what_is_new_never_goes_through_a_link_of_the_copy(project: Path) -> None:
    """``vendor`` was ignored, and a link to the project's own; meanwhile it is a part of the project."""
    (project / "vendor").mkdir()
    (project / "vendor" / "lib.py").write_text("x = 1\n")
    ignore = project / ".gitignore"
    ignore.write_text("__pycache__/\nvendor\n")

    def agent(_: Briefing) -> dict[str, str]:
        ignore.write_text("__pycache__/\n")
        (project / "vendor" / "lib.py").write_text("x = 2\n")
        return {"mine.py": "y = 1\n"}

    outcome, after = in_copy(project, agent, checks=["test -f vendor/lib.py"])
    assert outcome.status == "success"
    assert after["vendor/lib.py"] == b"x = 2\n"
    assert not (project / "vendor").is_symlink()


def test_a_file_where_the_work_has_a_folder_is_a_conflict(project: Path) -> None:
    def agent(briefing: Briefing) -> dict[str, str]:
        if briefing.attempt > 1:
            return {"other/a.txt": "a\n"}
        (project / "new").write_text("a file\n")
        return {"new/a.txt": "a\n"}

    outcome, after = in_copy(project, agent)
    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert (after["new"], after["other/a.txt"]) == (b"a file\n", b"a\n")
