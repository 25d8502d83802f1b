"""The log beside a long file of breakers: bytes in, bytes out."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loki._core import BreakersFile
from loki.decision.breakers_file import SMALL, Content, head

NAMES = st.text(
    st.characters(codec="utf-8"), max_size=9
) | st.sampled_from(["api/a", "a", 'a"b', '": {', "x: {\n  y", "\x7f\\", "$schema", "}", ""])  # fmt: skip
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=9) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
FILES = st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=4) | VALUES, max_size=5)


def data(entries: Any) -> bytes:
    return BreakersFile(json.dumps(entries).encode()).bytes()


def long(entries: dict[str, Any], log: bytes = b"") -> Content:
    """One that is too long to be written with each outcome."""
    filled = {**entries, "filling": {"text": "x" * SMALL}}
    return Content(data(filled), log or head((1, 2, 3)), is_ours=True)


def read(content: BreakersFile) -> Any:
    return json.loads(content.bytes())


def told(content: Content, name: str, entry: Any) -> Content:
    """After an outcome that made an entry this."""
    made = BreakersFile(json.dumps({name: entry}).encode())
    return Content(content.data, content.log + content.line(name, made), content.is_ours)


@given(FILES, NAMES)
def test_an_entry_is_what_the_file_says_whatever_else_is_in_it(entries: Any, name: str) -> None:
    found = read(long(entries).entry(name))
    assert found == ({name: entries[name]} if name in entries else {})


@given(FILES, st.lists(st.tuples(NAMES, st.dictionaries(NAMES, VALUES, max_size=3)), max_size=6))
def test_lines_are_what_happened_since_in_order(entries: Any, outcomes: Any) -> None:
    content = long(entries)
    expected = json.loads(content.data)
    for name, entry in outcomes:
        content = told(content, name, entry)
        expected[name] = entry
        assert read(content.entry(name))[name] == entry
    merged = content.merged()
    assert json.loads(merged) == expected == read(content.whole())
    assert list(json.loads(merged))[: len(entries)] == list(entries), "each in its place"
    assert merged == BreakersFile(merged).bytes(), "in the form that the file always has"
    after = Content(merged, content.log, is_ours=True)
    assert json.loads(after.merged()) == expected, "lines that are not cut off yet say nothing new"


def test_what_another_program_wrote_since_is_true() -> None:
    content = told(told(long({"a": {"n": 1}, "b": {"n": 1}}), "a", {"n": 2}), "b", {"n": 2})
    theirs = json.loads(content.data)
    theirs["a"]["state"] = "CLOSED"
    after = Content(data(theirs), content.log)
    assert read(after.entry("a"))["a"] == {"n": 1, "state": "CLOSED"}
    assert read(after.entry("b"))["b"] == {"n": 2}, "which they did not touch"


def test_a_line_that_its_writer_or_a_disk_left_torn_is_nothing() -> None:
    content = told(long({"a": {"n": 1}}), "a", {"n": 2})
    whole = told(content, "a", {"n": 3}).log
    for cut in range(len(content.log), len(whole)):
        torn = Content(content.data, whole[:cut])
        assert read(torn.entry("a"))["a"] == {"n": 2 if cut < len(whole) else 3} or cut == len(
            whole
        )
        assert json.loads(torn.merged())["a"] == {"n": 2}
        assert torn.end == len(content.log)
    lost = Content(content.data, content.log + b"\0" * 64 + b"\n" + whole[len(content.log) :])
    assert read(lost.entry("a"))["a"] == {"n": 3}


@given(st.binary(max_size=400))
def test_whatever_a_log_has_harms_nothing(log: bytes) -> None:
    for content in (Content(long({"a": {"n": 1}}).data, log), Content(b"{}\n", log)):
        read(content.entry("a"))
        assert read(content.whole()) == json.loads(content.data)
