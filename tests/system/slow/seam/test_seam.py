"""The seam between C++ and Python: lifetimes, threads, what is borrowed: what takes its time."""

from __future__ import annotations

import gc
import sys
import threading

import loki

TEXT = "app.py:1: error: Name 'x' is not defined  [name-defined]\n" * 200


def test_results_outlive_what_they_came_from() -> None:
    text = bytearray(TEXT.encode())
    failure = loki.recognize(bytes(text))
    match = failure.match
    del text
    patterns = loki.PatternSet.loads(
        "version: 2\npatterns:\n  - {id: flux, signals: [{word: flux}], strategy: escalate, description: d}\n"
    )
    found = patterns.match("no flux")
    del patterns
    gc.collect()
    assert failure.path == "app.py"
    assert match is not None
    assert found[0].pattern == "flux"


def test_the_interpreter_lock_is_released_for_large_texts() -> None:
    """Another thread runs while a large text is recognized."""
    large = TEXT * 400
    ran, stop = 0, threading.Event()

    def count() -> None:
        nonlocal ran
        while not stop.wait(1e-6):  # gives the lock up and asks for it again
            ran += 1

    old = sys.getswitchinterval()
    # Longer than the call: without a release the other thread could not run in its middle.
    sys.setswitchinterval(1000)
    thread = threading.Thread(target=count)
    try:
        thread.start()
        before = ran
        loki.recognize(large)
        during = ran - before
        stop.set()
    finally:
        sys.setswitchinterval(old)
        stop.set()
        thread.join()
    assert during > 0
