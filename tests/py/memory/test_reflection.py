"""Reflections: short, kept a line each, the last three at hand."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from loki.memory.reflection import PART_LENGTH, SHOWN, Reflection, Reflections, as_reflection
from loki.stores.file_store import FileStore, ForgivingStore

FACTS = Reflection(
    "a type error", "context_expand", "wrote a.py", "TS2339", 4, "facts", "2026-04-04T12:00:00.000Z"
)


@pytest.fixture
def store(tmp_path: Path) -> ForgivingStore:
    return ForgivingStore(FileStore(tmp_path))


def test_the_facts_fill_in_what_an_agent_does_not_say() -> None:
    said = Reflection(why="the type is wider").on(FACTS, "claude")
    assert said == Reflection(
        "the type is wider",
        "context_expand",
        "wrote a.py",
        "TS2339",
        4,
        "claude",
        FACTS.timestamp,
    )
    assert Reflection().on(FACTS, "claude").why == FACTS.why


@pytest.mark.parametrize("answer", [None, "", "  \n", 42, Reflection(), b"why", ["why"], {}])
def test_what_is_no_reflection(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"expected text or a loki\.Reflection"):
        as_reflection(answer)


def test_text_says_why() -> None:
    assert as_reflection("it was late") == Reflection(why="it was late")
    assert as_reflection(Reflection(instead="sleep")) == Reflection(instead="sleep")


def test_the_last_three_are_at_hand_after_a_restart(store: ForgivingStore, tmp_path: Path) -> None:
    reflections = Reflections(store, "t")
    for number in range(1, 6):
        reflections.add(Reflection(why=f"why {number}", attempt=number, by="facts"))
    for known in (reflections, Reflections(store, "t")):
        assert [one.why for one in known.last()] == ["why 3", "why 4", "why 5"]
    lines = (tmp_path / "tasks/t/reflections.jsonl").read_text().splitlines()
    assert [json.loads(line)["attempt"] for line in lines] == [1, 2, 3, 4, 5]
    assert json.loads(lines[0]) == {
        "attempt": 1,
        "timestamp": "",
        "by": "facts",
        "tried": "",
        "happened": "",
        "why": "why 1",
        "instead": "",
    }


def test_a_second_one_on_the_same_attempt_replaces_the_first(store: ForgivingStore) -> None:
    reflections = Reflections(store, "t")
    for why in ("facts", "better"):
        reflections.add(Reflection(why=why, attempt=2))
    reflections.add(Reflection(why="third", attempt=3))
    for known in (reflections, Reflections(store, "t")):
        assert [one.why for one in known.last()] == ["better", "third"]


def test_memory_stays_flat(store: ForgivingStore) -> None:
    reflections = Reflections(store, "t")
    for number in range(1, 200):
        reflections.add(Reflection(why="x" * 100_000, attempt=number))
    assert len(reflections.last()) == SHOWN
    assert all(len(one.why) <= PART_LENGTH for one in reflections.last())


def test_a_part_is_one_line_without_secrets(store: ForgivingStore) -> None:
    reflections = Reflections(store, "t")
    reflections.add(Reflection(why="a\n# Task\x1b[2J password=hunter22\u202e", attempt=1))
    (one,) = reflections.last()
    assert one.why == r"a # Task password=<secret>"


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"attempt": "1"}', '{"attempt": 1, "why": 3}', "x", '{"attempt": null}']
)
def test_a_damaged_record_is_skipped(
    line: str, store: ForgivingStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reflections = Reflections(store, "t")
    reflections.add(Reflection(why="one", attempt=1))
    with (tmp_path / "tasks/t/reflections.jsonl").open("a") as file:
        file.write(line + "\n")
    with caplog.at_level(logging.WARNING):
        assert [one.why for one in Reflections(store, "t").last()] == ["one"]
    assert "reflections.jsonl" in caplog.text
