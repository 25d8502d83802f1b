"""What a run of tests writes while it goes on, so that one that dies without a word is known. Pure.

One JSON object with one key a line: ``run`` (what is known at the start), ``code``, ``collect`` and
``start`` (a file or a test begins), ``end`` (only where tests run side by side), ``fail``,
``timeout``. A line that is torn or unknown is left out. Why it is so: ``docs/design/tests.md``. Under
test: ``tests/py/memory/suites/test_suite_journal.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

from loki.memory.suites.suite_history import SuiteFailure, SuiteRun

VERSION = 1

Entry: TypeAlias = Literal["run", "code", "collect", "start", "end", "fail", "timeout"]
"""What a line tells."""


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run of tests whose process is gone.

    Attributes:
        run: what is known of it, without what was running; ``failures`` has also the tries that were
            made again, in the order in which they came.
        running: tests that had begun and not ended.
        collecting: the file that was being collected; "" where tests were running already.
        timeouts: what pytest-timeout's thread left of tests that it ended the process for, by node id.
        has_workers: the tests ran in other processes (pytest-xdist): they did not end this one.
        began: seconds since the epoch; 0: not known.
    """

    __test__: ClassVar[bool] = False

    run: SuiteRun
    running: tuple[str, ...] = ()
    collecting: str = ""
    timeouts: Mapping[str, str] = field(default_factory=dict)
    has_workers: bool = False
    began: float = 0.0


def journal_line(entry: Entry, value: Any) -> bytes:
    r"""One line of a journal, ASCII whatever is in it.

    Args:
        entry: what it tells.
        value: JSON-able.

    Example:
        >>> journal_line("start", "test_a.py::test_ä")
        b'{"start": "test_a.py::test_\\u00e4"}\n'
    """
    return f'{{"{entry}": {json.dumps(value)}}}\n'.encode("ascii")


def opening(run: SuiteRun, *, began: float, has_workers: bool) -> bytes:
    """The first line of a journal.

    Args:
        run: what is known of the run when it begins.
        began: seconds since the epoch.
        has_workers: the tests run in other processes.
    """
    known = {"id": run.id, "started_at": run.started_at, "environment": run.environment}
    more = {"version": VERSION, "began": began, "has_workers": has_workers}
    return journal_line("run", {**known, **more})


def unfinished(lines: Iterable[bytes]) -> UnfinishedRun | None:
    """What a journal tells.

    Args:
        lines: of the journal.

    Returns:
        What is known; None where not even the first line can be read.

    Raises:
        ValueError: a newer loki wrote it.

    Example:
        >>> lines = [b'{"run": {"id": "a"}}', b'{"start": "test_a.py::test_x"}', b'{"sta']
        >>> unfinished(lines).running
        ('test_a.py::test_x',)
    """
    entries = filter(None, map(_entry, lines))
    entry, known = next(entries, ("", None))
    if entry != "run" or not isinstance(known, dict):
        return None
    if known.get("version", VERSION) != VERSION:
        raise ValueError(f"found version {known['version']!r}, expected {VERSION}")
    seen = _Seen(bool(known.get("has_workers")))
    for entry, value in entries:
        with suppress(ValueError, KeyError, TypeError):
            seen.add(entry, value)
    run = SuiteRun.from_dict({"id": "", **known, **seen.code})
    return UnfinishedRun(
        replace(run, failures=tuple(seen.failures), interrupted=True),
        tuple(seen.running),
        seen.collecting,
        seen.timeouts,
        seen.has_workers,
        _seconds(known.get("began")),
    )


@dataclass(slots=True)
class _Seen:
    """What the lines of a journal have told so far."""

    has_workers: bool
    running: dict[str, None] = field(default_factory=dict)
    collecting: str = ""
    timeouts: dict[str, str] = field(default_factory=dict)
    failures: list[SuiteFailure] = field(default_factory=list)
    code: dict[str, str] = field(default_factory=dict)

    def add(self, entry: str, value: Any) -> None:
        """One more line; ValueError, KeyError or TypeError: it is damaged."""
        if entry == "start":
            if not self.has_workers:  # tests follow one another: the one before has ended
                self.running.clear()
            self.running[str(value)] = None
            self.collecting = ""
        elif entry == "end":
            self.running.pop(str(value), None)
        elif entry == "collect":
            self.collecting = str(value)
        elif entry == "fail":
            self.failures.append(SuiteFailure.from_dict(value))
        elif entry == "timeout":
            self.timeouts[str(value["test"])] = str(value["text"])
        elif entry == "code":
            self.code = {name: str(value[name]) for name in ("branch", "commit", "tree")}


def timeouts_of(lines: Iterable[bytes]) -> dict[str, str]:
    """The tests that pytest-timeout's thread ended a process for, and what it left of each."""
    found = {}
    for entry, value in filter(None, map(_entry, lines)):
        if entry == "timeout" and isinstance(value, dict):
            found[str(value.get("test"))] = str(value.get("text"))
    return found


def _entry(line: bytes) -> tuple[str, Any] | None:
    """What a line tells; None where it cannot be read."""
    with suppress(ValueError, RecursionError):
        told = json.loads(line)
        if isinstance(told, dict) and len(told) == 1:
            return next(iter(told.items()))
    return None


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
