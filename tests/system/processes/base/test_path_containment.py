"""Names that lead nowhere else, and removal that stays below a folder of loki's own: with processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loki.base import path_containment
from support.forked import exit_code, fork

NOBODY = 65534
"""Of no file."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / ".loki"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("mine")
    return folder


def is_whole(own: Path) -> bool:
    return (own.parent / "outside" / "precious").read_text() == "mine"


def test_a_mount_is_not_emptied(own: Path) -> None:
    """What is mounted in a folder is another's: the rest goes, and it is told."""
    script = (
        "import subprocess, sys; from loki.base import path_containment\n"
        "subprocess.run(['mount', '--bind', sys.argv[2], sys.argv[1] + '/tree/d/m'], check=True)\n"
        "path_containment.remove_tree(sys.argv[1], 'tree')"
    )
    (own / "tree" / "d" / "m").mkdir(parents=True)
    (own / "tree" / "d" / "file").touch()
    outside = own.parent / "outside"
    inside = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", script]
    if subprocess.run([*inside[:4], "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    done = subprocess.run(
        [*inside, str(own), str(outside)], check=False, capture_output=True, text=True
    )
    if "CalledProcessError" in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert "StoreError: could not remove" in done.stderr
    assert is_whole(own)
    assert not (own / "tree" / "d" / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody who may not")
def test_read_only_and_unreadable_folders_go(own: Path) -> None:
    for name, mode in (("a", 0o500), ("b", 0o000), ("c", 0o300)):
        (own / "tree" / name / "in").mkdir(parents=True)
        (own / "tree" / name / "in" / "file").touch()
        (own / "tree" / name / "in").chmod(mode)
        (own / "tree" / name).chmod(mode)
    for path in (own.parent, own, *own.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    above = os.open(own.parent, os.O_RDONLY)

    def removes() -> None:
        os.fchdir(above)  # the folders above are root's alone
        os.setuid(NOBODY)
        path_containment.remove_tree(own.name, "tree")

    child = fork(removes)
    os.close(above)
    assert exit_code(child) == 0
    assert os.listdir(own) == []
