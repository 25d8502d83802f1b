"""Every sample of every tool file says what must be extracted from it: with processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loki import _core
from support.tool_files import TOOLS


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ("'^\\w: '", "this regex has no literal of 3 bytes that every match must hold"),
        ("'^TILL: (?=x)'", "found a regex that RE2 refuses (invalid perl operator: (?=)"),
        ("'^TILL: (?P<mesage>.+)$'", "found group 'mesage', expected the name of a field"),
    ],
)
def test_the_build_refuses_what_the_core_refuses(tmp_path: Path, start: str, reason: str) -> None:
    """As CMake calls it: from the sources, with the core that was just built."""
    sources = tmp_path / "python"
    shutil.copytree(TOOLS.parents[2], sources, ignore=shutil.ignore_patterns("__pycache__"))
    (sources / "loki/recognition/tools/till.yml").write_text(
        f"version: 1\ntool: till\nblocks:\n  - id: bad\n    role: cause\n    start: {start}\n"
    )
    code = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1));"
        "runpy.run_module('loki.recognition.builtin', run_name='__main__')"
    )
    output = tmp_path / "builtin.json"
    run = subprocess.run(
        [sys.executable, "-B", "-c", code, str(sources), str(output), str(_core.__file__)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("till.yml: /tools/0/blocks/0/start/0: ")
    assert reason in run.stderr
    assert not output.exists()
