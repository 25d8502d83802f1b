"""Lengths in tokens: a cut text keeps to its limit, and its beginning and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.tokens import clip_around, clip_line, clip_lines, clip_to_tokens, tokens


@given(st.text(), st.integers(1, 50), st.floats(0, 1))
def test_clip_keeps_to_its_limit(text: str, limit: int, tail: float) -> None:
    cut = clip_to_tokens(text, limit, tail=tail)
    assert tokens(cut) <= limit
    assert cut == text or "…" in cut
    assert (cut == text) is (tokens(text) <= limit) or text == "…"


def test_clip_keeps_whole_lines_of_both_ends() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert clip_to_tokens(text, 12).splitlines() == [*(f"line {n}" for n in range(6)), "…"]
    both = clip_to_tokens(text, 20, tail=0.5).splitlines()
    assert both[0] == "line 0"
    assert both[-1] == "line 99"
    assert both.count("…") == 1
    assert set(both) - {"…"} <= set(text.splitlines())


@given(st.text(), st.integers(-2, 50), st.integers(1, 50))
def test_clip_around_keeps_to_its_limit(text: str, line: int, limit: int) -> None:
    cut = clip_around(text, line, limit)
    assert tokens(cut) <= limit
    assert cut == text or "…" in cut


def test_clip_around_keeps_the_line_that_matters_and_its_neighbours() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    cut = clip_around(text, 50, 9).splitlines()
    assert cut == ["…", "line 49", "line 50", "line 51", "…"]
    assert clip_around(text, 0, 6).splitlines() == ["line 0", "line 1", "…"]
    assert clip_around(text, 99, 6).splitlines() == ["…", "line 98", "line 99"]


def test_letters_of_other_scripts_count_for_more() -> None:
    assert tokens("привет") == 3
    assert tokens("你好世界") == 3
    assert tokens("\ud800") == 1


@pytest.mark.parametrize("most", [32, 40, 500])
def test_a_long_line_loses_its_middle(most: int) -> None:
    line = "a" * 10**6 + "z" * 10**6
    cut = clip_line(line, most)
    assert len(cut) <= most
    assert cut.startswith("a")
    assert cut.endswith("z")
    assert "characters" in cut
    assert clip_lines(f"short\n{line}", most) == f"short\n{cut}"


def test_what_fits_stays_as_it_is() -> None:
    assert clip_to_tokens("a\n" * 8, 4) == "a\n" * 8
    assert clip_line("x" * 32, 32) == "x" * 32
