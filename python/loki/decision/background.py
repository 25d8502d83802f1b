"""Checks that go on in the background: they count once it is known how they ended. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from loki.decision.monitor_state import Going, MonitorState
from loki.decision.tool_call import Known

MOST_GOING = 16
"""Checks in the background that are remembered, the newest. Chosen, not measured."""

LONGEST_COMMAND = 2_000
"""Characters of a command that is remembered; of a longer one nothing is known. Chosen."""


def started(state: MonitorState, call: Known, tool: str, task: str) -> MonitorState:
    """The state once a call goes on in the background.

    Args:
        state: the state before.
        call: the call; of one that checks nothing there is nothing to keep.
        tool: the name of its tool.
        task: how the agent will name it when it has ended; "": nobody will ever tell, so that from now on
            nothing is held against it.
    """
    if not call.is_check:
        return state
    if not task or len(call.command) > LONGEST_COMMAND:
        untested = state.untested and not call.runs_tests
        return replace(state, unverified=False, failing=False, untested=untested)
    going = Going(task, tool, call.command, call.runs_tests)
    others = (one for one in state.background if one.task != task)
    return replace(state, background=(*others, going)[-MOST_GOING:])


def ended(state: MonitorState, task: str) -> tuple[MonitorState, Going | None]:
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
) -> tuple[MonitorState, Going | None]:
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
    untested = state.untested and not any(one.runs_tests for one in state.background)
    return replace(state, unverified=False, failing=False, untested=untested), None
