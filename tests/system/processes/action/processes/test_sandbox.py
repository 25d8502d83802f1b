"""The box: what commands may write and read, by each wall that this machine has."""

from __future__ import annotations

import logging
import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loki.action.processes import command_guard, landlock, sandbox
from loki.action.processes.command_guard import CommandGuard, Rules
from loki.action.processes.process import ProgramNotFound, run
from loki.action.processes.sandbox import Sandbox, Wall, has_own, tree_of, writable
from loki.base.error import UsageError
from loki.config import SandboxConfig

HAS_LANDLOCK = landlock.version() > 0
HAS_BWRAP = sandbox._bwrap_works(shutil.which("bwrap"))
WALLS = (
    pytest.param("landlock", marks=pytest.mark.skipif(not HAS_LANDLOCK, reason="no Landlock here")),
    pytest.param("bwrap", marks=pytest.mark.skipif(not HAS_BWRAP, reason="no bubblewrap here")),
)

DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
)


class Place:
    """A tree that may be written, and a home that may not."""

    def __init__(self, root: Path) -> None:
        self.tree, self.home = root / "tree", root / "home"
        for folder in (self.tree, self.home / ".ssh", self.home / "deep"):
            folder.mkdir(parents=True)
        (self.home / "letter.txt").write_text("dear")
        (self.home / ".ssh" / "key").write_text("private")

    def run(self, wall: Wall, code: str, *, network: bool = True, secret: bool = False) -> str:
        """What a program in the box prints; ``H`` is the home."""
        inside = Sandbox(wall, (str(self.tree), *DEVICES), (),
                     (str(self.home / ".ssh"),) if secret else (), network)  # fmt: skip
        words = [sys.executable, "-c", f"import os, shutil, socket\nH = {str(self.home)!r}\n{code}"]
        done = run(words, cwd=self.tree, box=inside, merge=True, timeout=60)
        return (
            done.output.decode().strip() if done.is_success else f"failed: {done.output.decode()}"
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


REFUSED = {
    "write": "open(f'{H}/letter.txt', 'w').write('x')",
    "append": "open(f'{H}/letter.txt', 'a').write('x')",
    "create": "open(f'{H}/new', 'w')",
    "remove": "os.unlink(f'{H}/letter.txt')",
    "remove a folder": "os.rmdir(f'{H}/deep')",
    "make a folder": "os.mkdir(f'{H}/x')",
    "link": "os.symlink('/', f'{H}/x')",
    "hard link": "open('mine', 'w'); os.link('mine', f'{H}/x')",
    "rename out": "open('mine', 'w'); os.rename('mine', f'{H}/letter.txt')",
    "rename in": "os.rename(f'{H}/letter.txt', 'mine')",
    "pipe": "os.mkfifo(f'{H}/x')",
    "socket": "socket.socket(socket.AF_UNIX).bind(f'{H}/x')",
    "through a link": "os.symlink(H, 'way'); open('way/letter.txt', 'w')",
    "through dots": "open('../home/letter.txt', 'w')",
    "by a child": "import subprocess, sys; subprocess.run(['sh', '-c', f'echo x > {H}/letter.txt'], check=True)",
    "by a daemon": (
        "pid = os.fork()\nif not pid:\n os.setsid()\n try:\n  open(f'{H}/letter.txt', 'w')\n  os._exit(0)\n"
        " except OSError:\n  os._exit(7)\nassert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0"
    ),
    "truncate": "os.truncate(f'{H}/letter.txt', 0)",
    "truncate on opening": "os.open(f'{H}/letter.txt', os.O_RDONLY | os.O_TRUNC)",
}


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("what", REFUSED)
def test_nothing_outside_is_written(place: Place, wall: Wall, what: str) -> None:
    if "truncate" in what and wall == "landlock" and landlock.version() < landlock.TRUNCATE_SINCE:
        pytest.skip("this kernel's Landlock does not know it")
    before = contents(place.home)
    assert place.run(wall, REFUSED[what]).startswith("failed")
    assert contents(place.home) == before


@pytest.mark.parametrize("wall", WALLS)
def test_a_check_that_deletes_the_home_folder(place: Place, wall: Wall) -> None:
    before = contents(place.home)
    assert place.run(wall, "shutil.rmtree(H, ignore_errors=True); print('done')") == "done"
    assert contents(place.home) == before


ALLOWED = {
    "write": "open('a', 'w').write('x'); print(open('a').read())",
    "rename between folders": (
        "os.mkdir('a'); os.mkdir('b'); open('a/x', 'w').write('x'); os.rename('a/x', 'b/x'); "
        "os.link('b/x', 'a/y'); print(open('a/y').read())"
    ),
    "read outside": "print(open(f'{H}/letter.txt').read()[:0] + 'x')",
    "devices": "open('/dev/null', 'w').write('y'); n = f'/dev/shm/loki-test-{os.getpid()}'; "
    "open(n, 'w'); os.unlink(n); print('x')",
    "terminal": "import pty; a, b = pty.openpty(); os.write(b, b'x'); print(os.read(a, 1).decode())",
    "processes": "import multiprocessing as m; q = m.get_context('fork').Queue(); q.put('x'); print(q.get())",
    "sockets": (
        "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); "
        "c.send(b'x'); print(s.accept()[0].recv(1).decode())"
    ),
    "remove": "os.makedirs('a/b'); shutil.rmtree('a'); print('x')",
}


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("what", ALLOWED)
def test_what_programs_need(place: Place, wall: Wall, what: str) -> None:
    assert place.run(wall, ALLOWED[what]) == "x"


@pytest.mark.parametrize("wall", WALLS)
def test_secrets_are_not_read(place: Place, wall: Wall) -> None:
    read = "print(open(f'{H}/.ssh/key').read())"
    assert place.run(wall, read) == "private"
    (place.tree.parent / "way").symlink_to(place.home)
    (place.home / "up").symlink_to("/")
    assert "private" not in place.run(wall, read, secret=True)
    assert place.run(wall, "print(open(f'{H}/letter.txt').read())", secret=True) == "dear"
    assert place.run(wall, "open('a', 'w').write('x'); print(open('a').read())", secret=True) == "x"


@pytest.mark.parametrize("wall", WALLS)
def test_a_secret_in_a_large_folder_is_not_read(place: Place, wall: Wall) -> None:
    """What may be read beside it is more than an argument can hold."""
    chance = random.Random(7)
    for number in range(2000):
        (place.home / f"{number}-{chance.getrandbits(600):x}").touch()
    assert "private" not in place.run(wall, "print(open(f'{H}/.ssh/key').read())", secret=True)
    assert place.run(wall, "print(open(f'{H}/letter.txt').read())", secret=True) == "dear"


@pytest.mark.parametrize("wall", WALLS)
def test_the_command_gets_no_descriptor_of_ours(place: Place, wall: Wall) -> None:
    code = "print(*sorted(one for one in os.listdir('/proc/self/fd') if int(one) > 3))"
    assert place.run(wall, code, secret=True) == ""


@pytest.mark.parametrize("wall", WALLS)
def test_without_a_network(place: Place, wall: Wall) -> None:
    if wall == "landlock" and landlock.version() < landlock.NETWORK_SINCE:
        pytest.skip("this kernel's Landlock does not know networks")
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5); print('in')"
        assert place.run(wall, code) == "in"
        assert "in" not in place.run(wall, code, network=False).splitlines()


