"""Files are whole, lines that were acknowledged are there, and only one writes at a time."""

import os
import stat
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
