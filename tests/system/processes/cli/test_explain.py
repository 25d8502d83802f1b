"""`loki explain` of output that is there already: what it reads, what it says, what it refuses: with processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.command import LOKI, Ended, loki

ERROR = 'shop/till.py:3: error: Name "price" is not defined  [name-defined]\n'
OUTPUT = "".join(f"step {n} done\n" for n in range(1, 12)) + ERROR


def explain(*arguments: str | Path, cwd: Path, data: bytes = b"") -> Ended:
    return loki("explain", *map(str, arguments), cwd=cwd, data=data)


def test_what_may_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "secret.log"
    file.write_text(OUTPUT)
    file.chmod(0)
    # Nothing is forbidden to the superuser unless they give that privilege away.
    humbly = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0 and not shutil.which(humbly[0]):
        pytest.skip("needs setpriv, or a user that is not the superuser")
    command = [*(humbly if os.geteuid() == 0 else []), *LOKI, "explain", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"loki: cannot read {file}: Permission denied\n"


def test_an_explanation_goes_to_a_file(tmp_path: Path) -> None:
    code, out, err = explain("--text", OUTPUT, "-o", "why.txt", cwd=tmp_path)
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "why.txt").read_text() == explain("--text", OUTPUT, cwd=tmp_path)[1]
    script = "echo 'TypeError: x is no till' >&2; exit 5"
    command = [*LOKI, "explain", "--json", "-o", "why.json", "--"]  # its streams are the process's
    done = subprocess.run(
        [*command, "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, "", "TypeError: x is no till\n")
    said = json.loads((tmp_path / "why.json").read_text())
    assert (said["exit_code"], said["source"], said["verdict"]) == (5, "command", "failed")
    subprocess.run([*command, "true"], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "why.json").read_text())["verdict"] == "passed"
