"""The Python that a project's checks run in: which program it is, and what it says of itself.

Nothing of the project is executed; the program is asked once, in a folder that holds nothing of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from loki.action.processes import process
from loki.action.processes.command_line import find_program
from loki.action.processes.sandbox import read_only
from loki.action.strategies.dependency.ecosystem import Ecosystem, ecosystems
from loki.base.error import LokiError

SECONDS = 10.0
"""Until an interpreter that does not answer is given up; chosen, not measured."""

_ASK = """
import json, sys
print(json.dumps({
    "path": [p for p in sys.path if p],
    "builtin": sorted(set(sys.builtin_module_names) | set(getattr(sys, "stdlib_module_names", ()))),
    "version": list(sys.version_info[:2]),
}))
"""


def of_project(root: Path) -> str | None:
    """The program that a project's checks would run as ``python``; None where there is none.

    Of the project's own environment, else of the one that is active, else the one on the ``PATH``.
    """
    on_path = (found for name in _python().interpreters if (found := find_program(name, root)))
    return own(root) or next(on_path, None)


def own(root: Path) -> str | None:
    """That of the project's own environment, or of the one that is active; None: there is neither."""
    active = os.environ.get("VIRTUAL_ENV")
    places = [
        *(root / name for name in _python().environments),
        *([Path(active)] if active else []),
    ]
    whole = (place for place in places if (place / "pyvenv.cfg").is_file())
    folders = (place / folder for place in whole for folder in ("bin", "Scripts"))
    return next((program for folder in folders for program in beside(folder)), None)


def beside(folder: Path) -> Iterator[str]:
    """The interpreters in a folder."""
    paths = (folder / name for name in _python().interpreters)
    return (str(path) for path in paths if path.is_file())


def ask(program: str) -> dict[str, Any] | None:
    """An interpreter's ``path``, ``builtin`` modules and ``version``; None where it does not answer."""
    with suppress(TimeoutError):  # of a machine at load: the next one may have its answer
        return _ask(program, stamp(program))
    return None


def stamp(path: str) -> float:
    """When a file or folder was changed; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=8)
def _ask(program: str, _stamp: float) -> dict[str, Any] | None:
    # PYTHONPATH counts, as it does for checks; the current folder does not.
    try:
        # It runs what stands in the project's environment, which a test may have written.
        box = read_only()
        finished = process.run((program, "-c", _ASK), cwd="/", timeout=SECONDS, box=box)
        if finished.timed_out:
            raise TimeoutError
        said = json.loads(finished.stdout) if finished.is_success else None
    except TimeoutError:
        raise
    except (LokiError, ValueError, OSError):
        return None
    return said if isinstance(said, dict) else None


@cache
def _python() -> Ecosystem:
    return next(known for known in ecosystems() if known.interpreters)
