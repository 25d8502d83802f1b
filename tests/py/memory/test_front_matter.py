"""Pages: what was written as front matter comes back, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.yaml_text import front_matter, parse

texts = st.one_of(
    st.text(st.sampled_from("-\n:#'\"|> \t`[]{}&*!%@a\u2028\x85é"), max_size=40),
    st.sampled_from(["---", "a\n---\nb", "\n---\n", "null", "2026-01-01", "x: y", "- a", "'"]),
)


@given(st.dictionaries(st.sampled_from(["id", "reason", "rule"]), texts), texts)
def test_any_text_comes_back(fields: dict[str, str], below: str) -> None:
    back, body = parse(f"{front_matter(fields)}\n{below}")
    assert back == fields
    assert body == below.lstrip("\n")


def test_a_file_name_that_is_no_text_can_be_read_too() -> None:
    assert parse(front_matter({"path": "bad\udcff.py"}))[0] == {"path": "bad\ufffd.py"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no front matter"),
        ("# a page\n", "no front matter"),
        ("---\nid: x\n", "no front matter"),
        ("---\nid: [\n---\n", "no YAML"),
        ("---\n- a\n---\n", "no mapping"),
        ("---\n!!python/object/apply:os.system [true]\n---\n", "no YAML"),
    ],
)
def test_what_is_no_page_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)
