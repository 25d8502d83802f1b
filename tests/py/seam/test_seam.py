"""The seam between C++ and Python: lifetimes, threads, what is borrowed."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import loki

TEXT = "app.py:1: error: Name 'x' is not defined  [name-defined]\n" * 200


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


@pytest.mark.parametrize("wrong", [None, 3, ["x"], object()])
def test_what_is_no_text_is_a_type_error(wrong: object) -> None:
    for function in (loki.recognize, loki.clean, loki.normalize, loki.fingerprint):
        with pytest.raises(TypeError, match="expected str or a bytes-like object"):
            function(wrong)  # type: ignore[arg-type]
