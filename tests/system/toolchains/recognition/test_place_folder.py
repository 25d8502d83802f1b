"""Folders of places: what an output says apart from a place, and what is there on the disk decides: with real tools."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from loki.base.path_exists import path_exists
from loki.recognition.failure import recognize
from support.tool_places import NODE, go, make, vitest, write


def eslint(root: Path) -> list[str]:
    config = 'export default [{files: ["**/*.js"], rules: {"no-undef": "error"}}];\n'
    write(root, {"src/components/Button.js": "total;\n", "eslint.config.mjs": config})
    return [str(NODE / ".bin" / "eslint"), "."]


REAL: list[tuple[Callable[[Path], list[str]], str]] = [
    (eslint, "src/components/Button.js"),
    (go, "cart/cart_test.go"),
    (make, "src/cart.c"),
    (vitest, "packages/a/src/a.test.js"),
]


@pytest.mark.parametrize(("tool", "file"), REAL, ids=lambda one: getattr(one, "__name__", None))
def test_a_real_tools_place_is_a_file_of_the_project(
    tmp_path: Path, tool: Callable[[Path], list[str]], file: str
) -> None:
    root = tmp_path.resolve()
    command = tool(root)
    if shutil.which(command[0]) is None or (tool is make and shutil.which("cc") is None):
        pytest.skip(f"{command[0]} is not installed")
    (root / "node_modules").symlink_to(NODE)
    ran = subprocess.run(
        command,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    failure = recognize(ran.stdout, " ".join(command), root=root, exists=path_exists(root))
    assert failure.path == file, ran.stdout.decode()
