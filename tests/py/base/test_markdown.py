"""Markdown: no text that is quoted leaves its place."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from loki.base.invisible import INVISIBLE, written_out
from loki.base.markdown import bullets, code, fence, inline, paragraphs

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
    assert " ".join(inside.split()) == written_out(" ".join(text.split()))
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
        assert not re.match(r"[#>+=~|-]|\d+[.)]|`|\s", line), line


def test_bullets() -> None:
    assert bullets(["a", "b"]) == "- a\n- b"
    assert bullets([]) == "None."


@given(hostile)
def test_what_nobody_sees_is_written_out(text: str) -> None:
    for shown in (inline(text), code(text), paragraphs(text), fence(text)):
        assert not INVISIBLE.search(shown)
