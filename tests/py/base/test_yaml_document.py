"""YAML that people write: what comes of any text, and that what is wrong is said where it stands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from loki.base.error import ConfigError
from loki.base.yaml_document import Document, Strict, read, refused, unexpected


def _even(value: int) -> int:
    if value % 2:
        raise unexpected("an even number")
    return value


def _no_twins(names: list[str]) -> list[str]:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise refused(f"found {name!r} again", index)
    return names


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class Part(Strict):
    size: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    kind: Literal["plain", "fancy"] = "plain"


class Whole(Strict):
    name: str
    is_ready: bool = False
    count: Annotated[int, AfterValidator(_even)] = 0
    names: Annotated[list[str], Field(max_length=3), AfterValidator(_no_twins)] = Field(
        default_factory=list
    )
    parts: dict[Literal["left", "right"], Part] = Field(default_factory=dict)
    more: Annotated[list[Part], BeforeValidator(_listed)] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("count: 2", "1:1: found no key 'name', expected one"),
        ("nam: a", "found unknown key 'nam', expected one of name, is_ready, count, names, parts, more; did"),
        ("name: 3", "1:7: found 3, expected text: put it in quotes"),
        ("name:", "1:6: found nothing, expected text"),
        ("name: [a]", "1:7: found a list, expected text"),
        ("name: a\ncount: 3", "2:8: found 3, expected an even number"),
        ("name: a\ncount: 1.5", "2:8: found 1.5, expected a whole number"),
        ("name: a\ncount: 0x1", "2:8: found 0x1, expected an even number"),
        ("name: a\nnames: [a, b, a]", "2:15: found 'a' again"),
        ("name: a\nnames: [a, b, c, d]", "2:8: found a list, expected 3 entries at most"),
        ("name: a\nparts: {up: {}}", "2:9: found 'up', expected one of left, right"),
        ("name: a\nparts: []", "2:8: found an empty list, expected a mapping"),
        ("name: a\nparts: {left: {sice: 1}}", "2:16: found unknown key 'sice', expected one of size, share"),
        ("name: a\nparts: {left: {share: 1}}", "2:23: found 1, expected less than 1"),
        ("name: a\nmore: {size: 10}", "2:14: found 10, expected 9 or less"),
        ("name: a\nmore: [{kind: fancie}]", "expected one of plain, fancy; did you mean 'fancy'?"),
        ("name: a\nis_ready: soon", "2:11: found 'soon', expected true or false"),
        ("name: !ref x\n", "1:7: found the tag !ref, expected a plain value without tags"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, "f.yml", Whole)
    assert said in str(caught.value)


def test_all_that_is_wrong_is_found_in_the_order_of_the_text() -> None:
    text = "count: 3\nnames: 7\nmore: [{size: 0}, {size: 1, colour: red}]\nname: a"
    found, problems = Document(text, "f.yml").examine(Whole)
    assert found is None
    assert [(one.line, one.column) for one in problems] == [(1, 8), (2, 8), (3, 15), (3, 29)]


def test_what_an_alias_shares_is_said_once() -> None:
    text = "name: a\nmore: [&x {size: 0}, *x, *x]"
    assert len(Document(text, "f.yml").examine(Whole)[1]) == 1


_TEXTS = st.lists(
    st.sampled_from(
        ["name: a\n", "count: ", "2\n", "[", "]", "{", "}", "- ", "&x ", "*x ", "!!int ", "!!bool ", "!t ", "? ", ": ",
         "|\n", "  ", "'", '"', "\\", "0b", "1:", "0x", "~", "<<: ", "#", "\t", "%", "---\n", "more: ", "é", "\ufeff"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(_TEXTS | st.text(max_size=40) | st.binary(max_size=40))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    class Anything(BaseModel):
        name: Any = None

    for model in (Whole, Anything):
        try:
            found, problems = Document(text, "f.yml").examine(model)
        except ConfigError as error:
            found, problems = None, [error]
        assert (found is None) == bool(problems)
        assert all(one.line >= 1 and one.column >= 1 for one in problems)
