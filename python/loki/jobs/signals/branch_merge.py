"""A branch that is to be merged: by a person, or by loki where the configuration says so.

loki merges only what it has seen: a branch whose tip is the commit that the tests passed on, into the
branch that others are merged into, in a project where nothing else has changed. The merge is committed
once the tests pass on its result, and taken back else. A merge that was interrupted is known by what
was written down before it began, and taken back, too; any other is left to whoever began it.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loki.action.changes.git import git, run_git
from loki.action.changes.git_branch import DELETED, MERGED, default_branch, end_of
from loki.base import codec
from loki.base.secret import mask_output
from loki.base.time import isoformat
from loki.jobs.signals import signals_of
from loki.jobs.signals.signal_consumer import Consumer, Dispatch, Done, Waits
from loki.memory import store as documents
from loki.memory.document_validation import kept_as
from loki.people.request import Option, Request, yes_or_no
from loki.people.signal import MERGE_REQUESTED

if TYPE_CHECKING:
    from loki.action.checks.check import Check
    from loki.people.signal import Signal
    from loki.workspace import Workspace

UNDER_WAY = "state/merging.json"
"""What loki was merging, written before it begins."""

NEVER_LOOKED_AT = {"commit": ""}
"""How a branch stood when its run began, where nobody looked: anywhere else than now."""

TIMEOUT = 120.0
"""Seconds that a step of a merge may take; chosen, not measured."""


@kept_as(r"state/merging\.json")
@dataclass
class _Merging:
    head: str = ""
    merged: str = ""
    branch: str = ""


def merge(dispatch: Dispatch, signal: Signal, *, allowed: bool = False) -> Done | Waits:
    """Merge a branch where that is allowed and safe; else it waits for a person.

    Args:
        dispatch: the project and its signals.
        signal: the request.
        allowed: a person has said that it may, for this one.
    """
    root, branch, store = str(dispatch.workspace.root), signal.name, dispatch.workspace.store
    ended = end_of(root, branch, NEVER_LOOKED_AT)
    if ended in {MERGED, DELETED} and documents.load_as(_Merging, store, UNDER_WAY) is None:
        return Done(f"{branch} is {ended}")
    by_hand = f"a person merges it: git merge --no-ff {shlex.quote(branch)}"
    if not allowed and dispatch.workspace.config.signals.merge != "auto":
        return Waits(f'{by_hand} (or say merge = "auto" under [signals] in .loki/config.toml)')
    with dispatch.project():
        _take_back(dispatch, root)
        from loki.jobs.signals.feature_consumer import own_tests  # running is much to load

        check = own_tests(dispatch)
        reason = _against(dispatch, signal, root)
        if reason or isinstance(check, str):
            return Waits(f"{reason or check}; {by_hand}")
        return _merge(dispatch, signal, check, by_hand)


def requests(workspace: Workspace, _: object = None) -> list[Request]:
    """Merges that wait for a person: where loki may make them, those that it has not made, too."""
    may = workspace.config.signals.merge == "auto"
    asked = "the tests passed; merge it" + (
        " (loki does so once nothing is in doubt; what is, says `loki signals handle`)"
        if may
        else ""
    )
    return [
        Request(
            one.id,
            "signal",
            one.label,
            asked,
            isoformat(one.given_at) if one.given_at else "",
            yes_or_no(
                one.id,
                "merge",
                "leave it",
                "",
                Option("by hand", f"git merge --no-ff {shlex.quote(one.name)}"),
                reason=False,
            ),
            one.string_field("task_id"),
        )
        for one in signals_of(workspace).pending(MERGE_REQUESTED)
        # Merged by hand meanwhile, it goes with the next dispatcher.
        if not end_of(str(workspace.root), one.name, NEVER_LOOKED_AT)
    ]


def _against(dispatch: Dispatch, signal: Signal, root: str) -> str:
    """Why loki does not merge a branch, or ""."""
    into, here = default_branch(root), dispatch.workspace.position()[0]
    if not into or here != into:
        return f"{into or 'the branch to merge into'} is not checked out"
    changed = git(root, "status", "--porcelain", "--untracked-files=no")
    if changed is None or changed:
        return "the project has changes that are not committed"
    tip = _commit(root, f"refs/heads/{signal.name}")
    if not signal.string_field("commit") or tip != signal.string_field("commit"):
        return f"the tests have not passed on the last commit of {signal.name}"
    return ""


def _merge(dispatch: Dispatch, signal: Signal, check: Check, by_hand: str) -> Done | Waits:
    branch, store, root = signal.name, dispatch.workspace.store, str(dispatch.workspace.root)
    commit = signal.string_field("commit")
    store.put(UNDER_WAY, json.dumps(codec.write(_Merging(_commit(root, "HEAD"), commit, branch))))
    problem = _git(dispatch, "merge", "--no-ff", "--no-commit", commit)
    if not problem:
        from loki.jobs.signals.feature_consumer import run_check

        result = run_check(dispatch, check)
        failure = f": {result.failure}" if result.failure else ""
        problem = "" if result.passed else f"`{check.name}` fails behind it{failure}"
    if not problem:
        message = f"Merge branch '{branch}'"
        problem = _git(dispatch, "commit", "--no-edit", "-m", message)
    if problem:
        _take_back(dispatch, root)
        return Waits(f"{branch} could not be merged: {problem}; {by_hand}")
    store.update(UNDER_WAY, lambda _text: None)
    return Done(f"{branch} is merged")


def _take_back(dispatch: Dispatch, root: str) -> None:
    """End a merge of loki's own that is under way."""
    begun = documents.load_as(_Merging, dispatch.workspace.store, UNDER_WAY)
    if begun is None:
        return
    where = _commit(root, "HEAD"), _commit(root, "MERGE_HEAD")
    if where == (begun.head, begun.merged):
        _git(dispatch, "merge", "--abort")
    dispatch.workspace.store.update(UNDER_WAY, lambda _text: None)


def _commit(root: str, name: str) -> str:
    found = git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return found.decode().strip() if found else ""


def _git(dispatch: Dispatch, *arguments: str) -> str:
    """Have git change the project; what it says where it fails, or ""."""
    try:
        done = run_git(str(dispatch.workspace.root), *arguments, seconds=TIMEOUT, writes=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"git {arguments[0]} failed: {type(error).__name__}"
    said = mask_output(done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()
    return "" if done.returncode == 0 else (said[-1] if said else f"git {arguments[0]} failed")


CONSUMERS: dict[str, Consumer] = {MERGE_REQUESTED: merge}
