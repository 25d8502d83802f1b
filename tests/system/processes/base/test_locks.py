"""Locks: one holder at a time, whoever dies or forks; a sign of life as long as somebody has it: with processes."""

import os
from pathlib import Path

from loki.base import locks


def test_a_forked_child_does_not_keep_a_lock(tmp_path: Path) -> None:
    """It would hold it as long as it lives, whoever let go of it."""
    log = tmp_path / "log"
    ready, go = os.pipe(), os.pipe()
    with locks.hold(log):
        child = os.fork()
        if child == 0:
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
    try:
        with locks.hold(log, timeout=0):
            pass
    finally:
        os.write(go[1], b"x")
        os.waitpid(child, 0)


def test_the_lock_of_a_process_is_no_childs(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    handle = os.open(tmp_path / "x", os.O_RDWR)
    assert locks.take_for_process(handle)
    child = os.fork()
    if child == 0:
        os._exit(0 if locks.take_for_process(handle) else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    os.close(handle)
