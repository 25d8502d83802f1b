"""The seam between C++ and Python: lifetimes, threads, what is borrowed."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

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


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_borrowed_buffer_is_given_back(kind: type) -> None:
    data = bytearray(TEXT.encode())
    loki.recognize(kind(data))
    data.extend(b"resizing fails while a buffer is exported")


def test_references_are_not_leaked() -> None:
    text = "x" * 10_000
    before = sys.getrefcount(text)
    for _ in range(100):
        loki.recognize(text)
        loki.normalize(text)
        loki.clean(text)
    assert sys.getrefcount(text) == before


def test_many_threads_give_what_one_gives() -> None:
    texts = [f"E   AssertionError: part {n} is {n * n}\n" * (n % 40 + 1) for n in range(64)]
    alone = [(loki.recognize(t), loki.normalize(t), loki.fingerprint(t)) for t in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(
            pool.map(lambda t: (loki.recognize(t), loki.normalize(t), loki.fingerprint(t)), texts)
        )
    assert together == alone


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


@pytest.mark.parametrize("wrong", [None, 3, ["x"], object()])
def test_what_is_no_text_is_a_type_error(wrong: object) -> None:
    for function in (loki.recognize, loki.clean, loki.normalize, loki.fingerprint):
        with pytest.raises(TypeError, match="expected str or a bytes-like object"):
            function(wrong)  # type: ignore[arg-type]


def test_the_collector_may_come_while_an_object_is_made() -> None:
    """In a process of its own: what this is about is a crash. The first of a subclass is special."""
    code = (
        "import gc, loki\n"
        "gc.set_threshold(1)\n"
        "for n in range(50): type(f'B{n}', (loki.Breaker,), {})()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
