"""A command-line agent works in a copy; what it leaves there, and only that, is its change."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from loki.action.agent_protocol import Briefing
from loki.action.changes.change import Change, Edit
from loki.action.changes.forbidden_changes import refusals
from loki.action.changes.journal import Journal
from loki.action.changes.tree import Tree
from loki.agents.command_agent import CommandAgent, ProjectTouched
from loki.base.error import AgentError, UsageError


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scratch folders go here, so that a test can see that none is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(params=["git", "plain"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a\n")
    (root / ".gitignore").write_text("*.log\n")
    if request.param == "git":
        script = "git init -q && git add -A && git -c user.name=A -c user.email=a commit -qm first"
        subprocess.run(script, shell=True, cwd=root, check=True)
    (root / "src" / "a.py").write_text("uncommitted\n")
    (root / "untracked.txt").write_text("untracked\n")
    return root


def briefing(root: Path, text: str = "Do it") -> Briefing:
    return Briefing(text, "task-1", 2, root)


def shell(script: str, **options: object) -> CommandAgent:
    return CommandAgent(["sh", "-c", script], **options)  # type: ignore[arg-type]


def strays(temporary: Path) -> list[Path]:
    return [path for parent in temporary.iterdir() for path in parent.iterdir()]


def test_the_difference_is_its_change(project: Path, temporary: Path) -> None:
    """It sees uncommitted and untracked files, gets the briefing, and the project stays as it was."""
    before = Tree.scan(project)
    agent = shell(
        "cat > briefing.txt; cat src/a.py untracked.txt > seen.txt; rm src/a.py; chmod +x "
        "untracked.txt; ln -s seen.txt link; echo $LOKI_TASK $LOKI_ATTEMPT; echo; echo Done it."
    )
    proposal = agent.propose(briefing(project))
    seen = before.entries
    assert proposal.change.edits == (
        Edit("briefing.txt", b"Do it", None, "file"),
        Edit("link", b"seen.txt", None, "symlink"),
        Edit("seen.txt", b"uncommitted\nuntracked\n", None, "file"),
        Edit("src/a.py", None, seen["src/a.py"].hash),
        Edit("untracked.txt", b"untracked\n", seen["untracked.txt"].hash, "executable"),
    )
    assert proposal.description == "task-1 2\nDone it."
    assert proposal.agent == "sh"
    assert not before.difference(Tree.scan(project))
    assert strays(temporary) == []


def test_the_whole_way(project: Path, tmp_path: Path) -> None:
    """Proposed, checked, applied, undone."""
    before = Tree.scan(project)
    change = (
        shell("echo new > src/a.py; mkdir -p x/y; echo z > x/y/z").propose(briefing(project)).change
    )
    assert refusals(change, project, before) == ()
    journal = Journal(project / ".loki" / "tasks" / "t" / "undo", project)
    journal.apply(change)
    assert (project / "src" / "a.py").read_text() == "new\n"
    assert not journal.undo().conflicts
    assert not before.difference(Tree.scan(project))
    assert not (project / "x").exists()


def test_nothing_done_is_the_empty_change(project: Path) -> None:
    """Exit code 0 and no difference: nothing more to change."""
    assert (
        shell("touch src/a.py; echo x > cache.pyc; mkdir empty")
        .propose(briefing(project))
        .change.is_empty
    )


@pytest.mark.parametrize("project", ["git"], indirect=True)
def test_it_can_look_at_the_history_and_break_it(project: Path) -> None:
    """Its git is a copy: commits, resets and a deleted .git change nothing but the difference."""
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=project)
    agent = shell(
        "git log --format=%s; git config user.name A; git config user.email a; echo b > b; "
        "git add -A; git commit -qm agent; git tag x; git config core.hooksPath /tmp"
    )
    proposal = agent.propose(briefing(project))
    assert proposal.description.startswith("first")
    assert proposal.change.paths == ("b",)
    assert subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=project) == head
    assert subprocess.check_output(["git", "tag"], cwd=project) == b""
    assert shell("rm -rf .git; echo c > c").propose(briefing(project)).change.paths == ("c",)


def test_briefing_as_an_argument(project: Path) -> None:
    """In place of the placeholder, wherever it is, or last; hostile text is still one word."""
    text = "it's $(rm -rf .) {briefing}\n`x`"
    placed = CommandAgent("sh -c 'printf %s \"$1\" > out' sh {briefing}")
    assert placed.propose(briefing(project, text)).change.edits[0].after == text.encode()
    inside = CommandAgent(["sh", "-c", "printf %s $1 > out", "sh", "--p={briefing}"])
    assert inside.propose(briefing(project)).change.edits[0].after == b"--p=Doit"
    last = CommandAgent(["sh", "-c", "printf %s $1 > out", "sh"], briefing="argument")
    assert last.propose(briefing(project, "x\0y")).change.edits[0].after == b"xy"


@pytest.mark.parametrize(
    ("script", "says", "retryable"),
    [
        (
            "echo partial > src/a.py; echo oh no >&2; exit 3",
            "exit code 3; it said last: oh no",
            True,
        ),
        ("kill -9 $$", "sh was ended by signal 9$", True),
        ("echo waiting; cat /dev/zero > /dev/null", "not done after 2 s; .*waiting", True),
    ],
)
def test_failures(project: Path, temporary: Path, script: str, says: str, retryable: bool) -> None:
    """A clear sentence with the end of its output; nothing of what it did counts."""
    before = Tree.scan(project)
    with pytest.raises(AgentError, match=says) as caught:
        shell(script, timeout="2s" if "zero" in script else "1m").propose(briefing(project))
    assert caught.value.retryable == retryable
    assert not before.difference(Tree.scan(project))
    assert strays(temporary) == []


def test_programs_that_are_not_there(project: Path) -> None:
    """Asking again would not help."""
    for command, says in [("no-such-agent", "no such program"), ("./no-agent", "no such file")]:
        with pytest.raises(AgentError, match=f"{says}") as caught:
            CommandAgent(command).propose(briefing(project))
        assert not caught.value.retryable
    with pytest.raises(UsageError, match="needs a shell"):
        CommandAgent("agent | tee log")
    with pytest.raises(UsageError, match="names no program"):
        CommandAgent([])


def test_a_script_of_the_project(project: Path) -> None:
    """Relative to the project, ignored by git or not."""
    for name in ("agent.sh", "agent.log"):
        (project / name).write_text("#!/bin/sh\necho x > made\n")
        (project / name).chmod(0o755)
        assert CommandAgent(f"./{name}").propose(briefing(project)).change.paths == ("made",)


def test_one_that_touches_the_project(project: Path) -> None:
    """loki stops and names the files, whether the agent failed or not."""
    target = shlex.quote(str(project))
    for script in (
        f"echo x > {target}/evil; rm {target}/src/a.py",
        f"echo y > {target}/evil; exit 1",
    ):
        with pytest.raises(ProjectTouched, match="evil") as caught:
            shell(script).propose(briefing(project))
        assert "evil" in caught.value.paths
        assert not caught.value.retryable
    assert (project / "evil").read_text() == "y\n"


def test_stopped(project: Path) -> None:
    """The run is being stopped: so is the agent."""
    asked = Briefing("Do it", "task-1", 1, project)
    ready = project.parent / "ready"
    os.mkfifo(ready)

    def stop() -> None:
        ready.read_bytes()
        asked.cancelled.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(AgentError, match="was stopped") as caught:
        shell(f"echo > {ready}; exec cat {project.parent}/ready").propose(asked)
    thread.join()
    assert not caught.value.retryable


def test_a_hostile_change_is_refused(project: Path) -> None:
    """Links that lead out come through as data, and are refused there."""
    change = (
        shell("ln -s /etc/passwd out; ln -s ../../x up; printf '\\377' > bad.py")
        .propose(briefing(project))
        .change
    )
    assert [refusal.path for refusal in refusals(change, project)] == ["bad.py", "out", "up"]


def test_an_edit_that_came_too_late(project: Path) -> None:
    """A person edits the same file after the agent has answered: the change is refused."""
    change = shell("echo agent > src/a.py").propose(briefing(project)).change
    (project / "src" / "a.py").write_text("person\n")
    (refusal,) = refusals(change, project)
    assert refusal.reason == "was changed meanwhile"


def test_scratch_folders_that_cannot_be_removed_easily(project: Path, temporary: Path) -> None:
    """Read-only folders, as module caches are, go too."""
    script = "mkdir -p ro/deep; echo x > ro/deep/x; chmod 500 ro/deep ro"
    assert shell(script).propose(briefing(project)).change.paths == ("ro/deep/x",)
    assert strays(temporary) == []


def test_a_killed_loki_leaves_no_folder_for_long(project: Path, temporary: Path) -> None:
    """The next agent removes it; one that is in use is left alone."""
    gate = project.parent / "gate"
    os.mkfifo(gate)
    code = (
        "import sys, tempfile\nfrom pathlib import Path\n"
        "from loki.action.agent_protocol import Briefing\nfrom loki.agents.command_agent import CommandAgent\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "CommandAgent(['sh', '-c', sys.argv[3]]).propose(Briefing('', 't', 1, Path(sys.argv[2])))\n"
    )
    script = f"echo > {gate}; exec cat {gate}"
    caller = subprocess.Popen([sys.executable, "-c", code, str(temporary), str(project), script])
    gate.read_bytes()
    (folder,) = strays(temporary)
    os.utime(folder, (1, 1))
    assert shell("true").propose(briefing(project)).change == Change.nothing()
    assert strays(temporary) == [folder], "in use"
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    shell("true").propose(briefing(project))
    assert strays(temporary) == []


def test_keys_reach_the_agent_unless_told_otherwise(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents need the keys of their models; a stricter list is honoured; the real path is not told."""
    monkeypatch.setenv("SOME_API_KEY", "k1")
    monkeypatch.setenv("OTHER_API_KEY", "k2")
    monkeypatch.setenv("PWD", str(project))
    script = "echo $SOME_API_KEY $OTHER_API_KEY $PWD"
    assert "k1 k2 " in shell(script).propose(briefing(project)).description
    said = shell(script, pass_environment=["SOME_*"]).propose(briefing(project)).description
    assert said.startswith("k1 /")
    assert str(project) + "\n" not in said + "\n"
