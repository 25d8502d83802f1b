"""Locks: one holder at a time, whoever dies or forks; a sign of life as long as somebody has it."""

import os
import threading
from pathlib import Path

import pytest

from loki.base import locks
from loki.base.error import StoreError


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    """Threads share a lock like processes do; who waits too long is told; another thread may free it."""
    path = tmp_path / "x"
    inside, most, guard = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with locks.hold(path):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    held = locks.hold(path)
    held.__enter__()
    with pytest.raises(StoreError, match="held its lock"), locks.hold(path, timeout=0.01):
        pass
    other = threading.Thread(target=held.__exit__, args=(None, None, None))
    other.start()
    other.join()
    with locks.hold(path, timeout=0.01):
        pass


def test_whoever_wants_it_only_while_it_is_free_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert not locks.is_held(path)
    with locks.hold_if_free(path) as is_ours:
        assert is_ours
        assert locks.is_held(path)
        with locks.hold_if_free(path) as is_mine:
            assert not is_mine
    assert not locks.is_held(path)
    with locks.hold_if_free(tmp_path / "none/x") as is_ours:
        assert not is_ours, "there can be no lock where there is no folder"
    assert not locks.is_held(tmp_path / "none/x")


def test_the_lock_of_an_open_file_stays_with_whoever_has_it_open(tmp_path: Path) -> None:
    """A child that has inherited it, too; of those who only look, several may at once."""
    (tmp_path / "x").touch()
    first, second, third = (os.open(tmp_path / "x", os.O_RDWR) for _ in range(3))
    inherited = os.dup(first)
    assert locks.take(first)
    os.close(first)
    assert not locks.take(second, timeout=0.01, poll=0.001)
    os.close(inherited)
    assert locks.take(second, shared=True)
    assert locks.take(third, shared=True)
    os.close(second)
    assert locks.take(third, timeout=None)
    os.close(third)
