"""In a real IPython kernel, loki's objects and tables display as HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CELLS = {
    "failure": "failure = loki.recognize(\"FAILED t.py::test_a - KeyError: 'next'\")\nfailure",
    "match": "failure.match",
    "task": "with loki.Workspace('.').task('try', checks=['false'], max_attempts=1) as task:\n"
    "    outcome = task.run(lambda _: {'a.txt': 'a'})\ntask",
    "outcome": "outcome",
    "decision": "from loki.decision.loop_policy import FailureHistory\nfrom loki.decision.loop_policy import Situation, decide\n"
    "decide(Situation(failure, past=FailureHistory(), patterns={}))",
    "breaker": "loki.Workspace('.').breakers()['api/claude']",
    "tables": "from loki import analysis\nhistory = analysis.history()\nhistory",
    "columns": "analysis.columns('attempts')",
    "frame": "history.pandas('attempts')",
    "polars": "history.polars('attempts')",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What a kernel gives for each cell, by type of content."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    cell = nbformat.v4.new_code_cell
    book = nbformat.v4.new_notebook(cells=[cell("import loki"), *map(cell, CELLS.values())])
    folder: Path = tmp_path_factory.mktemp("kernel")
    client(book, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs: dict[str, Any] = dict(zip(CELLS, book.cells[1:], strict=True))
    return {
        name: next(o["data"] for o in cell.outputs if o["output_type"] == "execute_result")
        for name, cell in outputs.items()
    }


@pytest.mark.parametrize("name", CELLS)
def test_it_displays(shown: dict[str, dict[str, str]], name: str) -> None:
    assert shown[name]["text/html"].lstrip().startswith("<div")
    assert "text/markdown" not in shown[name]
    assert shown[name]["text/plain"]
