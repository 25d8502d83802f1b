"""Whether an attempt came nearer: fewer tests that are not mended, and no other way: with processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = """\
import os, re, pathlib
path = pathlib.Path("calc.py")
path.write_text(re.sub(r"return -\\d", f"return {os.environ['LOKI_ATTEMPT']}", path.read_text(), count=1))
print("mended one")
"""


@pytest.mark.parametrize(("extra", "attempts"), [([], 6), (["--max-attempts", "5"], 5)])
def test_one_test_mended_by_each_attempt(tmp_path: Path, extra: list[str], attempts: int) -> None:
    functions = "".join(f"def f{n}():\n    return -{n}\n\n\n" for n in range(1, 7))
    tests = "".join(f"def test_f{n}():\n    assert calc.f{n}() == {n}\n\n\n" for n in range(1, 7))
    (tmp_path / "calc.py").write_text(functions)
    (tmp_path / "test_calc.py").write_text(f"import calc\n\n\n{tests}")
    agent = tmp_path.parent / f"{tmp_path.name}-agent.py"
    agent.write_text(AGENT)
    command = [sys.executable, "-m", "loki", "run", "--json", "--task", "mend them", *extra]
    given = [f"{sys.executable} -m pytest -q -p no:cacheprovider", f"{sys.executable} {agent}"]
    ran = subprocess.run(
        [*command, "--check", given[0], "--agent-command", given[1]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = json.loads(ran.stdout)
    assert outcome["attempts"] == attempts, ran.stderr
    assert outcome["status"] == ("failed" if extra else "success")
