"""Templates of lines: what is one, whatever the order, the threads and the bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki

WORDS = [
    "read",
    "node",
    "failed",
    "for",
    "user",
    "ann",
    "bob",
    "12",
    "7.5s",
    "/tmp/x",
    "`q`",
    "a=b",
]
messages = st.lists(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join), max_size=40)


def partition(numbers: list[int]) -> list[frozenset[int]]:
    groups: dict[int, set[int]] = {}
    for index, number in enumerate(numbers):
        groups.setdefault(number, set()).add(index)
    return sorted((frozenset(group) for group in groups.values()), key=min)


@given(messages, st.randoms(use_true_random=False))
def test_the_order_of_the_lines_does_not_matter(lines: list[str], rng: random.Random) -> None:
    order = list(range(len(lines)))
    rng.shuffle(order)
    shuffled = loki.group([lines[i] for i in order])
    back = [0] * len(lines)
    for number, index in zip(shuffled, order, strict=True):
        back[index] = number
    assert partition(back) == partition(loki.group(lines))


@given(messages)
def test_threads_do_not_matter(lines: list[str]) -> None:
    assert loki.group(lines, threads=1) == loki.group(lines, threads=4)


@given(messages)
def test_equal_lines_are_one_template_numbered_by_appearance(lines: list[str]) -> None:
    numbers = loki.group(lines)
    assert len({line: n for line, n in zip(lines, numbers, strict=True)}) == len(set(lines))
    assert all(
        a == b
        for x, a in zip(lines, numbers, strict=True)
        for y, b in zip(lines, numbers, strict=True)
        if x == y
    )
    first_seen = list(dict.fromkeys(numbers))
    assert first_seen == sorted(first_seen) == list(range(len(first_seen)))


@given(st.lists(st.one_of(st.binary(max_size=60), st.text(max_size=60)), max_size=20))
def test_any_bytes_and_any_text_have_a_group(texts: list[bytes | str]) -> None:
    assert len(loki.group(texts)) == len(texts)


def test_messages_of_different_length_and_with_different_first_words() -> None:
    lines = [
        "10.0.0.1 lost nodes 1, 2 and 3 today",
        "host-17 lost nodes 4 today",
        "host-17 found nodes 4 today",
    ]
    assert loki.group(lines) == [0, 0, 1]


def test_a_message_that_came_once_stays_alone() -> None:
    common = [f"worker {i} finished its job" for i in range(100)]
    assert loki.group([*common, "worker pool cannot be started"])[-1] == 1


def test_str_and_bytes_are_the_same_message() -> None:
    assert loki.group(["größe 5", "größe 6".encode()]) == [0, 0]


def test_no_text() -> None:
    with pytest.raises(TypeError, match="expected str or a bytes-like object, found int"):
        loki.group(["a", 5])  # type: ignore[list-item]
