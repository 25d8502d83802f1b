"""Signals joined with those who act on them: one consumer for each kind, and what finds and calls it.

loki merges only what it has seen: a branch whose tip is the commit that the tests passed on, into the
branch that others are merged into, in a project where nothing else has changed. The merge is committed
once the tests pass on its result, and taken back else. A merge that was interrupted is known by what
was written down before it began, and taken back, too; any other is left to whoever began it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from loki.action.changes.git import DELETED, MERGED, default_branch, end_of, git, run_git, start_of
from loki.action.checks.check import Check, CheckResult
from loki.action.pipelines import pipeline_record
from loki.action.pipelines.pipeline_state import Phase
from loki.action.processes.command_line import why_not_runnable
from loki.base import codec, documents, locks, path_containment
from loki.base.atomic_file import make_folder
from loki.base.documents import kept_as
from loki.base.error import LokiError, UsageError
from loki.base.secret import mask_output, passed_environment
from loki.base.threads import in_background
from loki.base.time import isoformat, moment
from loki.execution.assembly import commands as commands_of
from loki.execution.assembly import signals_of
from loki.jobs.inbox import human_review_answers
from loki.jobs.queue.queue import Queue, queue_of
from loki.jobs.queue.queued_task import QueuedTask
from loki.memory import task_record
from loki.memory.quote import one_line
from loki.memory.task_record import DONE
from loki.people.request import Option, Request, yes_or_no
from loki.people.signal import (
    BLOG_POST_QUEUED,
    DOCS_NEEDED,
    FEATURE_READY,
    FOLDER,
    HUMAN_APPROVED,
    MERGE_REQUESTED,
    PLAN_APPROVED,
    TESTS_FAILED,
    TESTS_PASSED,
    Signal,
)

if TYPE_CHECKING:
    from loki.people.signals import Signals
    from loki.workspace import Workspace


# --- What a consumer is given, and what it answers ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """A signal was acted on, and goes; ``told``: what came of it, in a sentence."""

    told: str


@dataclass(frozen=True, slots=True)
class Waits:
    """A signal stays; ``told``: for what it waits, and what to do about it."""

    told: str


@dataclass(frozen=True)
class Dispatch:
    """What consumers work with.

    Attributes:
        workspace: the project.
        signals: its signals.
        cancelled: ends whatever runs when set.
        has_project: whoever dispatches holds the project already.
    """

    workspace: Workspace
    signals: Signals
    cancelled: threading.Event = field(default_factory=threading.Event)
    has_project: bool = False

    def project(self) -> AbstractContextManager[None]:
        """Alone in the project.

        Raises:
            UsageError: somebody else is at work in it.
        """
        return nullcontext() if self.has_project else self.workspace.exclusive()

    def unfinished(self, signal: Signal) -> str:
        """Why the work that a signal is about is not there yet, or ""."""
        task = signal.string_field("task_id")
        record = task_record.load(self.workspace.store, task) if task else None
        if not record:
            return ""
        if not record.outcome:
            return f"task {task} has not ended yet"
        return "" if record.status in DONE else f"task {task} ended as {record.status}"


Consumer: TypeAlias = Callable[[Dispatch, "Signal"], "Done | Waits"]
"""Acts on a signal. It may be called again with the same one, after a crash: what it does is
idempotent. A `loki.LokiError` that it raises keeps the signal waiting."""


# --- A branch that is to be merged --------------------------------------------------------------------

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


def merge_branch(dispatch: Dispatch, signal: Signal, *, allowed: bool = False) -> Done | Waits:
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
        check = own_tests(dispatch)
        reason = _against(dispatch, signal, root)
        if reason or isinstance(check, str):
            return Waits(f"{reason or check}; {by_hand}")
        return _merge(dispatch, signal, check, by_hand)


def merge_requests(workspace: Workspace, _: object = None) -> list[Request]:
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
    store.write(UNDER_WAY, json.dumps(codec.write(_Merging(_commit(root, "HEAD"), commit, branch))))
    problem = _git(dispatch, "merge", "--no-ff", "--no-commit", commit)
    if not problem:
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


# --- A person's decision ------------------------------------------------------------------------------


def answer(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Keep what a person has decided, and do what follows; why one is refused is logged."""
    named = signal.string_field("request_id")
    taken = [
        one for one in human_review_answers.finish_reviews(dispatch.workspace) if one.id == named
    ]
    if taken:
        return Done(f"{named} is {taken[0].answer.value} by {taken[0].by}")
    return Done(f"refused: it answers no open request ({named or 'it names none'})")