@pytest.mark.skipif(landlock.version() < landlock.SCOPE_SINCE, reason="no such Landlock here")
def test_nobody_outside_is_signalled(place: Place) -> None:
    code = f"os.kill({os.getpid()}, 0)"
    assert "PermissionError" in place.run("landlock", code)


@pytest.mark.parametrize("wall", WALLS)
def test_a_program_that_is_not_there(place: Place, wall: Wall) -> None:
    with pytest.raises(ProgramNotFound, match="no such program"):
        run(["no-such-program"], cwd=place.tree, box=Sandbox(wall, (str(place.tree),)))


@pytest.mark.skipif(not HAS_LANDLOCK, reason="no Landlock here")
@pytest.mark.parametrize("known", range(1, 7))
def test_older_versions_of_landlock(place: Place, known: int) -> None:
    """What an older kernel offers is used as far as it goes."""
    if known > landlock.version():
        pytest.skip("this kernel is older")
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(landlock.__file__).parent)!r})
import landlock
landlock.restrict({{"write": [{str(place.tree)!r}], "read": None, "network": True}}, {known})
def can(*call):
    try:
        call[0](*call[1:])
        return 1
    except OSError:
        return 0
H = {str(place.home)!r}
os.makedirs("a"), os.makedirs("b"), open("a/x", "w")
print(can(open, H + "/letter.txt", "w"), can(os.unlink, H + "/letter.txt"), can(os.rename, "a/x", "b/x"),
      can(os.truncate, H + "/letter.txt", 1))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=place.tree, capture_output=True, text=True,
                          check=True)  # fmt: skip
    across, cut = known >= landlock.REFER_SINCE, known < landlock.TRUNCATE_SINCE
    assert done.stdout.split() == ["0", "0", str(int(across)), str(int(cut))]


