"""Whole runs whose checks and agents reach for what is not theirs; and real tools, which must not notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import loki
from loki.action.processes import sandbox
from loki.action.processes.process import run
from loki.action.processes.sandbox import tree_of, wall, writable
from loki.agents.command_agent import CommandAgent
from support.project import CHECK, RIGHT, make_project

pytestmark = pytest.mark.skipif(wall() is None, reason="neither Landlock nor bubblewrap here")

HAS_BWRAP = sandbox._bwrap_works(shutil.which("bwrap"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder outside of everything that may be written, though it is a test's."""
    folder, temporary = tmp_path / "home", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    (folder / "letter.txt").write_text("dear")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(sandbox, "knowledge", lambda _: {**known, "temporary": ["$TMPDIR"]})
    return folder


known = sandbox.knowledge("sandbox.yml")


def test_a_check_that_deletes_a_file_of_the_home_folder(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = make_project(home / "calc")
    (project / "evil.py").write_text(f"import os\nos.unlink({str(home / 'letter.txt')!r})\n")
    with loki.Workspace(project).task(
        "x", checks=[f"{sys.executable} evil.py"], max_attempts=1
    ) as task:
        outcome = task.run(lambda _: {"calc.py": RIGHT})
    assert (home / "letter.txt").read_text() == "dear"
    assert "The sandbox refused" in caplog.text
    assert "[sandbox] write" in caplog.text
    assert outcome.status == "escalated", "no attempt of an agent mends that"
    page = (project / ".loki" / str(outcome.page)).read_text()
    assert "The sandbox refused" in page


def test_what_the_configuration_allows(home: Path) -> None:
    project = make_project(home / "calc")
    (project / ".loki").mkdir(exist_ok=True)
    (project / ".loki" / "config.toml").write_text('[sandbox]\nwrite = ["~/letters"]\n')
    (project / "write.py").write_text("import os; open(os.path.expanduser('~/letters/a'), 'w')\n")
    with loki.Workspace(project).task("x", checks=[f"{sys.executable} write.py"]) as task:
        assert task.run(lambda _: {"calc.py": RIGHT}).status == "success"
    assert (home / "letters" / "a").exists()


def test_a_copy_that_loki_makes_is_run_as_the_project_says(home: Path) -> None:
    """What shows that a feature is there runs in a copy: with what the project lets checks write."""
    project = make_project(home / "calc", git=True)
    (project / ".loki").mkdir()
    (project / ".loki" / "config.toml").write_text('[sandbox]\nwrite = ["~/letters"]\n')
    (project / "calc.py").write_text(RIGHT)
    (project / "tests" / "conftest.py").write_text(
        "import os\n\nopen(os.path.expanduser('~/letters/a'), 'a').close()\n"
    )
    change = {
        "calc.py": f"{RIGHT}\n\ndef sub(a, b):\n    return a - b\n",
        "tests/test_sub.py": "from calc import sub\n\n\ndef test_sub():\n    assert sub(5, 3) == 2\n",
    }
    with loki.Workspace(project).task("add sub", kind="feature", checks=[CHECK]) as task:
        outcome = task.run(lambda _: change)
    assert outcome.status == "success", outcome.reason


def test_off_is_off(home: Path) -> None:
    project = make_project(home / "calc")
    (project / ".loki").mkdir(exist_ok=True)
    (project / ".loki" / "config.toml").write_text('[sandbox]\nmode = "off"\n')
    (project / "evil.py").write_text(f"open({str(home / 'letter.txt')!r}, 'w').write('x')\n")
    with loki.Workspace(project).task("x", checks=[f"{sys.executable} evil.py"]) as task:
        assert task.run(lambda _: {"calc.py": RIGHT}).status == "success"
    assert (home / "letter.txt").read_text() == "x"


def test_an_agent_that_reaches_out(home: Path) -> None:
    """It works in a copy: neither the home folder nor the project itself is its own."""
    project = make_project(home / "calc")
    script = f"echo x > {home}/letter.txt; echo x > {project}/calc.py; echo x > note.txt; true"
    with loki.Workspace(project).task("x", checks=["false"], max_attempts=1) as task:
        task.run(CommandAgent(["sh", "-c", script]))
    assert (home / "letter.txt").read_text() == "dear"
    assert (project / "calc.py").read_text() != "x\n"
    assert (project / "note.txt").read_text() == "x\n"


def test_a_persons_edit_while_nothing_inside_could_is_left_alone(home: Path) -> None:
    """What an agent in a copy cannot reach, somebody else changed."""
    project = make_project(home / "calc")
    config = project / ".loki" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("[loop]\nmax_retries = 1\n")
    workspace = loki.Workspace(project)
    copy = home / "copy"
    copy.mkdir()
    with workspace.command_guard.over(["agent"], copy, "agent") as inside:
        assert inside is not None
        config.write_text("[loop]\nmax_retries = 2\n")
    assert "2" in config.read_text()


@pytest.mark.skipif(not HAS_BWRAP, reason="needs bubblewrap for a machine that may be lost")
def test_a_check_that_deletes_everything(tmp_path: Path) -> None:
    """What ``rmtree("/")`` comes to, on a machine where all but two folders in memory is read-only."""
    script = f"""
import pathlib, sys
sys.path[:0] = {sys.path!r}
import loki
from loki.action.processes.sandbox import Sandbox, wall, tree_of
from loki.action.processes.process import run
pathlib.Path("/mnt/victim").write_text("alive")
tree = pathlib.Path("/media/tree")
tree.mkdir()
evil = "import shutil; [shutil.rmtree(f'/{{one}}', ignore_errors=True) for one in "
evil += "('etc', 'mnt', 'media', 'srv', 'usr/local', 'bin')]; print('done')"
done = run([sys.executable, "-c", evil], cwd=tree, box=Sandbox("landlock", tree_of(tree)), timeout=300)
print(done.output, pathlib.Path("/mnt/victim").read_text(), list(tree.iterdir()))
"""
    if wall() != "landlock":
        pytest.skip("bubblewrap is what is around it here")
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/mnt", "--tmpfs", "/media",
             "--", sys.executable, "-c", script]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert "done" in done.stdout, done.stderr
    assert "alive []" in done.stdout


