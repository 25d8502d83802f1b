"""What checks have shown, for holding claims against it; pure.

Those in the background count once it is known how they ended.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from loki.decision.monitor.monitor_state import Evidence, MonitorState, RunningCall
from loki.decision.monitor.tool_call import Known
from loki.decision.monitor.tool_command import knowledge
from loki.decision.monitor.tool_result import Outcome
from loki.recognition.failure import Failure

MOST_GOING = 16
"""Checks in the background that are remembered, the newest. Chosen, not measured."""

MOST_NAMED = 20
"""Failing tests that are remembered of a run. Chosen, not measured."""

LONGEST_COMMAND = 2_000
"""Characters of a command that is remembered; of a longer one nothing is known. Chosen."""


def edited(state: MonitorState, call: Known) -> MonitorState:
    """The state after a change: what checks read is not what they have seen any more.

    Args:
        state: the state before.
        call: what changed something.
    """
    if call.is_prose or call.is_scratch or call.takes_back or is_unread(call.path):
        return state
    if call.command and not (call.tries and (call.path or call.edits)):
        return state  # nobody knows of a file of code
    evidence = replace(state.evidence, edits=state.evidence.edits + 1)
    # What a check in the background says now is of another tree.
    return replace(state, evidence=evidence, background=())


def is_unread(path: str) -> bool:
    """Whether a file is in a folder of which no check reads anything: `docs/conf.py`, `.github/`."""
    return knowledge().unread.search(path.replace("\\", "/")) is not None


def shown(
    state: MonitorState, call: Known, outcome: Outcome, failure: Failure | None = None
) -> MonitorState:
    """The state after something ran.

    Args:
        state: the state before.
        call: the call. A check that could not begin or was
            ended by a time-out, and one of a tree without the agent's changes, show
            nothing of them.
        outcome: what its output says; where it says how tests went, that counts whatever ran them.
        failure: what failed; None: it went well.
    """
    if state.stashed or call.stashes or not outcome.has_begun or outcome.timed_out:
        return state
    known = state.evidence
    if call.runs_tests or outcome.has_tests:
        failed = outcome.failed or int(failure is not None)
        named = tuple(failure.tests[:MOST_NAMED]) if failure else ()
        passed = known.passed if failed else known.edits
        new = replace(known, tests=known.edits, failed=failed, named=named, passed=passed)
        command, broken = call.command[:LONGEST_COMMAND], known.broken and bool(failed)
        new = replace(new, command=command, broken=broken)
    elif failure is not None:
        new = replace(known, broken=True) if call.is_check else known
    else:
        new = replace(known, broken=known.broken and not call.is_check)
    if failure is None:
        new = replace(new, ran=known.edits)
        if call.is_check and not state.turn:
            state = replace(state, ends=0)
    return replace(state, evidence=new) if new != known else state


def started(state: MonitorState, call: Known, task: str) -> MonitorState:
    """The state once a call goes on in the background.

    Args:
        state: the state before.
        call: the call; of one that checks nothing there is nothing to keep.
        task: how the agent will name it when it has ended; "": nobody will ever tell, so that from now on
            nothing is held against it.
    """
    if not call.is_check:
        return replace(state, evidence=replace(state.evidence, ran=state.evidence.edits))
    if not task or len(call.command) > LONGEST_COMMAND:
        return replace(state, evidence=_believed(state.evidence, runs_tests=call.runs_tests))
    going = RunningCall(task, call.tool, call.command, call.runs_tests)
    others = (one for one in state.background if one.task != task)
    return replace(state, background=(*others, going)[-MOST_GOING:])


def ended(state: MonitorState, task: str) -> tuple[MonitorState, RunningCall | None]:
    """The state once a task has ended, and the check that it was; None: it was none, or of an older tree.

    Args:
        state: the state before.
        task: as the agent names it.
    """
    going = next((one for one in state.background if one.task == task), None)
    if going is None:
        return state, None
    left = tuple(one for one in state.background if one.task != task)
    return replace(state, background=left), going


def bearing(
    state: MonitorState, running: Collection[str] | None
) -> tuple[MonitorState, RunningCall | None]:
    """What is held against a claim, with regard to checks in the background.

    Args:
        state: the state.
        running: tasks that are known to go on; None: nobody knows.

    Returns:
        The state as a claim is judged by it: what a check is about that has ended, nobody knows how, is
        not held against it; and a check that still goes on, or None.
    """
    for one in state.background:
        if running is not None and one.task in running:
            return state, one
    if not state.background:
        return state, None
    runs_tests = any(one.runs_tests for one in state.background)
    return replace(state, evidence=_believed(state.evidence, runs_tests=runs_tests)), None


def _believed(known: Evidence, *, runs_tests: bool) -> Evidence:
    """As if a check had passed, of which nobody will ever know how it ended."""
    believed = replace(known, ran=known.edits, broken=False)
    if runs_tests:
        believed = replace(believed, tests=known.edits, passed=known.edits, failed=0, named=())
    return believed
