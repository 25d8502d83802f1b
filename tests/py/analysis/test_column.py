"""The page for readers of histories says of each column what the code says of it."""

from __future__ import annotations

import pytest

import loki
from loki import analysis
from loki.analysis.arrow import TYPES, schema
from loki.analysis.column import TABLES
from support.paths import ROOT

PAGE = (ROOT / "docs" / "jupyter.md").read_text("utf-8")


def documented(name: str) -> str:
    rows = "".join(
        f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} |\n" for c in analysis.columns(name)
    )
    return f"### `{name}`\n\n| column | type | unit | meaning |\n|---|---|---|---|\n{rows}"


@pytest.mark.parametrize("name", TABLES)
def test_the_page_says_what_is_in_a_table(name: str) -> None:
    assert documented(name) in PAGE, f"docs/jupyter.md should say:\n\n{documented(name)}"


@pytest.mark.parametrize("name", TABLES)
def test_units_go_with_names_and_meanings_are_in_the_schema(name: str) -> None:
    for column, field in zip(analysis.columns(name), schema(name), strict=True):
        assert column.meaning
        assert column.type in TYPES
        assert (column.unit == "ms") == column.name.endswith("_ms")
        assert (column.unit == "UTC") == (column.type == "time")
        assert field.metadata[b"meaning"].decode() == column.meaning


def test_columns_print_as_a_table_and_are_a_sequence() -> None:
    columns = analysis.columns("transitions")
    assert str(columns).splitlines()[0].split() == ["column", "type", "unit", "meaning"]
    assert [column.name for column in columns[:2]] == ["timestamp", "breaker"]


def test_an_unknown_table_is_said_so() -> None:
    with pytest.raises(loki.UsageError, match="expected one of attempts, failures"):
        analysis.columns("nothing")
