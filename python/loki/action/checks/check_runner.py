"""Runs checks: real commands in the project, and what they say about each test.

A command that is asked for results per test means the same: its exit code decides as before, what it prints
stays text for people, and what cannot be asked runs as it is. How a tool is asked, and told which tests to
run, stands in its file; no runner is named here.
"""

from __future__ import annotations

import os
import posixpath
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from loki.action.changes.scratch_copy import scratch_folder
from loki.action.checks.check import RUN_TESTS, Check, CheckResult, Report
from loki.action.checks.command_detection import Invocation
from loki.action.checks.results import suite_results
from loki.action.gates.syntax_check import broken_files, is_parsable
from loki.action.processes import process
from loki.action.processes.command_guard import command_guard_of
from loki.action.processes.process import CommandResult
from loki.base import path_containment
from loki.base.error import UsageError
from loki.base.glob import matches
from loki.base.path_exists import path_exists
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet
from loki.recognition.site import Narrowing, ResultsRequest, narrowings, results_requests

# --- Results per test, asked for in the way that a check's tool is asked ------------------------------

REPORTERS = Path(__file__).parent / "results"
"""Reporters of our own, for runners that bring none which prints for people and writes a report."""

MAX_BYTES = 64 * 1024 * 1024
"""Of a report; a larger one is not read. Chosen, not measured."""

_Stamps = Mapping[Path, "tuple[int, int]"]


@dataclass(frozen=True)
class AskedResults:
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

    def read(self, output: bytes) -> tuple[suite_results.Results | None, bytes]:
        """(The results, None where there are none; what the command printed, as text for people).

        Args:
            output: what it printed.
        """
        root, found = str(self._root), []
        for format_, path in (*self._written, *self._rewritten()):
            content = _content(path)
            found.append(content and suite_results.read(format_, content, root))
        for format_ in self._printed:
            found.append(suite_results.read(format_, output, root))
            output = suite_results.plain(format_, output)
        whole = suite_results.Results()
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


