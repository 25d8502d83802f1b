"""A run that ends before it begins: a conftest.py, or a plugin that it names, cannot be imported.

pytest then gives up before it configures any plugin, so that nobody but the hook that loads them hears
of it. What `loki.pytest_plugin.controller` does over a run is done here at once: the run is kept, with
the one error that it had, and shown above what pytest says.
"""

from __future__ import annotations

import linecache
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, TextIO

import pytest

from loki.decision.suites.suite_summary import summarize
from loki.memory.suites.suite_history import SuiteFailure, SuiteHistory, SuiteRun
from loki.pytest_plugin.activation import place_in
from loki.pytest_plugin.controller import RunRecord, Tally, keep_unfinished
from loki.pytest_plugin.error_guard import Guard
from loki.pytest_plugin.failure_recognition import Recognizer
from loki.pytest_plugin.options import options_of
from loki.pytest_plugin.report_file import publish
from loki.pytest_plugin.run_journal import Journal
from loki.pytest_plugin.terminal import show

if TYPE_CHECKING:
    from _pytest._code.code import Traceback

_CONFTEST = "ConftestImportFailure"  # pytest has no public name for it, nor for the next
_CODES = {_CONFTEST: 4, "UsageError": 4, "PluginImportFailure": 3}
"""Exit codes that pytest gives for them, by the name of what it raises; 1 where it shows a traceback."""

_WORKER = "__channelexec__"
"""Name of the module in which pytest-xdist runs a worker."""

_INNER = re.compile(r"[/\\](?:_pytest|pluggy|importlib)[/\\]|^<frozen importlib")


class Page:
    """Writes lines as they are; pytest has no terminal reporter yet.

    Args:
        stream: where to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.width = shutil.get_terminal_size().columns

    def write_line(self, line: str, **_markup: bool) -> None:
        """Write a line."""
        self.write(f"{line}\n")

    def write(self, content: str, **_markup: bool) -> None:
        """Write part of a line."""
        self._stream.write(content)

    def section(self, title: str, sep: str = "=", **_markup: bool) -> None:
        """Write a ruler with a title."""
        self.write_line(f" {title} ".center(self.width, sep))


def report_startup_failure(
    config: pytest.Config, said: Mapping[str, object], error: Exception
) -> None:
    """Keep the run and say what ended it, unless that is something else than an import.

    Args:
        config: pytest's, not configured yet.
        said: options of its command line, by name.
        error: that pytest is about to tell.
    """
    report = report_of(config, error)
    if report is None or _is_worker():
        return
    guard = Guard()
    guard(_tell, config, said, report, _CODES.get(type(error).__name__, 1), guard)
    for line in guard.lines:
        sys.stderr.write(f"{line}\n")


def report_of(config: pytest.Config, error: Exception) -> pytest.CollectReport | None:
    """What pytest would report if the file had been imported later; None: nothing failed to import.

    Args:
        config: pytest's, not configured yet.
        error: that pytest is about to tell.
    """
    if type(error).__name__ == _CONFTEST:
        path, frame = Path(error.path), ""  # type: ignore[attr-defined]
        cause: BaseException = error.cause  # type: ignore[attr-defined]
    else:
        asked = next(_missing_plugins(config), None)
        if asked is None:
            return None  # a plugin refuses to go on
        path, frame = asked
        cause = error.__cause__ or error
    if isinstance(cause, (pytest.UsageError, pytest.exit.Exception)):
        return None  # nor did this fail: it says that it does not go on
    found = pytest.ExceptionInfo.from_exception(cause)
    text = f"{frame}{found.getrepr(style='short', tbfilter=_outside)}"
    nodeid = Path(os.path.relpath(path, config.rootpath)).as_posix()
    return pytest.CollectReport(nodeid, "failed", text, None)


def _tell(
    config: pytest.Config,
    said: Mapping[str, object],
    report: pytest.CollectReport,
    exit_code: int,
    guard: Guard,
) -> None:
    place, options = place_in(config), options_of(config, said)
    recognizer = Recognizer(place)
    record = RunRecord(place, options.reports)
    run = _run(record, recognizer.failing(report), exit_code)
    history = SuiteHistory(record.store(guard.warn))
    died = keep_unfinished(record.folder, history, lambda: recognizer)
    summary = summarize(run, history)
    publish(summary, options.reports, guard.warn)
    if not said.get("no_summary"):
        page = Page(sys.stderr)
        show(summary, page, width=page.width)
        for line in died:
            page.write_line(line)
    history.keep(run)


def _run(record: RunRecord, failing: SuiteFailure, exit_code: int) -> SuiteRun:
    """A run of one error, in which no test had its turn."""
    tally, journal = Tally(), Journal()
    tally.failed(failing)
    try:
        record.start(journal, has_workers=False)
        return record.finish(tally, counts={"error": 1}, interrupted=True, exit_code=exit_code)
    finally:
        journal.remove()


def _missing_plugins(config: pytest.Config) -> Iterator[tuple[Path, str]]:
    """Files whose ``pytest_plugins`` names what was not loaded; the line, as pytest writes one of a stack."""
    manager = config.pluginmanager
    for module in manager.get_plugins():
        if not isinstance(module, ModuleType) or not module.__file__:
            continue
        named = getattr(module, "pytest_plugins", None) or ()
        for name in named.split(",") if isinstance(named, str) else named:
            if manager.get_plugin(name) is None and not manager.is_blocked(name):
                yield Path(module.__file__), _frame(module.__file__, name)


def _frame(file: str, name: str) -> str:
    naming = re.compile(rf"\b{re.escape(name)}\b")
    lines = linecache.getlines(file)
    number = next((n for n, line in enumerate(lines, 1) if naming.search(line)), 1)
    return f"{file}:{number}: in <module>\n    {linecache.getline(file, number).strip()}\n"


def _outside(found: pytest.ExceptionInfo[BaseException]) -> Traceback:
    """The stack without what pytest and Python do to import a file."""
    return found.traceback.filter(lambda entry: not _INNER.search(os.fspath(entry.path)))


def _is_worker() -> bool:
    """Whether this is a worker of pytest-xdist: the process that started it is the one to tell."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != _WORKER:
        frame = frame.f_back
    return frame is not None
