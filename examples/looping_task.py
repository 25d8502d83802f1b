"""A small project with a defect, tools that work on it, and a model's next steps: what examples share.

The project and pytest are real. The model is a script, so that the examples run without a key and
end the same way each time: it tries the same fix again and again, as models do, until somebody tells
it that this led nowhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GOAL = "The tests of stats.py fail. Fix stats.py and run the tests until they pass."

STATS = """def average(numbers):
    return sum(numbers) / len(numbers)
"""
TESTS = """from stats import average


def test_average_of_some():
    assert average([1, 2, 3]) == 2


def test_average_of_none():
    assert average([]) == 0
"""
SAME_FIX = """def average(numbers):
    return sum(numbers) / len(numbers) or 0
"""
ANOTHER_FIX = """def average(numbers):
    if not numbers:
        return 0
    return sum(numbers) / len(numbers)
"""

PATIENCE = 20
"""Requests to the model after which whoever started the agent gives up."""


@dataclass(frozen=True)
class Step:
    """What the model does next: it calls a tool, or says that it has finished.

    Attributes:
        tool, arguments: the call; "": none.
        text: its last words.
    """

    tool: str = ""
    arguments: dict[str, str] | None = None
    text: str = ""


@dataclass
class Count:
    """What a run took."""

    requests: int = 0
    test_runs: int = 0


class Task:
    """The project in a folder, the tools, and how often what was used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = Count()
        (folder / "stats.py").write_text(STATS, "utf-8")
        (folder / "test_stats.py").write_text(TESTS, "utf-8")

    def write_file(self, path: str, content: str) -> str:
        """Write a file of the project."""
        (self.folder / path).write_text(content, "utf-8")
        return f"wrote {path}"

    def run_tests(self) -> str:
        """Run the project's tests."""
        self.count.test_runs += 1
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return f"exit code {done.returncode}\n{done.stdout}"

    def next_step(self, heard: Sequence[str], *, listens: bool = True) -> Step:
        """What the model does.

        Args:
            heard: what the tools answered and what else it was told, in order.
            listens: it does otherwise once it is told that this led nowhere.
        """
        self.count.requests += 1
        done = [one for one in heard if one.startswith(("wrote ", "exit code "))]
        if done and done[-1].startswith("exit code 0"):
            return Step(text="Fixed: all tests pass.")
        if done and done[-1].startswith("wrote "):
            return Step("run_tests", {})
        is_told = any("Go about it another way" in one for one in heard)
        content = ANOTHER_FIX if is_told and listens else SAME_FIX
        return Step("write_file", {"path": "stats.py", "content": content})


@contextmanager
def task() -> Iterator[Task]:
    """A task in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Task(Path(folder))


def compare(run: Callable[[Task, bool, bool], str]) -> None:
    """Run the same agent three times and print what became of it.

    Args:
        run: runs the agent on a task, with loki or without, with a model that listens or does not;
            how it ended.
    """
    print(f"{'':24}{'requests':>9}{'test runs':>11}  ended")
    for name, with_loki, listens in (
        ("without loki", False, True),
        ("with loki", True, True),
        ("with loki, deaf model", True, False),
    ):
        with task() as made:
            ended = run(made, with_loki, listens)
            print(f"{name:24}{made.count.requests:>9}{made.count.test_runs:>11}  {ended}")
