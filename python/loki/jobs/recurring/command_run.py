"""A run of a recurring task that is a command."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace
from pathlib import Path

from loki.action.processes import process
from loki.base.error import UsageError
from loki.base.path_exists import path_exists
from loki.jobs.recurring.recurring_run import RunResult
from loki.jobs.recurring.recurring_task import RecurringTask
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import PatternSet

MAX_OUTPUT = 2**20
"""Bytes kept of each stream, the first and the last half each; chosen: ten runs of each task stay."""


def run(
    task: RecurringTask,
    number: int,
    cancelled: threading.Event,
    root: Path,
    patterns: PatternSet,
    pass_environment: tuple[str, ...],
) -> RunResult:
    """Perform it: without a shell, with secrets out of its environment, and nothing left running.

    Args:
        task: with its command.
        number: of the run.
        cancelled: ends the command when set.
        root: the project's folder: it runs there.
        patterns: what failures are known by.
        pass_environment: names, or globs, of variables that it gets although they look secret.
    """
    try:
        ended = process.run(
            task.command,
            cwd=root,
            timeout=task.timeout,
            pass_environment=(*pass_environment, *task.pass_environment),
            environment={"LOKI_RECURRING_TASK": task.id, "LOKI_RUN": str(number)},
            cancelled=cancelled,
            max_output=MAX_OUTPUT,
        ).masked()
    except UsageError as error:  # a program that is gone is a failure like any other
        return _failed(RunResult("failed"), str(error), Failure.of(str(error), tool="loki"))
    ran = RunResult(
        "success",
        ended.exit_code,
        ended.signal,
        ended.timed_out,
        ended.stdout.decode("utf-8", "replace"),
        ended.stderr.decode("utf-8", "replace"),
    )
    if ended.is_success:
        return ran
    if ended.cancelled:
        return replace(ran, status="cancelled", reason="interrupted")
    code = None if ended.timed_out else ended.exit_code
    failure = recognize(
        ended.output,
        shlex.join(task.command),
        code,
        str(root),
        patterns=patterns,
        exists=path_exists(root),
    )
    return _failed(ran, _reason(task, ended, failure), failure)


def _reason(task: RecurringTask, ended: process.CommandResult, failure: Failure) -> str:
    """How it ended, and what it said last."""
    if ended.timed_out:
        how = f"took longer than {task.timeout:g} s"
    elif ended.signal is not None:
        how = f"ended by signal {ended.signal}"
    else:
        how = f"exit code {ended.exit_code}"
    return f"{how}: {failure.said}" if failure.message else how


def _failed(ran: RunResult, reason: str, failure: Failure) -> RunResult:
    match = failure.match
    return replace(
        ran,
        status="failed",
        reason=reason,
        # One that ends so tells nothing: two runs that printed nothing need not have failed alike.
        signature=None if failure.signature.endswith(":") else failure.signature,
        pattern=match.pattern if match else None,
        kind=match.kind if match else None,
    )
