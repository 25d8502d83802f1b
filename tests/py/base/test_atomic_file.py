"""Files are whole, lines that were acknowledged are there, and only one writes at a time."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from loki.base import atomic_file
from loki.base.error import StoreError


def test_replaces_whole_and_private(tmp_path: Path) -> None:
    """New folders are 0700, the file has the mode asked for, whatever the umask; nothing else is left."""
    path = tmp_path / "a" / "b" / "state.json"
    old = os.umask(0o077)
    try:
        atomic_file.write_atomic(path, b"one")
        atomic_file.write_atomic(path, b"two", mode=0o640)
    finally:
        os.umask(old)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["state.json"]


def test_a_writer_killed_at_any_call_leaves_old_or_new(tmp_path: Path) -> None:
    """SIGKILL before each system call of a replacement: the file is one of the two, never a mix."""
    path, seen = tmp_path / "state", set()
    for number in range(1, 100):
        atomic_file.write_atomic(path, b"old" * 1000)
        if not _killed_at(number, lambda: atomic_file.write_atomic(path, b"new" * 1000)):
            break
        content = path.read_bytes()
        assert content in {b"old" * 1000, b"new" * 1000}
        seen.add(content)
    assert len(seen) == 2
    assert number > 4


def _killed_at(number: int, work: "object") -> bool:
    """Fork, and kill the child at its n-th system call that could matter; whether it got there."""
    child = os.fork()
    if child == 0:
        left = number

        def watch(event: str, _: object) -> None:
            nonlocal left
            if event in {"open", "os.rename", "os.remove", "os.mkdir"}:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        for name in ("write", "fsync", "replace"):
            original = getattr(os, name)
            setattr(os, name, lambda *a, _f=original, **k: (watch("open", a), _f(*a, **k))[1])  # type: ignore[func-returns-value]
        try:
            work()  # type: ignore[operator]
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A folder that cannot be written, or is a file, is one sentence; nothing is lost."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="could not create the folder .*not a folder|Not a dir"):
        atomic_file.write_atomic(tmp_path / "file" / "below", b"data")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="could not write .*folder"):
        atomic_file.write_atomic(tmp_path / "folder", b"data")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    """What a dead writer left unfinished is ended before the next line; both can be read."""
    path = tmp_path / "attempts.jsonl"
    atomic_file.append_line(path, b"one")
    with path.open("ab") as torn:
        torn.write(b'{"tor')
    assert list(atomic_file.scan_lines(path)) == [b"one\n", b'{"tor']
    atomic_file.append_line(path, b"two")
    assert list(atomic_file.scan_lines(path)) == [b"one\n", b'{"tor\n', b"two\n"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_file_is_no_lines(tmp_path: Path) -> None:
    """A file that nobody wrote yet has no lines; a line cannot hold a line feed."""
    assert list(atomic_file.scan_lines(tmp_path / "none")) == []
    with pytest.raises(ValueError, match="line feed"):
        atomic_file.append_line(tmp_path / "x", b"a\nb")


def test_a_full_disk_takes_no_half_line() -> None:
    """Where the disk is full the caller is told."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with pytest.raises(OSError, match="No space"), open("/dev/full", "wb", buffering=0) as full:
        atomic_file.write_all(full.fileno(), b"x")


def test_many_processes_append_and_nothing_is_lost(tmp_path: Path) -> None:
    """Four processes, and one that is killed again and again: every acknowledged line is there."""
    path = tmp_path / "log"
    script = (
        "import sys; from loki.base import file\n"
        "for n in range(int(sys.argv[3])):\n"
        "    file.append_line(sys.argv[1], f'{sys.argv[2]} {n}'.encode())\n"
        "    print(n, flush=True)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), name, "40"], stdout=-1)
        for name in "abc"
    ]
    victim = subprocess.Popen(
        [sys.executable, "-c", script, str(path), "v", "100000"], stdout=subprocess.PIPE
    )
    assert victim.stdout
    acknowledged = [victim.stdout.readline() for _ in range(10)]
    victim.kill()
    acknowledged += victim.stdout.readlines()
    victim.stdout.close()
    victim.wait()
    for writer in writers:
        writer.communicate(timeout=60)
    lines = [line.rstrip(b"\n") for line in atomic_file.scan_lines(path)]
    for name in "abc":
        assert [f"{name} {n}".encode() for n in range(40)] == [
            line for line in lines if line.startswith(name.encode())
        ]
    whole = [a for a in acknowledged if a.endswith(b"\n")]
    assert {b"v " + a.strip() for a in whole} <= set(lines)


def test_many_processes_make_one_folder(tmp_path: Path) -> None:
    """Whoever comes second finds the folder that the first has made."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(atomic_file.make_folder, [tmp_path / "a" / "b" / "c"] * 8)
    assert (tmp_path / "a" / "b" / "c").is_dir()
