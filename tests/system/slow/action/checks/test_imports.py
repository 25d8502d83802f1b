"""Imports: what files import, whatever they hold: what takes its time."""

from __future__ import annotations

import pytest

from loki.action.checks.imports import imports_of


@pytest.mark.parametrize(
    "piece",
    [
        "import ",
        "import {a, ",
        "import {import a ",
        "`${",
        "`",
        "/",
        "//",
        "/*",
        "'",
        "{[(",
        "require(",
    ],
)
def test_hostile_javascript_comes_to_an_end(piece: str) -> None:
    """A megabyte of it: what takes more than linear time does not end while anybody waits."""
    imports_of("a.js", (piece * (1_000_000 // len(piece))).encode())
