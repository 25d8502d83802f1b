"""What a broken or hostile definition file is told: one plain sentence at the right place each: what takes its time."""

from __future__ import annotations

import time

import pytest

from support.definition import HEAD, said_of


@pytest.mark.parametrize(
    "content",
    [
        "version: 2\npatterns: " + "{a: " * 1_000_000,
        "- " * 2_000_000,
        "&a " * 1_000_000,
        "a\n" * 2_000_000,
        "? " * 2_000_000,
        '"' + "\\n" * 2_000_000,
        HEAD + "    signals: [{regex: '" + "abc(" * 1_000_000 + "'}]",
        HEAD + "    signals:\n" + "      - {regex: 'abc(?=x)'}\n" * 30_000,
        "".join(f"key{i}: 1\n" for i in range(49_000)),
    ],
    ids=["maps", "entries", "anchors", "lines", "keys", "escapes", "regex", "regexes", "unknown"],
)
def test_the_largest_files_are_refused_within_seconds(content: str) -> None:
    """CPU seconds, with much room: what grows with the square of the size takes minutes."""
    begin = time.process_time()
    said_of(content)
    assert time.process_time() - begin < 10
