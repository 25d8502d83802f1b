"""The converter: what fits comes back to the byte; what does not spoils only itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.codec import IsoTime, Positive, kept, parse, read, write


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Whole:
    """One field of each kind."""

    title: str = kept(default="", plain="(damaged)")
    number: Positive = 1
    files: tuple[str, ...] = kept(name="files_modified", default=())
    is_done: bool = False
    cost: float | None = None
    at: datetime | None = None
    since: IsoTime = ""
    mood: Mood = Mood.GOOD
    kind: Literal["llm", "agent"] = "llm"
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    pairs: frozenset[tuple[str, str]] = frozenset()
    table: Mapping[str, str] = field(default_factory=dict)
    anything: Mapping[str, Any] | None = None
    said: str = kept(default="", omit=True)
    flaws: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)


DATA = {
    "title": "ü\udcff", "number": 3, "files_modified": ["a.py"], "is_done": True, "cost": 0.5,
    "at": "2026-04-04T10:15:30.000Z", "since": "2026-04-04", "mood": "bad", "kind": "agent",
    "part": {"name": "a", "share": 0.25}, "parts": [{"name": "b", "share": 1.0}], "pairs": [["a", "b"], ["c", "d"]],
    "table": {"x": "y"}, "anything": {"deep": [1, {"a": None}]}, "newer": {"kept": [1]},
}  # fmt: skip


def test_what_fits_comes_back_to_the_byte() -> None:
    whole, flaws = read(Whole, DATA)
    assert whole is not None
    assert (flaws, whole.flaws) == ((), ())
    assert (whole.mood, whole.at) == (
        Mood.BAD,
        datetime(2026, 4, 4, 10, 15, 30, tzinfo=timezone.utc),
    )
    assert whole.other == {"newer": {"kept": [1]}}
    assert json.dumps(write(whole)) == json.dumps(DATA), "unknown fields are kept, last"


@pytest.mark.parametrize(
    ("name", "value", "plain", "flaw"),
    [
        ("title", 5, "(damaged)", "title: found 5, expected text"),
        ("number", True, 1, "number: found True, expected a whole number"),
        ("number", 0, 1, "number: found 0, expected 1 or more"),
        ("number", 2**60, 1, "number: found 1152921504606846976"),
        ("files_modified", ["a", 5, "b"], ("a", "b"), "files_modified.1: found 5, expected text"),
        ("files_modified", "ab", (), "files_modified: found 'ab', expected a list"),
        ("is_done", 1, False, "is_done: found 1, expected true or false"),
        ("cost", float("nan"), None, "cost: found nan, expected a finite number"),
        ("at", "soon", None, "at: found 'soon', expected a time in ISO 8601"),
        ("mood", "odd", Mood.GOOD, "mood: found 'odd'"),
        ("kind", "person", "llm", "kind: found 'person', expected 'llm' or 'agent'"),
        ("part", {"share": 1.0}, None, "part.name: is missing"),
        ("part", [], None, "part: found [], expected an object"),
        ("parts", [{"name": "a"}, 3], (Part("a"),), "parts.1: found 3, expected an object"),
        ("pairs", [["a"], ["a", "b"]], frozenset({("a", "b")}), "pairs.0.1: is missing"),
        ("table", {"a": 1, "b": "c"}, {"b": "c"}, "table.a: found 1, expected text"),
        ("anything", [1], None, "anything: found [1], expected an object"),
    ],
)
def test_what_does_not_fit_spoils_only_itself(name: str, value: Any, plain: Any, flaw: str) -> None:
    whole, flaws = read(Whole, {**DATA, name: value})
    assert whole is not None
    assert flaws == whole.flaws
    assert len(flaws) == 1
    assert flaws[0].startswith(flaw)
    attribute = "files" if name == "files_modified" else name
    assert getattr(whole, attribute) == plain
    rest = {k: v for k, v in write(whole).items() if k != name}
    assert rest == {k: v for k, v in DATA.items() if k != name}
    with pytest.raises(ValueError, match="^no whole: "):
        parse(Whole, {**DATA, name: value}, "whole")


def test_null_is_what_nobody_said_in_a_record_of_a_log() -> None:
    """In a document that is written whole it is damage, where something was there."""
    nothing = parse(Whole, dict.fromkeys(DATA))
    assert nothing == parse(Whole, {"newer": None})
    assert nothing.title == "(damaged)", "nothing says it"
    whole, flaws = read(Whole, {**DATA, "cost": None, "table": None})
    assert flaws == ("table: found None, expected an object",)
    assert whole is not None
    assert whole.table == {}


@pytest.mark.parametrize("data", [None, 3, "x", [DATA], {"share": 1.0}])
def test_what_is_no_such_thing_at_all_is_none_with_a_sentence(data: Any) -> None:
    found, flaws = read(Part, data)
    assert found is None
    assert flaws
    with pytest.raises(ValueError, match="no Part"):
        parse(Part, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*DATA, "name"]), inner, max_size=4)
    ),
)


@given(st.dictionaries(st.sampled_from([*DATA, "x"]), JSON))
def test_whatever_it_is_given_what_it_makes_fits(data: dict[str, Any]) -> None:
    whole, _ = read(Whole, data)
    assert whole is not None
    again, flaws = read(Whole, write(whole))
    assert flaws == ()
    assert write(again) == write(whole) or data  # nan is not itself