# --- where ------------------------------------------------------------------------------------------


def test_where_tools_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = {"GOMODCACHE": str(tmp_path / "mod")}
    (tmp_path / ".npm").mkdir()
    found = writable(
        (str(tmp_path / "tree"),), (), ["sh", "-c", "cd x && go test"], "check", environment
    )
    assert str(tmp_path / "mod") in found, "made, as the command names the tool"
    assert str(tmp_path / ".npm") in found
    assert str(tmp_path / ".cache") in found
    assert not (tmp_path / ".m2").exists(), "no tool of it is called"
    assert str(tmp_path) not in found
    assert "/" not in found
    assert "/dev" not in found
    (tmp_path / ".codex").mkdir()
    for purpose, there in (("check", False), ("agent", True)):
        found = writable((), (), ["codex", "exec"], purpose, {})  # type: ignore[arg-type]
        assert (str(tmp_path / ".codex") in found) is there


def test_what_runs_inside_does_not_say_where_the_tree_is(tmp_path: Path) -> None:
    copy, home = tmp_path / "copy", tmp_path / "home"
    copy.mkdir()
    home.mkdir()
    (copy / ".git").write_text(f"gitdir: {home}\n")
    (copy / "node_modules").symlink_to(home)
    guard = CommandGuard(Rules(tmp_path / "project", tmp_path / "project" / ".loki"), is_copy=True)
    inside = guard.box(["make"], copy) if sandbox.wall() else None
    assert inside is None or str(home) not in inside.write


def test_the_tree_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "home" / "work" / "part"
    project.mkdir(parents=True)
    assert tree_of(project) == (str(project),)
    subprocess.run(["git", "init", "-q"], cwd=project.parent, check=True)
    assert str(project.parent) in tree_of(project)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "home", check=True)
    lone = tmp_path / "home" / "other"
    lone.mkdir()
    assert tree_of(lone) == (str(lone),), "a home folder under git is no project"


def test_agents_with_a_box_of_their_own() -> None:
    assert has_own(["codex", "exec", "--sandbox", "workspace-write"])
    assert not has_own(["codex", "exec", "--sandbox", "danger-full-access"])
    assert not has_own(["claude"])


# --- modes ------------------------------------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any wall."""
    monkeypatch.setattr(command_guard, "wall", lambda **_: None)
    monkeypatch.setattr(command_guard, "_warned", set())


