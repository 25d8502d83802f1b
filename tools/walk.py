"""How a task walks through the house: which modules it passes, how often it changes between them, and climbs.

``python -m tools.walk`` submits a task in a new project and has a worker bring it to an end, each in this
process under ``sys.setprofile``, and prints for both: modules passed, stays (runs of calls in one module) and
climbs (a call from a module into one of a layer above it).
"""

from __future__ import annotations

import gc
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tools import house

BARS = {"loki submit": 17, "loki work": 97}
"""Most modules that a walk may pass; to fall."""


@dataclass
class Walk:
    """What was seen of one walk.

    Attributes:
        modules: those that were passed, in the order of the first visit.
        stays: how often another module was entered than the one before.
        climbs: how often a module called one of a layer above its own.
    """

    modules: dict[str, None] = field(default_factory=dict)
    stays: int = 0
    climbs: int = 0
    _last: str = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of a call of a function."""
        if event != "call" or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return
        here = module_of(frame)
        if here is None:
            return
        caller = frame.f_back
        there = module_of(caller) if caller is not None else None
        if there is not None and rank(here) > rank(there):
            self.climbs += 1
        if here != self._last:
            self.stays += 1
            self._last = here
        self.modules.setdefault(here)


def module_of(frame: FrameType) -> str | None:
    """The module of loki that a frame runs in; what stands in ``base`` is everybody's, and no stop."""
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.startswith("loki.") and not name.startswith("loki.base.") else None


def rank(module: str) -> int:
    """The layer of a module."""
    try:
        return house.layer(module.split(".")[1])
    except KeyError:
        return 0


def watched(work: Callable[[], object]) -> Walk:
    """What a piece of work passes, in all threads that it begins."""
    walk = Walk()
    gc.collect()
    gc.disable()  # what is left of other work is not passed by this one
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()
    return walk


def command(*words: str) -> Callable[[], None]:
    """A command of loki's, in this process."""

    def run() -> None:
        from loki.cli.app import app

        app(list(words), standalone_mode=False)

    return run


def walks() -> dict[str, Walk]:
    """Both walks, in a new project."""
    agent = "sh -c 'echo done > note.txt'"
    with tempfile.TemporaryDirectory() as folder:
        where = ["--project", folder]
        (Path(folder) / "readme.txt").write_text("a project\n")
        check = ["--check", "test -f note.txt", "--agent-command", agent]
        return {
            "loki submit": watched(command("submit", "--task", "write a note", *check, *where)),
            "loki work": watched(command("work", *where)),
        }


def main() -> int:
    """Print both walks."""
    walks()  # what is imported late is there then
    for name, walk in walks().items():
        print(
            f"{name:12} {len(walk.modules):4} modules {walk.stays:6} stays {walk.climbs:5} climbs"
        )
        if "--modules" in sys.argv:
            print("\n".join(f"    {module}" for module in walk.modules))
    return 0


if __name__ == "__main__":
    sys.exit(main())
