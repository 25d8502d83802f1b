"""The notebooks run, and what is stored in them is what their code gives."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from notebooks import book


@pytest.mark.parametrize("name", book.names())
def test_it_runs_and_gives_what_is_stored(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "notebooks", "--check", name],
        cwd=book.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", book.names())
def test_it_shows_nothing_of_the_machine_and_stays_small(name: str) -> None:
    assert book.faults(book.read(name), book.path_of(name).read_text("utf-8")) == []


@pytest.mark.parametrize("name", book.names())
def test_it_is_stored_as_the_command_stores_it(name: str) -> None:
    stored = book.read(name)
    assert dict(stored.metadata) == dict(book.tidied(copy.deepcopy(stored)).metadata)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert len({cell.id for cell in stored.cells}) == len(stored.cells)


@pytest.mark.parametrize("name", book.names())
def test_it_begins_with_its_question_and_has_short_cells(name: str) -> None:
    cells = book.read(name).cells
    assert cells[0].cell_type == "markdown"
    assert "**The question:**" in cells[0].source
    assert max(len(cell.source.splitlines()) for cell in cells) <= 50
    assert len(book.shown(book.read(name))) < 1000


def test_ruff_looks_at_their_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--show-files"],
        cwd=book.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = done.stdout.splitlines()
    assert {str(book.path_of(name)) for name in book.names()} <= set(seen)


def a_book(*cells: dict[str, Any]) -> Any:
    import nbformat

    made = [nbformat.v4.new_code_cell(**cell) for cell in cells]  # type: ignore[no-untyped-call]
    return nbformat.v4.new_notebook(cells=made)  # type: ignore[no-untyped-call]


def stream(text: str, name: str = "stdout") -> Any:
    import nbformat

    return nbformat.v4.new_output("stream", name=name, text=text)  # type: ignore[no-untyped-call]


def display(**data: str) -> Any:
    import nbformat

    kinds = {kind.replace("_", "/"): value for kind, value in data.items()}
    return nbformat.v4.new_output("display_data", data=kinds)  # type: ignore[no-untyped-call]


def test_another_text_is_stale() -> None:
    before = a_book({"source": "print(1)", "outputs": [stream("1\n")]})
    after = a_book({"source": "print(1)", "outputs": [stream("2\n")]})
    book.compare("one", before, copy.deepcopy(before))
    with pytest.raises(book.Stale, match=r"(?s)one\.ipynb is out of date.*-1\n\+2"):
        book.compare("one", before, after)


def test_of_an_image_only_its_presence_counts() -> None:
    before = a_book({"source": "figure", "outputs": [display(image_png="AAAA")]})
    other = a_book({"source": "figure", "outputs": [display(image_png="BBBB")]})
    gone = a_book({"source": "figure", "outputs": [display(text_plain="<Figure>")]})
    book.compare("one", before, other)
    with pytest.raises(book.Stale):
        book.compare("one", before, gone)


def test_faults_are_found() -> None:
    wrong = a_book({"source": "", "outputs": [stream(f"{book.ROOT}/x\x1b[0m\n", "stderr")]})
    found = book.faults(wrong, "x" * (book.LARGEST + 1))
    assert len({one.split()[0] for one in found}) == 3  # shows, has, cell
    assert f"shows the path {book.ROOT}" in found
