"""Asks a check's command for results per test, in the way that its tool is asked, and reads them.

The command's meaning does not change: its exit code decides as before, what it prints stays text for
people, and what cannot be asked runs as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loki.action.checks import results
from loki.action.checks.launched_program import Invocation
from loki.action.checks.results import Results
from loki.base import path_containment
from loki.base.glob import matches
from loki.recognition.site import ResultsRequest, results_requests

REPORTERS = Path(__file__).parent / "results"
"""Reporters of our own, for runners that bring none which prints for people and writes a report."""

MAX_BYTES = 64 * 1024 * 1024
"""Of a report; a larger one is not read. Chosen, not measured."""

_Stamps = Mapping[Path, "tuple[int, int]"]


@dataclass(frozen=True)
class Asked:
    """A command that reports its tests, as far as it can be asked to.

    Attributes:
        command: the words to run.
        environment: variables to set.
        is_altered: it has words that the check's has not, which its program may not know.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_altered: bool = False
    _root: Path = Path()
    _written: tuple[tuple[str, Path], ...] = ()
    _printed: tuple[str, ...] = ()
    _before: Mapping[str, _Stamps] = field(default_factory=dict)
    _globs: tuple[tuple[str, str], ...] = ()

    def read(self, output: bytes) -> tuple[Results | None, bytes]:
        """(The results, None where there are none; what the command printed, as text for people).

        Args:
            output: what it printed.
        """
        root, found = str(self._root), []
        for format_, path in (*self._written, *self._rewritten()):
            content = _content(path)
            found.append(content and results.read(format_, content, root))
        for format_ in self._printed:
            found.append(results.read(format_, output, root))
            output = results.plain(format_, output)
        whole = Results()
        for part in filter(None, found):
            whole += part  # type: ignore[operator]
        return (whole if whole.outcomes else None), self._without_own(output)

    def _rewritten(self) -> list[tuple[str, Path]]:
        """Reports that are there now and were not, or not so, before."""
        return [
            (format_, path)
            for format_, glob in self._globs
            for path, stamp in _stamps(self._root, glob).items()
            if self._before[glob].get(path) != stamp
        ]

    def _without_own(self, output: bytes) -> bytes:
        """The output without the lines that only say where our reports are."""
        folders = {os.fsencode(path.parent.name) for _, path in self._written}
        if not any(folder in output for folder in folders):
            return output
        lines = output.splitlines(keepends=True)
        return b"".join(line for line in lines if not any(f in line for f in folders))


def ask(command: Sequence[str], root: Path, folder: Path, junit: Sequence[str] = ()) -> Asked:
    """A command with its reporter.

    Args:
        command: the check's words.
        root: the project's folder.
        folder: for reports; empty, and of a name that no output holds by chance.
        junit: globs, relative to the project, of JUnit reports that its checks write anyway.
    """
    words = tuple(command)
    invocation = Invocation.of(words, root)
    environment: dict[str, str] = {}
    written: list[tuple[str, Path]] = []
    printed: list[str] = []
    globs = [("junit", glob) for glob in junit]
    altered = words
    for request in results_requests():
        file = folder / f"{request.tool}.report"
        if request.environment:
            _set(environment, request, file)
            written.append((request.format, file))
            continue
        lead = invocation.begins_with(request.when)
        if lead is None:
            continue
        globs += [(request.format, glob) for glob in request.reports]
        asked = _altered(invocation, request, lead, file)
        altered = asked or altered
        if any("{file}" in word for word in (*request.append, *request.insert)):
            written += [(request.format, file)] * (asked is not None)
        elif not request.reports and (asked is not None or not request.insert):
            printed.append(request.format)
    before = {glob: _stamps(root, glob) for _, glob in globs}
    return Asked(
        altered, environment, not set(altered) <= set(words), root, tuple(written), tuple(printed), before,
        tuple(globs),
    )  # fmt: skip


def _altered(
    invocation: Invocation, request: ResultsRequest, lead: Sequence[str], file: Path
) -> tuple[str, ...] | None:
    """The command with the words that ask for a report; None where there are none to put in."""
    if request.append:
        return invocation.with_appended(_filled(request.append, file))
    given = invocation.program[len(lead) :]
    if request.insert and not _options(request.insert) & _options(given):
        return invocation.with_inserted(lead, _filled(request.insert, file))
    if request.leave_out:
        return invocation.without(request.leave_out)
    return invocation.words if request.insert else None


def _filled(words: Sequence[str], file: Path) -> list[str]:
    own = {"{file}": str(file), "{reporters}": str(REPORTERS)}
    return [re.sub(r"\{\w+\}", lambda found: own.get(found[0], found[0]), word) for word in words]


def _options(words: Sequence[str]) -> set[str]:
    """The names of options, without their values."""
    return {word.partition("=")[0] for word in words}


def _set(environment: dict[str, str], request: ResultsRequest, file: Path) -> None:
    argument = request.argument.format(file=file)
    before = environment.get(request.environment) or os.environ.get(request.environment, "")
    environment[request.environment] = f"{before} {argument}".strip()


def _stamps(root: Path, glob: str) -> dict[Path, tuple[int, int]]:
    found = {}
    # Path.glob reaches every folder by recursion, and agents leave deep ones.
    if "**" in glob:
        paths: Iterable[Path] = (
            root / p for p in path_containment.files(root) if matches(p, [glob])
        )
    else:
        paths = root.glob(glob)
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except OSError:
        return None
