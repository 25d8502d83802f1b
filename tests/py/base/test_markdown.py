"""Markdown: no text that is quoted leaves its place."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from loki.base.markup import bullets, cell, code, cut, fence, inline, paragraphs, quotation
from loki.base.text_format import INVISIBLE, escape_control_characters

hostile = st.text(
    st.sampled_from("`#-=~>*_[]()<>\\ \n\r\t1.ab|&\u2028\x1b\u202e\u3164"), max_size=60
)


@given(hostile)
def test_inline_is_one_line_without_markup(text: str) -> None:
    line = inline(text)
    assert len(line.splitlines()) <= 1
    assert not re.search(r"(?<!\\)(?:\\\\)*[`\[\]<>*]", line)


@given(hostile)
def test_code_cannot_be_ended(text: str) -> None:
    span = code(text)
    ticks = re.match("`+", span)
    assert ticks is not None
    inside = span[len(ticks[0]) : -len(ticks[0])]
    assert ticks[0] not in re.findall("`+", inside)
    assert " ".join(inside.split()) == escape_control_characters(" ".join(text.split()))
    assert len(span.splitlines()) == 1


def test_spaces_that_two_values_differ_by_stay() -> None:
    assert code("'a  b' ==\n\t'a b'") == "`'a  b' == 'a b'`"
    assert inline(" a  b\tc \r\n d ") == "a  b c d"


@given(hostile)
def test_a_fence_cannot_be_closed(text: str) -> None:
    first, *_, last = fence(text).split("\n")
    ticks = first.removesuffix("text")
    assert last == ticks
    assert ticks not in text


@given(hostile)
def test_paragraphs_open_no_block(text: str) -> None:
    for line in paragraphs(text).splitlines():
        assert not re.match(r"[#>+=~|-]|\d+[.)](?:\s|$)|`|\s", line), line


def test_bullets() -> None:
    assert bullets(["a", "b"]) == "- a\n- b"
    assert bullets([]) == "None."


@given(hostile)
def test_what_nobody_sees_is_written_out(text: str) -> None:
    for shown in (inline(text), code(text), paragraphs(text), fence(text)):
        assert not INVISIBLE.search(shown)


@given(hostile, st.integers(1, 60))
def test_a_line_that_is_cut_leaves_nothing_open(text: str, most: int) -> None:
    shown = cut(f"see {code(text)} and {inline(text)} more", most)
    assert len(shown) <= max(most, 1)
    tokens = MarkdownIt("commonmark").parse(shown)
    inside = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inside} <= {"text", "code_inline", "text_special"}
    assert not shown.endswith("\\")


def test_code_that_is_cut_is_closed() -> None:
    assert cut("`a\\` and more", 7) == "`a\\` a…"
    assert cut("``a `b` c`` d", 9) == "``a `b…``"


@given(st.text("a_ é1.", max_size=12))
def test_names_keep_their_underscores_and_none_is_emphasis(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"x {inline(text)} y")
    (words,) = [token for token in tokens if token.type == "inline"]
    assert {child.type for child in words.children or ()} <= {"text", "text_special"}
    assert inline("analyze_then_fix") == "analyze_then_fix"


@given(hostile)
def test_a_cell_is_one_cell(text: str) -> None:
    page = f"| a | b |\n|---|---|\n| {cell(code(text))} | {cell(inline(text))} |"
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(page)
    assert [token.type for token in tokens].count("td_open") == 2


@given(hostile)
def test_a_quotation_is_one_block_of_words(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(quotation(text))
    assert {token.type.partition("_")[0] for token in tokens} <= {
        "blockquote",
        "paragraph",
        "inline",
    }
    assert sum(token.type == "blockquote_open" for token in tokens) <= 1