# --- real tools -------------------------------------------------------------------------------------

PROJECTS = {
    "pytest": ({"test_a.py": "def test_a(tmp_path):\n    (tmp_path / 'x').write_text('a')\n"},
               [sys.executable, "-m", "pytest", "-q"]),
    "node": ({"a.test.js": "require('node:test')('a', () => require('fs').writeFileSync('x', 'x'))\n"},
             ["node", "--test"]),
    "npm": ({"package.json": '{"name": "x", "scripts": {"test": "node --version"}}'}, ["npm", "test"]),
    "go": ({"go.mod": "module x\n\ngo 1.18\n",
            "a_test.go": 'package x\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n'},
           ["go", "test", "./..."]),
    "cargo": ({"Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
               "src/lib.rs": "#[test]\nfn a() {}\n"}, ["cargo", "test", "--offline"]),
    "make": ({"Makefile": "test: a\n\t./a\na: a.c\n\tcc -o a a.c\n", "a.c": "int main(void) { return 0; }\n"},
             ["make", "test"]),
    "git": ({"a": "a"}, ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit",
                         "--allow-empty", "-m", "x"]),
}  # fmt: skip


@pytest.mark.parametrize("tool", PROJECTS)
def test_real_tools_pass(tool: str, home: Path) -> None:
    """With a home folder that has never seen them."""
    files, words = PROJECTS[tool]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    tree = home / "project"
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    kind = wall()
    assert kind is not None
    real = os.path.expanduser("~" + os.environ.get("USER", "root"))
    toolchains = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or f"{real}/.rustup"}
    inside = sandbox.Sandbox(kind, writable(tree_of(tree), (), words, "check", os.environ))
    done = run(words, cwd=tree, box=inside, merge=True, timeout=300, environment=toolchains)
    assert done.is_success, done.output.decode()
