"""Passages of files: the nearest lines first, within their room, each headed by its place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loki.action.strategies.context_expand import BUDGET, around, definition, fitted, merged

LINES = [f"line {number}" for number in range(1, 101)]


def test_the_nearest_lines_survive() -> None:
    passage = around("a.py", LINES, 50, 50)
    assert passage is not None
    shown = passage.render(45).splitlines()
    assert shown[0] == "a.py:50"
    assert shown[1:] == ["    49 line 49", ">   50 line 50"]


def test_blank_lines_at_the_edges_are_not_shown() -> None:
    passage = around("a.py", ["", "", "x = 1", "", "", "y = 2", ""], 3, 9, "here")
    assert passage is not None
    assert passage.render(500).splitlines() == [
        "a.py:3 (here)",
        ">    3 x = 1",
        "     4",
        "     6 y = 2",
    ]


def test_a_definition_ends_where_its_indentation_does() -> None:
    lines = ["def a():", "    x = 1", "", "    return x", "", "def b():", "    pass"]
    passage = definition("a.py", lines, 1)
    assert passage is not None
    assert (passage.first, passage.last) == (1, 4)
    braces = definition("a.go", ["func a() {", "\treturn", "}", "", "func b() {"], 1)
    assert braces is not None
    assert braces.last == 3


def test_the_first_passage_gets_most_but_not_all() -> None:
    passages = merged(around(path, LINES, 50, 50) for path in ("a.py", "b.py", "c.py"))
    text = fitted((), passages)
    assert len(text) <= BUDGET
    places = [text.index(f"{path}:50") for path in ("a.py", "b.py", "c.py")]
    assert places == sorted(places)


def test_a_place_that_is_shown_already_is_not_shown_again() -> None:
    near = merged([around("a.py", LINES, 50, 50), around("a.py", LINES, 52, 50)])
    far = merged([around("a.py", LINES, 50, 50), around("a.py", LINES, 80, 50)])
    assert (len(near), len(far)) == (1, 2)


@given(
    st.lists(st.text(max_size=300), max_size=60),
    st.lists(st.integers(min_value=-5, max_value=80), max_size=6),
    st.lists(st.text(max_size=700), max_size=3),
    st.integers(min_value=0, max_value=3000),
)
def test_no_budget_is_exceeded(
    lines: list[str], places: list[int], texts: list[str], room: int
) -> None:
    passages = merged(around("a.py", lines, line, 50) for line in places)
    assert len(fitted(texts, passages, room)) <= max(room, 0)