# --- A feature that is ready to be tested -------------------------------------------------------------

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
    if end_of(root, branch, NEVER_LOOKED_AT) == MERGED:
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
    from loki.action.checks.check_runner import CheckRunner  # much to load for who only looks

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
    commit = _commit(root, "HEAD")
    return {} if changed is None or changed or not commit else {"commit": commit}


# --- A plan that a person approved --------------------------------------------------------------------

APPROVER = "whoever gave PLAN_APPROVED"
"""Who approved, where the file does not say."""


def approve_plan(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Go on with the run that waits for approval, as ``loki pipeline resume RUN --approve`` does.

    An approval is of what waited when it was given. One that names no run is for the only one that
    waits.
    """
    from loki.execution.pipeline import Pipeline

    workspace = dispatch.workspace
    runs = pipeline_record.runs(workspace.store)
    if taken := next((run for run in runs if _was_taken(dispatch, run, signal)), None):
        return Done(f"{taken['run']} had gone on already")
    named = signal.string_field("pipeline")
    waiting = [run for run in runs if run.get("phase") == Phase.APPROVAL.value]
    waiting = [run for run in waiting if named in {"", run["run"], run["pipeline"]}]
    meant = [run for run in waiting if not _is_older(signal, run)]
    if waiting and not meant:
        ids = ", ".join(str(run["run"]) for run in waiting)
        return Done(f"refused: it was given before {ids} asked for approval")
    if len(meant) != 1:
        found = ", ".join(str(run["run"]) for run in meant)
        which = (
            f"several runs wait for approval ({found})" if meant else "no run waits for approval"
        )
        wanted = ': say which, as {"pipeline": "RUN"}' if meant else ""
        return Waits(f"{which}{wanted}")
    (run,) = meant
    if not run.get("file"):
        return Waits(f"run {run['run']} has no file: go on with it where it was begun")
    by, id_ = signal.string_field("by") or APPROVER, str(run["run"])
    pipeline = Pipeline.load(workspace.root / str(run["file"]))
    outcome = pipeline.resume(run=id_, path=workspace, approve=True, by=by, note=_note(signal))
    return Done(f"{id_} went on, approved by {by}: {outcome.status}")


def _is_older(signal: Signal, run: dict[str, Any]) -> bool:
    """Whether a signal was given before a run asked for approval."""
    asked = moment(str(run.get("updated_at")))
    return asked is not None and signal.given_at is not None and signal.given_at < asked


def _was_taken(dispatch: Dispatch, run: dict[str, Any], signal: Signal) -> bool:
    """Whether whoever acted on this signal was killed before it was gone."""
    events = dispatch.workspace.store.scan(
        f"{pipeline_record.folder(str(run['run']))}/events.jsonl"
    )
    return any(e.get("event") == "Approved" and e.get("note") == _note(signal) for e in events)


def _note(signal: Signal) -> str:
    said = signal.string_field("note") or signal.string_field("description")
    return " ".join(filter(None, (said, f"(signal {signal.id})")))


# --- Signals that become tasks of the queue -----------------------------------------------------------

OPEN = ("pending", "in-progress")

TITLE = 100
"""Characters of what was said that a task's title shows; chosen, not measured."""


def mend(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Queue a task that mends the tests of a feature, where none is open for it."""
    name, check = signal.name, own_tests(dispatch)
    said = [
        f"The tests of {name} fail.",
        signal.string_field("failure") or signal.string_field("description"),
        signal.string_field("excerpt"),
    ]
    task = QueuedTask(
        f"fix-tests-{signal.id}",
        f"Fix the tests of {one_line(name, TITLE)}",
        "\n\n".join(dict.fromkeys(filter(None, said))),
        checks=() if isinstance(check, str) else (shlex.join(check.command),),
        after=signal.string_field("task_id"),
        tags=("signal", _tag(name)),
    )
    queue = queue_of(dispatch.workspace)
    for known in queue.tasks():
        if _tag(name) in known.tags and queue.where(known.id) in OPEN:
            return Done(f"task {known.id} is queued for it already")
    return _submit(queue, task)


def note(dispatch: Dispatch, signal: Signal) -> Done | Waits:
    """Queue a task to document something, or to write about it, once the work is there."""
    if reason := dispatch.unfinished(signal):
        return Waits(f"{reason}: it is queued once the task has succeeded")
    verb = "Document" if signal.kind == DOCS_NEEDED else "Write about"
    said = signal.string_field("description")
    about = said or f"what task {signal.string_field('task_id')} has done"
    prefix = "docs" if signal.kind == DOCS_NEEDED else "post"
    task = QueuedTask(
        f"{prefix}-{signal.id}",
        f"{verb}: {one_line(about, TITLE)}",
        said,
        kind="refactor",  # it wants a change, and nothing that a test could show
        priority="low",
        after=signal.string_field("task_id"),
        tags=("signal",),
    )
    return _submit(queue_of(dispatch.workspace), task)


def _submit(queue: Queue, task: QueuedTask) -> Done:
    """Queue a task once: whoever did so before may have been killed before the signal was gone."""
    if queue.find(task.id) is None:
        try:
            queue.submit(task)
        except UsageError:
            if queue.find(task.id) is None:  # else somebody was quicker
                raise
    return Done(f"task {task.id} is queued: {task.title}")


def _tag(name: str) -> str:
    return f"tests-of-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


CONSUMERS: dict[str, Consumer] = {
    FEATURE_READY: test,
    TESTS_PASSED: request_merge,
    TESTS_FAILED: mend,
    DOCS_NEEDED: note,
    BLOG_POST_QUEUED: note,
    MERGE_REQUESTED: merge_branch,
    PLAN_APPROVED: approve_plan,
    HUMAN_APPROVED: answer,
}
"""Who acts on which kind; the others are acted on by the loop, and by people."""


# --- Finding the signals that wait, and calling their consumers ---------------------------------------

ROUNDS = 5
"""How often is looked again where a consumer has given something to another. Chosen, not measured."""

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of a signal.

    Attributes:
        signal: which.
        done: whether it was acted on, and is gone.
        told: what came of it, or for what it waits.
    """

    signal: Signal
    done: bool
    told: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**self.signal.to_dict(), "done": self.done, "told": self.told}


def handle(
    workspace: Workspace,
    *,
    cancelled: threading.Event | None = None,
    has_project: bool = False,
    known: Mapping[str, Consumer] = CONSUMERS,
    only: Callable[[Signal], bool] = lambda _signal: True,
) -> list[Handled]:
    """Act on the signals that wait, also on those that doing so gives.

    Several processes may do this at once: a kind is acted on by one of them at a time. A signal goes
    after its effect; after a crash in between it is acted on again.

    Args:
        workspace: the project.
        cancelled: ends whatever runs when set.
        has_project: whoever calls holds the project already.
        known: who acts on which kind.
        only: which signals are acted on.

    Returns:
        What became of each, in the order in which that happened; those that wait last.

    Example:
        >>> import tempfile
        >>> from loki import Workspace
        >>> workspace = Workspace(tempfile.mkdtemp())
        >>> given = signals_of(workspace).emit("DOCS_NEEDED", data={"description": "the API"})
        >>> [one.told.split(": ", 1)[1] for one in handle(workspace)]
        ['Document: the API']
    """
    signals = signals_of(workspace)
    dispatch = Dispatch(workspace, signals, cancelled or threading.Event(), has_project)
    signals.sweep()
    done: list[Handled] = []
    for _ in range(ROUNDS):
        round_ = [one for kind in known for one in _kind(dispatch, kind, known[kind], only)]
        done += [one for one in round_ if one.done]
        if not any(one.done for one in round_) or dispatch.cancelled.is_set():
            break
    return done + [one for one in round_ if not one.done]


def _kind(
    dispatch: Dispatch, kind: str, consumer: Consumer, only: Callable[[Signal], bool]
) -> Iterator[Handled]:
    if not dispatch.signals.pending(kind):
        return
    folder = dispatch.workspace.folder / "state"
    make_folder(folder)
    with locks.hold_if_free(folder / f"signal-{kind.lower()}") as is_alone:
        if not is_alone:
            return
        for signal in dispatch.signals.pending(kind):
            if dispatch.cancelled.is_set():
                return
            if only(signal):
                yield _one(dispatch, signal, consumer)


def _one(dispatch: Dispatch, signal: Signal, consumer: Consumer) -> Handled:
    try:
        result = consumer(dispatch, signal)
    except (LokiError, OSError) as error:
        result = Waits(str(error))
    if isinstance(result, Done):
        dispatch.signals.consume(signal)
        logger.info("signal %s: %s", signal.label, result.told)
    return Handled(signal, isinstance(result, Done), result.told)


# --- When something among the signals has changed -----------------------------------------------------

LOOK = 0.2
"""Seconds between two looks, each of which takes 20 µs of processor time with five signals. Chosen."""

EVERY = 10.0
"""Seconds after which signals that wait for something else are looked at again. Chosen."""


def changes(
    folder: Path, cancelled: threading.Event, *, every: float = EVERY, look: float = LOOK
) -> Iterator[None]:
    """Yield at once, then whenever something in a folder has changed, until it is cancelled.

    Args:
        folder: what is watched; made where it is missing.
        cancelled: ends it at once when set.
        every: seconds after which it yields although nothing has changed.
        look: seconds between two looks.

    Raises:
        StoreError: the folder cannot be made.

    What happens while whoever asks is at work is told with the next step: nothing is missed.
    """
    make_folder(folder)
    seen: frozenset[tuple[str, int, int]] | None = None
    told = 0.0
    while not cancelled.is_set():
        there = _look(folder)
        if there != seen or time.monotonic() - told >= every:
            seen, told = there, time.monotonic()
            yield
        else:
            cancelled.wait(look)


def _look(folder: Path) -> frozenset[tuple[str, int, int]]:
    """The files below a folder, each with when it was written and how large it is."""
    found = set()
    for path in path_containment.files(folder):
        try:
            status = os.lstat(os.path.join(folder, path))
        except OSError:
            continue  # gone since
        found.add((path, status.st_mtime_ns, status.st_size))
    return frozenset(found)


# --- Signals and decisions, acted on beside other work ------------------------------------------------


def attend(workspace: Workspace, cancelled: threading.Event | None = None) -> None:
    """Act on the signals that wait, do what people decided, and give up what nobody answered in time.

    Args:
        workspace: the project.
        cancelled: ends whatever runs for a signal when set.
    """
    human_review_answers.finish_reviews(workspace)
    handle(workspace, cancelled=cancelled)


def followed(
    workspace: Workspace, also: Callable[[], object] = lambda: None
) -> AbstractContextManager[None]:
    """Inside, signals are acted on as soon as they come, in a thread of its own.

    What runs for one at the end is ended; the signal waits for the next dispatcher.

    Args:
        workspace: the project.
        also: called after each look, every few seconds: what is done now and then beside work.
    """
    follow = partial(_follow, workspace, also)
    return in_background(follow, "loki-signals", daemon=False)


def _follow(workspace: Workspace, also: Callable[[], object], over: threading.Event) -> None:
    try:
        for _ in changes(workspace.folder / FOLDER, over):
            attend(workspace, over)
            also()
    except (LokiError, OSError) as error:
        logger.warning("signals are not acted on any more: %s", error)
