"""Runs checks: real commands in the project, and what they say about each test."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from loki.action.changes.scratch_folder import scratch_folder
from loki.action.checks import results_reporter
from loki.action.checks.check import RUN_TESTS, Check, CheckResult, Report
from loki.action.checks.narrowed_checks import search_environment
from loki.action.gates.syntax_check import broken_files, is_parsable
from loki.action.processes import process
from loki.action.processes.command_guard import command_guard_of
from loki.action.processes.process import CommandResult
from loki.base.error import UsageError
from loki.base.path_exists import path_exists
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet

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
    parallelism: int = 1
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
                plain = self._start(check, results_reporter.Asked(check.command))
                if plain.is_success:  # it cannot be asked for results
                    self._plain.add(check.command)
                finished, output = plain, plain.output
        except UsageError as error:
            return self._not_run(check, error)
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
    def _asked(self, check: Check) -> Iterator[results_reporter.Asked]:
        if check.kind not in RUN_TESTS or check.command in self._plain:
            yield results_reporter.Asked(check.command)
            return
        with scratch_folder() as folder:
            yield results_reporter.ask(check.command, self.root, Path(folder), self.reports)

    def _start(self, check: Check, asked: results_reporter.Asked) -> CommandResult:
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

    def _not_run(self, check: Check, error: UsageError) -> CheckResult:
        """A program of the project that does not exist yet, or not any more."""
        failure = Failure.of(str(error), tool=check.command[0], error_code="command-not-found")
        return CheckResult(check, False, None, 0.0, str(error), failure)

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