def guarded(tmp_path: Path, **said: object) -> CommandGuard:
    return CommandGuard(
        Rules(tmp_path, tmp_path / ".loki"), sandbox=SandboxConfig.model_validate(said)
    )


@pytest.mark.usefixtures("bare")
def test_required_and_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bubblewrap"):
        guarded(tmp_path, mode="required").box(["make"], tmp_path)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize(("user", "warns"), [(0, True), (1000, False)])
def test_root_without_a_box_is_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: str,
    user: int, warns: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "getuid", lambda: user)
    guard = guarded(tmp_path, mode=mode)
    assert guard.box(["make"], tmp_path) is None
    assert guard.box(["make"], tmp_path) is None
    assert caplog.text.count("loki runs as root") == int(warns), "once is enough"


def test_off(tmp_path: Path) -> None:
    assert guarded(tmp_path, mode="off").box(["make"], tmp_path) is None


# --- what was refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "sh: 1: cannot create {}: Permission denied",
        "rm: cannot remove '{}': Permission denied",
        "PermissionError: [Errno 13] Permission denied: '{}'",
        "OSError: [Errno 30] Read-only file system: '{}'",
        "Error: EACCES: permission denied, open '{}'",
        "open {}: permission denied",
        "java.nio.file.AccessDeniedException: {}",
        "java.io.FileNotFoundException: {} (Permission denied)",
        "error: failed to create directory `{}`\n\nCaused by:\n  Permission denied (os error 13)",
        "[ERROR] Could not create local repository at {} -> [Help 1]",
        "touch: cannot touch '{}': Read-only file system",
    ],
)
def test_refusals_are_recognized(tmp_path: Path, line: str) -> None:
    (tmp_path / "tree").mkdir()
    inside = Sandbox("landlock", (str(tmp_path / "tree"),))
    outside = str(tmp_path / "home" / "x")
    output = f"1 passed\n{line.format(outside)}\n"
    assert sandbox.sandbox_denials(output, str(tmp_path / "tree"), inside) == (outside,)
    # What it may write, and what nobody may, the box has not refused.
    assert not sandbox.sandbox_denials(line.format(tmp_path / "tree" / "a"), "/", inside)
    assert not sandbox.sandbox_denials(line.format("/proc/version"), "/", inside)
    assert not sandbox.sandbox_denials(f"reading {outside}", "/", inside)


def test_how_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    said = sandbox.denial_advice(("/home/ann/.tool/cache/x",), Sandbox("landlock", ()))
    assert '[sandbox] write = ["~/.tool"]' in said
    assert '"~/.config/tool"' in sandbox.denial_advice(
        ("/home/ann/.config/tool/x",), Sandbox("landlock", ())
    )


def test_any_output_is_read(tmp_path: Path) -> None:
    inside = Sandbox("landlock", (str(tmp_path),))
    long = "permission denied " + "/x" * 100_000 + "\n" * 10_000 + "EACCES\n" * 10_000
    sandbox.sandbox_denials(long, "/", inside)
    traceback = (
        'File "/usr/lib/python3/shutil.py", line 7, in x\n  os.unlink(n)\n'
        "PermissionError: [Errno 13] Permission denied: 'letter.txt'\n"
    )
    assert sandbox.log_denials(traceback.encode(), "x", "/", inside) == sandbox.MAYBE
    assert (
        sandbox.log_denials(b"\xff\x00 permission denied '/\x00\xff'", "x", "/", inside)
        == sandbox.MAYBE
    )


def test_it_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inside = Sandbox("landlock", (str(tmp_path / "tree"),))
    output = f"touch: cannot touch '{tmp_path}/home': Permission denied".encode()
    with caplog.at_level(logging.WARNING):
        assert "[sandbox] write" in sandbox.log_denials(output, "touch", "/", inside)
        assert sandbox.log_denials(output, "touch", "/", inside)
    assert caplog.text.count("The sandbox refused") == 1
