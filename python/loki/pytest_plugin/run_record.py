"""A run of a test suite on its way to becoming a `loki.memory.suites.suite_run.SuiteRun`."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loki.pytest_plugin.project_root import FOLDER

if TYPE_CHECKING:
    from datetime import datetime

    from loki.action.changes.code_state import CodeState
    from loki.memory.store import ForgivingStore
    from loki.memory.suites.suite_run import SuiteRun
    from loki.pytest_plugin.project_root import ProjectRoot
    from loki.pytest_plugin.results_tally import Tally
    from loki.pytest_plugin.run_journal import Journal

_METADATA = (".dist-info", ".egg-info")


class RunRecord:
    """When a run began, which code it ran, where it is kept.

    Args:
        place: the run's project.
        reports: files that the run writes itself, which are no part of the code.
    """

    def __init__(self, place: ProjectRoot, reports: Iterable[Path] = ()) -> None:
        self._place = place
        self._id = secrets.token_hex(8)
        self._ignored = frozenset(os.path.abspath(path) for path in reports)
        self._started: datetime | None = None
        self._began = 0.0
        self._code: CodeState | None = None
        self._asking: threading.Thread | None = None

    def start(self, journal: Journal, *, has_workers: bool) -> None:
        """The run begins: git is asked beside it, for that takes as long as some tests.

        Args:
            journal: is begun, and told what code this is.
            has_workers: the tests run in other processes.
        """
        from loki.base.manual_clock import clock_of
        from loki.base.time import isoformat
        from loki.memory.suites.suite_run import SuiteRun

        self._started = clock_of(os.environ).now()
        self._began = time.perf_counter()
        known = SuiteRun(
            id=self._id, started_at=isoformat(self._started), environment=_environment()
        )
        journal.open(self.folder, known, has_workers=has_workers)
        self._asking = threading.Thread(target=self._ask, args=(journal,), name="loki", daemon=True)
        self._asking.start()

    def finish(
        self, tally: Tally, *, counts: Mapping[str, int], interrupted: bool, exit_code: int
    ) -> SuiteRun:
        """The run as it is kept.

        Args:
            tally: what became of its tests.
            counts: how many of them came out how.
            interrupted: not all of them ran.
            exit_code: pytest's.
        """
        from loki.base.time import isoformat
        from loki.memory.suites.suite_run import SuiteRun

        if self._asking is not None:
            self._asking.join()
        code = self._code
        return SuiteRun(
            id=self._id,
            started_at=isoformat(self._started) if self._started else "",
            duration_ms=round(1000 * (time.perf_counter() - self._began)),
            branch=code.branch if code else "",
            commit=code.commit if code else "",
            tree=code.tree if code else "",
            environment=_environment(),
            passed=tally.passing(self._place.prefix),
            failures=tuple(tally.failures),
            reruns=tuple(tally.reruns),
            counts=counts,
            interrupted=interrupted,
            exit_code=exit_code,
        )

    def store(self, warn: Callable[[str], None]) -> ForgivingStore:
        """The project's store, which goes on where the disk does not."""
        from loki.memory.store import ForgivingStore
        from loki.stores import open_store

        return ForgivingStore(open_store(self.folder), warn)

    @property
    def folder(self) -> Path:
        """The project's ``.loki``."""
        return self._place.project / FOLDER

    def _ask(self, journal: Journal) -> None:
        from loki.action.changes.code_state import code_state

        code = self._code = code_state(os.fspath(self._place.project), self._ignored)
        journal.write("code", {"branch": code.branch, "commit": code.commit, "tree": code.tree})


def _environment() -> str:
    """Interpreter, platform and what is installed: a test may pass with one and fail with another."""
    version = ".".join(map(str, sys.version_info[:2]))
    return f"{platform.python_implementation()} {version} {sys.platform} {installed(sys.path)}"


def installed(folders: Iterable[str]) -> str:
    """A hash of which distributions are installed, by the names of their metadata.

    Two environments of tox may differ in nothing else. What they hold is not read: that takes long.

    Args:
        folders: where modules are looked for.

    Example:
        >>> installed(["/nowhere"]) == installed([])
        True
    """
    names: set[str] = set()
    for folder in folders:
        with suppress(OSError):
            names.update(one for one in os.listdir(folder or ".") if one.endswith(_METADATA))
    return hashlib.sha256("\n".join(sorted(names)).encode("utf-8", "replace")).hexdigest()[:8]