def ask_for_results(
    command: Sequence[str], root: Path, folder: Path, junit: Sequence[str] = ()
) -> AskedResults:
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
            argument = request.argument.format(file=file)
            before = environment.get(request.environment) or os.environ.get(request.environment, "")
            environment[request.environment] = f"{before} {argument}".strip()
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
    stamps = {glob: _stamps(root, glob) for _, glob in globs}
    return AskedResults(
        altered, environment, not set(altered) <= set(words), root, tuple(written), tuple(printed), stamps,
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


# --- Only the tests of some files, where the runner can be told which ---------------------------------

MAX_NAMED = 500
"""Files or folders that one command names; beyond it runs everything. Chosen, not measured."""


@dataclass(frozen=True)
class Narrowed:
    """A test command that can be told what to test.

    Attributes:
        invocation: what it starts.
        how: how its runner is told.
        lead: the words of the program that say so.
    """

    invocation: Invocation
    how: Narrowing
    lead: tuple[str, ...]

    @classmethod
    def of(cls, command: Sequence[str], root: Path) -> Narrowed | None:
        """The command, where its runner can be told what to test.

        Args:
            command: its words.
            root: the project's folder.
        """
        invocation = Invocation.of(command, root)
        for how in narrowings():
            lead = invocation.begins_with(how.when)
            if lead is not None:
                return cls(invocation, how, lead)
        return None

    def tests(self, paths: Iterable[str]) -> list[str]:
        """The paths that hold tests of this runner."""
        return [path for path in paths if matches(path, self.how.files)]

    @property
    def is_selective(self) -> bool:
        """Whether the command picks single tests, so that it does not stand for whole files."""
        words = self.invocation.program[len(self.lead) :]
        return any(self._selects(word) for word in words)

    @property
    def is_whole(self) -> bool:
        """Whether the command names neither tests nor files, so that it runs all that there are."""
        words = self.invocation.program[len(self.lead) :]
        return not self.is_selective and len(self._options()) == len(words)

    def for_files(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The command for all tests of these files, and no others where that can be said.

        Args:
            paths: relative to the project.

        Example:
            >>> narrowed = Narrowed.of(("go", "test", "-race", "-run", "TestA", "./..."), Path("/"))
            >>> narrowed.for_files(["cart/cart_test.go"])
            ('go', 'test', '-race', './cart')
        """
        units = [p if self.how.unit == "file" else posixpath.dirname(p) or "." for p in paths]
        named = [self.how.form.replace("{path}", unit) for unit in dict.fromkeys(units)]
        if len(named) > MAX_NAMED:
            return self.invocation.words
        if self.invocation.start is None:  # what a script says cannot be taken away
            return self.invocation.with_appended((*self.how.option, *named))
        before = self.invocation.words[: self.invocation.start]
        return (*before, *self.lead, *self._options(), *self.how.option, *named)

    def _options(self) -> list[str]:
        """The options of the command, but for those that pick tests; without paths."""
        kept: list[str] = []
        words = iter(self.invocation.program[len(self.lead) :])
        for word in words:
            option = [word]
            if word in self.how.values:
                option += [value for value in (next(words, None),) if value is not None]
            if word.startswith("-") and not self._selects(word):
                kept += option
        return kept

    def _selects(self, word: str) -> bool:
        return any(
            word == sign or word.startswith(f"{sign}=") if sign.startswith("-") else sign in word
            for sign in self.how.selects
        )


def search_environment(root: Path) -> Mapping[str, str]:
    """Variables by which what runs in a copy finds the copy's modules, not the original's."""
    found = {}
    for how in narrowings():
        if how.search:
            variable = str(how.search["variable"])
            folders = [str(root / folder) for folder in how.search["folders"]]
            known = [path for path in (os.environ.get(variable),) if path]
            found[variable] = os.pathsep.join([*folders, *known])
    return found


# --- The runner ---------------------------------------------------------------------------------------

SHOWN = 5
"""Paths that a sentence names; chosen, not measured."""

READS_ONLY = frozenset({"lint", "type", "syntax"})
"""Kinds of check that only look at the sources: they may run beside others."""


@dataclass
class CheckRunner:
    """Runs checks in a project.

    Args:
        root: the project's folder.
        patterns: to name failures with.
        cancelled: ends whatever runs when set.
        parallelism: how many checks run at a time, 1 or more. Of those that may write (tests, builds,
            commands) it is one at a time anyway: they share caches, ports and outputs.
        reports: globs, relative to the project, of JUnit reports that its checks write.
        environment: variables for every command.
        changed: paths that the task has changed so far.
        project: whose settings hold for commands, where `root` is a copy of it; None: it is the project.
    """

    root: Path
    patterns: PatternSet
    cancelled: threading.Event = field(default_factory=threading.Event)
    parallelism: int = 2
    reports: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    changed: Callable[[], Sequence[str]] = tuple
    project: Path | None = None
    _writing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _plain: set[tuple[str, ...]] = field(default_factory=set, repr=False)

    def in_copy(self, root: Path) -> CheckRunner:
        """The same in a copy of the project, which finds its own modules and runs as the project says.

        Args:
            root: the copy's folder.
        """
        environment = {**self.environment, **search_environment(root)}
        return replace(self, root=root, environment=environment, project=self.project or self.root)

    def run(
        self, checks: Sequence[Check], done: Callable[[CheckResult], None] | None = None
    ) -> Report:
        """All checks that nobody has to judge, whether or not those before passed.

        Args:
            checks: what to run.
            done: told of each result as it comes, in this thread.

        Returns:
            The results in the order of the checks. Interrupted, it leaves nothing running.
        """
        runnable = [check for check in checks if not check.is_judged]
        if self.parallelism < 2 or len(runnable) < 2:  # noqa: PLR2004
            results = self._one_by_one(runnable)
        else:
            results = self._side_by_side(runnable)
        found: dict[int, CheckResult] = {}
        for index, result in results:
            found[index] = result
            if done is not None:
                done(result)
        return Report(tuple(found[index] for index in sorted(found)))

    def _one_by_one(self, checks: Sequence[Check]) -> Iterator[tuple[int, CheckResult]]:
        for index, check in enumerate(checks):
            if self.cancelled.is_set():
                return
            yield index, self.run_one(check)

    def _side_by_side(self, checks: Sequence[Check]) -> Iterator[tuple[int, CheckResult]]:
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="loki-check") as threads:
            futures: dict[Future[CheckResult | None], int] = {
                threads.submit(self._in_turn, check): index for index, check in enumerate(checks)
            }
            try:
                for future in as_completed(futures):
                    result = future.result()
                    if result is not None:
                        yield futures[future], result
            except BaseException:  # Ctrl-C: the pool waits for what the cancellation ends
                self.cancelled.set()
                raise

    def _in_turn(self, check: Check) -> CheckResult | None:
        with nullcontext() if check.kind in READS_ONLY else self._writing:
            return None if self.cancelled.is_set() else self.run_one(check)

    def run_one(self, check: Check) -> CheckResult:
        """One check and, where it fails, what failed."""
        if check.is_parsed:
            return self._parsed(check)
        try:
            with self._asked(check) as asked:
                finished = self._start(check, asked)
                results, output = asked.read(finished.output)
            if asked.is_altered and results is None and _ended_badly(finished):
                plain = self._start(check, AskedResults(check.command))
                if plain.is_success:  # it cannot be asked for results
                    self._plain.add(check.command)
                finished, output = plain, plain.output
        except UsageError as error:  # a program of the project does not exist yet, or not any more
            failure = Failure.of(str(error), tool=check.command[0], error_code="command-not-found")
            return CheckResult(check, False, None, 0.0, str(error), failure)
        text = output.decode("utf-8", "replace")
        tests, files = (results.outcomes, results.files) if results else (None, {})
        passed = _passes(check, finished, text)
        result = CheckResult(
            check, passed, finished.exit_code, finished.duration, text, None, tests, files
        )
        if passed:
            return result
        if finished.timed_out:
            return replace(result, failure=self._timed_out(check, text))
        failure = self._failed(check, output, finished.exit_code)
        if finished.refused:  # the agent cannot mend that, and has to know
            failure = replace(failure, message=f"{failure.message} ({finished.refused})")
        return replace(result, failure=failure)

    def _parsed(self, check: Check) -> CheckResult:
        """Whether what the task has changed parses; before it has changed anything, it does."""
        began, changed = time.monotonic(), self.changed()
        parsed = [path for path in changed if is_parsable(path) and (self.root / path).is_file()]
        found = broken_files(self.root, parsed)
        failure = None if found.passed else found.failure(self.patterns)
        if changed and not parsed:
            message = (
                "nothing that was changed is a file that loki can parse "
                f"({', '.join(sorted(changed)[:SHOWN])}): expected a configuration"
            )
            failure = Failure.of(message, tool="loki", error_code="nothing-parsed")
        said = failure.excerpt or str(failure) if failure else f"parses: {', '.join(parsed)}"
        took = time.monotonic() - began
        return CheckResult(check, failure is None, None, took, said, failure)

    @contextmanager
    def _asked(self, check: Check) -> Iterator[AskedResults]:
        if check.kind not in RUN_TESTS or check.command in self._plain:
            yield AskedResults(check.command)
            return
        with scratch_folder() as folder:
            yield ask_for_results(check.command, self.root, Path(folder), self.reports)

    def _start(self, check: Check, asked: AskedResults) -> CommandResult:
        with command_guard_of(self.project or self.root).over(check.command, self.root) as box:
            return process.run(
                asked.command,
                cwd=self.root,
                timeout=check.timeout,
                environment={**self.environment, **asked.environment},
                cancelled=self.cancelled,
                merge=True,
                box=box,
            ).masked()

    def _failed(self, check: Check, output: bytes, exit_code: int | None) -> Failure:
        if check.expected and exit_code == 0:
            message = f"{check.name} did not print what was expected: {check.expected}"
            excerpt = "\n".join(output.decode("utf-8", "replace").splitlines()[-20:])
            return Failure.of(message, tool=check.command[0], excerpt=excerpt)
        failure = recognize(
            output,
            command=" ".join(check.command),
            exit_code=exit_code,
            root=str(self.root),
            patterns=self.patterns,
            exists=path_exists(self.root),
        )
        if not failure.message:
            message = f"{check.name} ended with exit code {exit_code} and printed nothing"
            return Failure.of(message, tool=check.command[0], error_code=str(exit_code))
        if check.pattern in self.patterns.patterns:
            match = self.patterns.named(check.pattern)
            return replace(failure, match=match, matches=(match,))
        return failure

    def _timed_out(self, check: Check, output: str) -> Failure:
        return Failure.of(
            f"{check.name} was stopped: it took longer than {check.timeout:g} s",
            tool=check.command[0],
            pattern=check.pattern or "timeout-error",
            patterns=self.patterns,
            excerpt="\n".join(output.splitlines()[-20:]),
        )


def _ended_badly(finished: CommandResult) -> bool:
    """By itself, and not well."""
    return not (finished.is_success or finished.timed_out or finished.cancelled)


def _passes(check: Check, finished: CommandResult, output: str) -> bool:
    if not check.expected:
        return finished.is_success
    if finished.exit_code is None or finished.timed_out or finished.cancelled:
        return False
    if check.expected in output:
        return True
    try:
        return re.search(check.expected, output, re.MULTILINE) is not None
    except re.error:
        return False
