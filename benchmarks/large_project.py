"""Measures what an attempt costs in a large project: `python -m benchmarks.large_project`.

A project of generated Python and JavaScript packages; a command-line agent that changes one file an
attempt, in a copy; a check that fails twice and then passes. Says, for each attempt, the time by the
clock, loki's own processor time and that of the programs that it starts (git, agent, check), beside one
look at every file with nothing but `os.scandir` and `stat`. The first attempt writes the copy, the last
one looks for regressions; the end of the task removes the copy.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import loki
from loki.agents.command_agent import CommandAgent

AIM = 1.0
"""Seconds of loki's own processor time that an attempt after the first may take."""

NEEDED = 3
"""Attempts until the check passes."""

AGENT = """
from pathlib import Path
at = Path("value.py")
at.write_text(f"VALUE = {int(at.read_text().split()[-1]) + 1}\\n")
"""

CHECK = f"""
import value
assert value.VALUE >= {NEEDED}, f"value is {{value.VALUE}}: the {{chr(97 + value.VALUE) * 9}} is missing"
"""


def main(words: list[str]) -> int:
    """Runs the task in a plain folder and in a repository; 1 where the aim is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--in", dest="where", default=".", help="folder on the disk to measure on")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    logging.getLogger("loki").setLevel(logging.ERROR)
    rows = []
    for kind in ("plain", "git"):
        with tempfile.TemporaryDirectory(prefix="loki-bench-", dir=options.where) as folder:
            rows.append(measure(Path(folder, "project"), options.files, git=kind == "git"))
    sys.stdout.write(json.dumps(rows, indent=1) + "\n" if options.json else told(rows))
    later = [one["own_s"] for row in rows for one in row["attempts"][1:]]
    return 0 if max(later) <= AIM else 1


def measure(project: Path, files: int, *, git: bool) -> dict[str, Any]:
    """What the attempts of one task take."""
    make_project(project, files, git=git)
    agent = Watched([sys.executable, "agent.py"])
    with loki.Workspace(project).task(
        "raise the value", checks=[f"{sys.executable} check.py"]
    ) as task:
        outcome = task.run(agent)
        agent.moments.append(moment())
    agent.moments.append(moment())
    assert (outcome.status, outcome.attempts) == ("success", NEEDED), outcome
    pairs = zip(agent.moments, agent.moments[1:], strict=False)
    names = ("wall_s", "own_s", "programs_s")
    *attempts, end = (
        {name: round(after - before, 2) for name, before, after in zip(names, *pair, strict=True)}
        for pair in pairs
    )
    return {
        "files": files,
        "git": git,
        "look_s": round(min(look(project) for _ in range(3)), 3),
        "attempts": attempts,
        "end": end,
    }


class Watched(CommandAgent):
    """Notes what has been spent whenever it is asked."""

    moments: list[tuple[float, ...]]

    def __init__(self, command: list[str]) -> None:
        """Args: command: its words."""
        super().__init__(command)
        self.moments = []

    def propose(self, briefing: loki.Briefing) -> Any:
        """As it does."""
        self.moments.append(moment())
        return super().propose(briefing)


def moment() -> tuple[float, ...]:
    """Seconds: the clock, this process's processor time, that of its children that have ended."""
    times = os.times()
    return time.perf_counter(), time.process_time(), times.children_user + times.children_system


def look(project: Path) -> float:
    """Seconds of the processor that one bare look at all files takes."""
    begin, pending = time.process_time(), [str(project)]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
    return time.process_time() - begin


def make_project(project: Path, files: int, *, git: bool) -> None:
    """Packages of 400 modules, each module importing from another."""
    packages = max(1, files // 400)
    for number in range(files):
        package, module = divmod(number, 400)
        stem = project / f"package{package}" / f"part{module // 40}" / f"module{module % 40}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        other = f"package{(package + 1) % packages}.part0"
        python = f"from {other} import module1\n\n\ndef f{number}(x):\n    return x + {number}\n"
        script = f"import {{ a }} from './module1.js'\nexport const f{number} = {number}\n"
        stem.with_suffix(".py" if number % 3 else ".js").write_text(
            python if number % 3 else script
        )
    for name, text in {"agent.py": AGENT, "check.py": CHECK, "value.py": "VALUE = 0\n"}.items():
        (project / name).write_text(text)
    if git:
        commit = ("-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "first")
        for words in (("init", "-q"), ("add", "-A"), commit):
            subprocess.run(["git", "-C", str(project), *words], check=True)


def told(rows: list[dict[str, Any]]) -> str:
    """The figures, for a person."""
    lines = []
    for row in rows:
        lines.append(
            f"{row['files']:,} files{' in git' if row['git'] else ''}; "
            f"a bare look at them: {row['look_s']:.2f} s of the processor"
        )
        told = [(f"attempt {number}", one) for number, one in enumerate(row["attempts"], 1)]
        lines += [
            f"  {name}: {one['wall_s']:6.2f} s, of the processor {one['own_s']:.2f} s, "
            f"programs {one['programs_s']:.2f} s"
            for name, one in (*told, ("its end  ", row["end"]))
        ]
    return "\n".join([*lines, f"aim after the first: {AIM:g} s of the processor"]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
