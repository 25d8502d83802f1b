"""YAML as loki writes it: what is read back is what was written."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loki.base.text_format import INVISIBLE
from loki.base.yaml_text import dump

texts = st.text(
    st.one_of(
        st.sampled_from(
            "-\n:#'\"|> \t`[]{}&*!%@a\u2028\u2029\x85\x00\ufeffé\u202e\u3164\U000e0041\x1b"
        ),
        st.characters(codec="utf-8"),
    ),
    max_size=40,
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(plain, st.booleans(), st.sampled_from([20, 100, 10**6]))
def test_plain_data_comes_back(data: object, indented: bool, width: int) -> None:
    text = dump(data, indented=indented, width=width)
    assert yaml.safe_load(text) == data
    assert not INVISIBLE.search(text)


@pytest.mark.parametrize(
    ("indented", "text"),
    [(False, "b:\n- x: 1\n  a:\n  - é\n"), (True, "b:\n  - x: 1\n    a:\n      - é\n")],
)
def test_its_form_is_for_people(indented: bool, text: str) -> None:
    assert dump({"b": [{"x": 1, "a": ["é"]}]}, indented=indented) == text


def test_a_lone_surrogate_is_written_as_what_can_be_read() -> None:
    assert yaml.safe_load(dump("bad\udcff.py")) == "bad\ufffd.py"
