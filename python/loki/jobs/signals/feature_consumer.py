"""A feature that is ready: its tests run, and what they say leads to a merge or to a task."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from loki.action.changes.git import git
from loki.action.changes.git_branch import MERGED, default_branch, end_of, start_of
from loki.action.checks.check import Check
from loki.action.checks.check_runner import CheckRunner
from loki.action.processes.command_line import why_not_runnable
from loki.base.environment import passed_environment
from loki.execution.assembly import commands as commands_of
from loki.jobs.signals.signal_consumer import Consumer, Dispatch, Done, Waits
from loki.people.signal import FEATURE_READY, MERGE_REQUESTED, TESTS_FAILED, TESTS_PASSED

if TYPE_CHECKING:
    from loki.action.checks.check import CheckResult
    from loki.people.signal import Signal

EXCERPT = 4_000
"""Characters of a failure that a signal carries; chosen, not measured."""


def test(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Run the project's tests, and give ``TESTS_PASSED`` or ``TESTS_FAILED``."""
    workspace, name = dispatch.workspace, signal.name
    if reason := dispatch.unfinished(signal):
        return Waits(f"{reason}: its tests run once it has succeeded")
    here = workspace.position()[0]
    branch = signal.string_field("branch") or here
    if branch != here:
        return Waits(f"it is about the branch {branch}, which is not checked out")
    check = own_tests(dispatch)
    if isinstance(check, str):
        return Waits(check)
    with dispatch.project():
        stands = _stands(str(workspace.root))
        result = run_check(dispatch, check)
        if dispatch.cancelled.is_set():
            return Waits("the tests were interrupted")
        stands = stands if stands == _stands(str(workspace.root)) else {}
    command = shlex.join(check.command)
    said: dict[str, Any] = {"command": command, "task_id": signal.string_field("task_id"), **stands}
    said |= {"branch": branch} if branch else {}
    if result.passed:
        dispatch.signals.emit(TESTS_PASSED, name, said)
        return Done(f"`{command}` passed: {TESTS_PASSED} {name}")
    said |= _failure(result)
    dispatch.signals.emit(TESTS_FAILED, name, said)
    return Done(f"`{command}` failed: {TESTS_FAILED} {name}")


def request_merge(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Give ``MERGE_REQUESTED`` for the branch that the tests passed on."""
    root, branch = str(dispatch.workspace.root), signal.string_field("branch")
    if not branch:
        return Done("it names no branch: nothing is to be merged")
    if not start_of(root, branch):
        return Done(f"there is no branch {branch}: nothing is to be merged")
    if branch == default_branch(root):
        return Done(f"{branch} is what others are merged into: nothing is to be merged")
    if end_of(root, branch, {"commit": ""}) == MERGED:
        return Done(f"{branch} is merged already")
    said = {key: signal.data[key] for key in ("commit", "command", "task_id") if key in signal.data}
    dispatch.signals.emit(MERGE_REQUESTED, branch, {**said, "feature": signal.name})
    return Done(f"{MERGE_REQUESTED} {branch}")


def own_tests(dispatch: Dispatch) -> Check | str:
    """The project's own tests; or why they cannot run, in a sentence.

    No signal says what runs: whoever can write one could else run anything.
    """
    found = commands_of(dispatch.workspace).get("test")
    problem = "no test command of the project was found"
    if found is not None:
        missing = why_not_runnable(found.words, dispatch.workspace.root)
        if missing is None:
            return Check(found.words, "test", timeout=dispatch.workspace.config.loop.check_timeout)
        problem = missing
    return f"{problem}: say one in .loki/verification-gates.yml (commands: test: …)"


def run_check(dispatch: Dispatch, check: Check) -> CheckResult:
    """Run a check in the project, as the loop does."""
    loop = dispatch.workspace.config.loop
    runner = CheckRunner(
        dispatch.workspace.root,
        dispatch.workspace.patterns,
        dispatch.cancelled,
        reports=loop.test_reports,
        environment=passed_environment(os.environ, loop.pass_environment),
    )
    return runner.run_one(check)


def _failure(result: CheckResult) -> dict[str, str]:
    failure = result.failure
    if failure is None:
        return {}
    told = failure.excerpt or failure.message
    return {"failure": str(failure)[:EXCERPT], "excerpt": told[:EXCERPT]}


def _stands(root: str) -> dict[str, str]:
    """The commit that is checked out, where nothing in the project differs from it."""
    changed = git(root, "status", "--porcelain", "--untracked-files=no")
    commit = git(root, "rev-parse", "HEAD")
    return (
        {} if changed is None or changed or commit is None else {"commit": commit.decode().strip()}
    )


CONSUMERS: dict[str, Consumer] = {FEATURE_READY: test, TESTS_PASSED: request_merge}
