"""Jobs in threads: each is under way once, is waited for, and what it raises is raised."""

from __future__ import annotations

import threading

import pytest

from loki.jobs.job_pool import JobPool


def test_a_job_is_under_way_until_somebody_looks() -> None:
    pool, gate = JobPool(2, "test", threading.Event()), threading.Event()
    pool.start("a", gate.wait)
    assert "a" in pool
    assert not pool.has_ended()
    gate.set()
    pool.wait()
    assert "a" not in pool
    pool.close()


def test_what_a_job_raises_is_raised_where_it_is_waited_for() -> None:
    pool = JobPool(1, "test", threading.Event())

    def fails() -> None:
        raise ZeroDivisionError

    pool.start("a", fails)
    with pytest.raises(ZeroDivisionError):
        pool.wait()
    assert "a" not in pool
    pool.close()


def test_what_is_cancelled_has_ended() -> None:
    cancelled = threading.Event()
    pool = JobPool(1, "test", cancelled)
    pool.start("a", cancelled.wait)
    pool.cancel()
    assert pool.has_ended()
    pool.close()
