"""`loki.analysis.history`: what it opens, and what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki import analysis
from loki.analysis.column import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_project_has_empty_tables_with_every_column(tmp_path: Path, name: str) -> None:
    (tmp_path / ".loki").mkdir()
    tables = analysis.history(tmp_path)
    assert tables[name].num_rows == 0
    assert tables[name].schema.names == [column.name for column in TABLES[name]]
    assert tables.pandas(name).empty
    assert tables.polars(name).is_empty()


def test_where_loki_has_not_run_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(loki.UsageError, match=r"no \.loki in .*expected a project .*loki run"):
        analysis.history(tmp_path)


def test_no_folder_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(loki.UsageError, match="is not a folder"):
        analysis.history(tmp_path / "nowhere")
