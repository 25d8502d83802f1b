"""The guard of the first tier: a test that starts a process or takes over a second fails, and hears where to go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT


def run(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest on one module, in a folder whose tests are guarded as those of the first tier."""
    (folder / "conftest.py").write_text((ROOT / "tests/py/conftest.py").read_text())
    (folder / "test_it.py").write_text(test)
    plain = {
        name: value for name, value in os.environ.items() if name not in {"CI", "LOKI_EXAMPLES"}
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        env={**plain, "PYTHONPATH": str(ROOT / "tests"), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


STARTS = {
    "subprocess": "import subprocess\nsubprocess.run(['true'])",
    "fork": "import os\nif not os.fork(): os._exit(0)",
    "posix_spawn": "import os\nos.posix_spawn('/bin/true', ['true'], {})",
    "system": "import os\nos.system('true')",
    "multiprocessing": "import multiprocessing as m\nm.get_context('fork').Process(target=print).start()",
    "multiprocessing, spawned": "import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()",
    "asyncio": "import asyncio\nasyncio.run(asyncio.create_subprocess_exec('true'))",
    "an error that is taken": "import subprocess\ntry: subprocess.run(['true'])\nexcept BaseException: pass",
    "a thread": "import os, threading\none = threading.Thread(target=os.system, args=['true'])\n"
    "threading.excepthook = lambda _: None\none.start()\none.join()",
}


@pytest.mark.parametrize("way", STARTS)
def test_who_starts_a_process_is_sent_to_the_second_tier(way: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in STARTS[way].splitlines())
    done = run(tmp_path, f"def test_it():\n{body}")
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
    assert "start no process: move it to tests/system/processes" in done.stdout


def test_a_fixture_is_heard_too(tmp_path: Path) -> None:
    fixture = "import os, pytest\n@pytest.fixture\ndef one(): os.system('true')\n"
    done = run(tmp_path, f"{fixture}def test_it(one): pass\n")
    assert done.returncode == 1
    assert "move it to tests/system/processes" in done.stdout


LONG = "import time\ndef test_it():\n    end = time.process_time() + 4\n    while time.process_time() < end: pass\n"


def test_who_takes_over_a_second_is_sent_too(tmp_path: Path) -> None:
    done = run(tmp_path, LONG)
    assert done.returncode == 1
    assert "takes at most 1 s: make it quicker, or move it to tests/system/slow" in done.stdout


def test_with_all_examples_a_test_may_take_longer(tmp_path: Path) -> None:
    assert run(tmp_path, LONG, LOKI_EXAMPLES="all").returncode == 0


def test_waiting_is_no_work(tmp_path: Path) -> None:
    """What a busy machine or a sleep takes is not counted."""
    done = run(tmp_path, "import time\ndef test_it(): time.sleep(1.2)\n")
    assert done.returncode == 0, done.stdout
