"""A notebook file: executed in a fresh kernel, tidied, compared with what is stored."""

from __future__ import annotations

import base64
import difflib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent

CELL_SECONDS = 300
"""After so long a cell counts as hanging. Chosen, not measured: the slowest takes about ten seconds."""

LARGEST = 200_000
"""Bytes of a notebook file: what a reader's editor and a review can take. Chosen, not measured."""

COLORS = 48
"""Of a picture: enough for lines and their smooth edges. Chosen, not measured."""

IMAGES = re.compile(r"image/")


class Stale(Exception):
    """A notebook is not what its code gives now; the text says where."""


def names() -> list[str]:
    """The notebooks, without their suffix."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def path_of(name: str) -> Path:
    """Where a notebook is."""
    return FOLDER / f"{name}.ipynb"


def read(name: str) -> Any:
    """A notebook as it is stored."""
    import nbformat

    return nbformat.read(path_of(name), as_version=4)  # type: ignore[no-untyped-call]


def write(name: str, book: Any) -> None:
    """Store a notebook."""
    import nbformat

    nbformat.validate(book)
    text = nbformat.writes(book)  # type: ignore[no-untyped-call]
    path_of(name).write_text(text + "\n", "utf-8")


def execute(name: str) -> Any:
    """A notebook with what its cells give now: in a fresh kernel, in an empty folder, offline.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
        nbclient.exceptions.CellTimeoutError: a cell hung.
    """
    with _a_world_of_its_own() as folder:
        from nbclient import NotebookClient  # it reads the environment

        book = read(name)
        client = NotebookClient(
            book,
            timeout=CELL_SECONDS,
            startup_timeout=CELL_SECONDS,
            kernel_name="python3",
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
    return tidied(book)


@contextmanager
def _a_world_of_its_own() -> Iterator[Path]:
    """An empty folder, in an environment without a person's settings."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder, "home")
        work = Path(folder, "work")
        home.mkdir()
        work.mkdir()
        fonts = ROOT / "build" / "notebooks"  # matplotlib's list of fonts takes seconds to make
        fonts.mkdir(parents=True, exist_ok=True)
        programs = os.pathsep.join([str(Path(sys.executable).parent), before.get("PATH", "")])
        os.environ |= {
            "HOME": str(home),
            "IPYTHONDIR": str(home / "ipython"),
            "JUPYTER_CONFIG_DIR": str(home / "jupyter"),
            "JUPYTER_DATA_DIR": str(home / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(home / "jupyter"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "MPLCONFIGDIR": str(fonts),
            "PATH": programs,
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTHONHASHSEED": "0",
        }
        # Where CI is said, pytest shortens nothing, and loki and GitHub would hear of it.
        said = ("LOKI_", "PYTEST_", "GITHUB_")
        for name in [name for name in os.environ if name == "CI" or name.startswith(said)]:
            del os.environ[name]
        try:
            yield work
        finally:
            os.environ.clear()
            os.environ.update(before)


def tidied(book: Any) -> Any:
    """The notebook without what differs from machine to machine and says nothing."""
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in book.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if png := output.get("data", {}).get("image/png"):
                output.data["image/png"] = _small(png)
    return book


def _small(png: str) -> str:
    """A picture with a palette, in base64; as it is where that is no smaller."""
    from PIL import Image

    packed = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        if picture.mode == "P":
            return png
        picture.convert("RGB").quantize(COLORS).save(packed, "PNG", optimize=True)
    small = base64.b64encode(packed.getvalue()).decode()
    return min(png, small, key=len)


def compare(name: str, stored: Any, now: Any) -> None:
    """Hold what is stored against what came now: structure and text; images by their presence.

    Raises:
        Stale: they differ.
    """
    before, after = shown(stored), shown(now)
    if before == after:
        return
    rows = difflib.unified_diff(before, after, f"{name}, stored", f"{name}, now", lineterm="")
    said = "\n".join(list(rows)[:80])
    raise Stale(f"notebooks/{name}.ipynb is out of date: make notebooks\n{said}")


def shown(book: Any) -> list[str]:
    """What a reader sees, line by line; of an image that it is there."""
    rows: list[str] = []
    for number, cell in enumerate(book.cells):
        rows += [f"--- cell {number}, {cell.cell_type}", *cell.source.splitlines()]
        for output in cell.get("outputs", ()):
            rows += [f"--- output of cell {number}, {output.output_type}", *_said(output)]
    return rows


def _said(output: Any) -> Iterator[str]:
    if output.output_type == "stream":
        yield output.name
        yield from output.text.splitlines()
    for kind, value in sorted(output.get("data", {}).items()):
        yield kind
        if not IMAGES.match(kind):
            yield from str(value).splitlines()


def faults(book: Any, text: str) -> list[str]:
    """What a stored notebook must not have: this machine's paths, errors, bulk.

    Args:
        book: the notebook.
        text: its file.
    """
    seen = "\n".join(shown(book))
    places = {str(ROOT), str(Path.home()), tempfile.gettempdir(), sys.prefix} - {"/"}
    found = [f"shows the path {place}" for place in sorted(places) if f"{place}/" in seen]
    if "\x1b" in seen:
        found.append("shows escape sequences of a terminal")
    if len(text) > LARGEST:
        found.append(f"has {len(text):,} bytes, expected at most {LARGEST:,}")
    for number, cell in enumerate(book.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                found.append(f"cell {number} raised {output.ename}")
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {number} writes to stderr")
    return found
