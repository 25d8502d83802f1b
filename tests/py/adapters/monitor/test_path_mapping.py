"""Folders of a container: which can be mapped, and where a text means them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loki import Monitor, ToolCall
from loki.adapters.monitor.monitor import as_here
from loki.base.error import UsageError


@pytest.mark.parametrize("there", ["workspace", "", "C:\\w", "/", "//", "/.", "/a/..", "/a\0", 3])
def test_a_folder_there_is_an_absolute_path(tmp_path: Path, there: Any) -> None:
    with pytest.raises(UsageError, match=r"mapped: found .* expected an absolute path"):
        Monitor(tmp_path, mapped={there: "."})


@pytest.mark.parametrize("here", [3, None, "a\0"])
def test_a_folder_here_is_a_path(tmp_path: Path, here: Any) -> None:
    with pytest.raises(UsageError, match=r"mapped\['/w'\]: found .* expected a folder relative"):
        Monitor(tmp_path, mapped={"/w": here})


@pytest.mark.parametrize("there", ["/w", "/w/", "//w", "/w/../w"])
def test_a_folder_is_mapped_however_it_is_written(tmp_path: Path, there: str) -> None:
    monitor = Monitor(tmp_path, mapped={there: "."})
    assert not monitor.after(ToolCall("Edit", {"file_path": "/w/a.py"}), "ok", ok=True)
    assert monitor.mapped == {"/w": str(tmp_path)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/app/x.py:3: error", "/here/x.py:3: error"),
        ('File "/app/x.py"', 'File "/here/x.py"'),
        ("cd '/app'", "cd '/here'"),
        ("in /app", "in /here"),
        ("file:///app/x.js:3", "file:///here/x.js:3"),
        ("\x1b[31m/app/x.py\x1b[0m", "\x1b[31m/here/x.py\x1b[0m"),
        ("/app/lib/x.py", "/lib/x.py"),
        ("/usr/src/app/x.py", "/usr/src/app/x.py"),
        ("/application/x.py", "/application/x.py"),
        ("/app.old/x.py", "/app.old/x.py"),
        ("https://host/app/x", "https://host/app/x"),
        ("../app/x.py", "../app/x.py"),
        ("no path", "no path"),
    ],
)
def test_a_folder_is_replaced_where_a_path_begins(text: str, expected: str) -> None:
    assert as_here(text, {"/app": "/here", "/app/lib": "/lib", "/here": "/never"}) == expected
