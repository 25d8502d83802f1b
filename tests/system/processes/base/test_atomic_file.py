"""Files are whole, lines that were acknowledged are there, and only one writes at a time: with processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

from loki.base import atomic_file


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


def test_many_processes_append_and_nothing_is_lost(tmp_path: Path) -> None:
    """Four processes, and one that is killed again and again: every acknowledged line is there."""
    path = tmp_path / "log"
    script = (
        "import sys; from loki.base import atomic_file\n"
        "for n in range(int(sys.argv[3])):\n"
        "    atomic_file.append_line(sys.argv[1], f'{sys.argv[2]} {n}'.encode())\n"
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
