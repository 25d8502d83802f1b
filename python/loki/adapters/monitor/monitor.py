"""Watches an agent's tool calls and model calls, and says something where they lead nowhere.

The join behind adapters, hooks and the MCP server: it recognizes, keeps, and asks
`loki.decision.monitor.monitor_policy` what to say. ``docs/design/monitor.md`` says why.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import re
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar
from urllib.parse import quote

from loki.adapters.monitor.tool_breakers import tell
from loki.base.documents import Masked
from loki.base.error import AgentStuck, UsageError
from loki.base.path_exists import path_exists
from loki.base.secret import mask_output, mask_secrets, masked
from loki.base.time import Clock, Duration, argument_seconds, isoformat
from loki.decision.monitor.check_evidence import ended
from loki.decision.monitor.monitor_policy import refusal, step
from loki.decision.monitor.monitor_state import (
    NOTHING,
    Ended,
    Failed,
    FailuresReset,
    Finished,
    MonitorEvent,
    MonitorRules,
    MonitorState,
    Passed,
    Reaction,
    Started,
)
from loki.decision.monitor.tool_call import Known, ToolCall, in_file, is_steering, known
from loki.decision.monitor.tool_command import Effect, knowledge
from loki.decision.monitor.tool_result import (
    Outcome,
    ends,
    error_in,
    exit_code_in,
    extent,
    is_wrong_form,
    outcome,
    says_failed,
    short,
    unframed,
)
from loki.execution.assembly import Runs
from loki.execution.resolve import breakers as breakers_of
from loki.execution.resolve import ways
from loki.memory.sign import Sighting, Signs
from loki.memory.store import Store
from loki.memory.tool_failure import ToolFailure, ToolFailures, bounded
from loki.recognition.failure import Failure, recognize
from loki.recognition.pattern import HIGH
from loki.runtime import Runtime

if TYPE_CHECKING:
    from loki.adapters.monitor.breaker_call import FallbackCalls, Way
    from loki.agents.fallback_chain import ChainOptions
    from loki.workspace import Workspace


# --- Folders of a container, and what they are here ---------------------------------------------------

_BEFORE = r"(\x1b\[[0-?]*[ -/]*[@-~]|file://|(?<![\w.~@+%/\\-]))"
"""A colour, or the beginning of an address; else nothing that may belong to a path."""

_AFTER = r"(?=[/\s\"'`:,;)\]>]|\Z)"


def mapped_folders(mapped: Mapping[str, str] | None, root: Path) -> dict[str, str]:
    """Folders there, and the absolute ones that they are here.

    Args:
        mapped: as a person gives them: what they are here is relative to the project.
        root: the project's folder.

    Raises:
        UsageError: one of them is no absolute path, or is ``/``, or what it is here is no path.

    Example:
        >>> mapped_folders({"/workspace/": "."}, Path("/home/me/shop"))
        {'/workspace': '/home/me/shop'}
    """
    found: dict[str, str] = {}
    for there, here in (mapped or {}).items():
        if not isinstance(there, str) or not is_folder_there(there):
            raise UsageError(
                f"mapped: found {there!r}, expected an absolute path of a folder other than /, "
                "such as /workspace"
            )
        if not isinstance(here, str) or "\0" in here:
            raise UsageError(
                f"mapped[{there!r}]: found {here!r}, expected a folder relative to the project, "
                'such as "."'
            )
        found[_plain(there)] = os.path.normpath(os.path.join(root, here))
    return found


def is_folder_there(path: str) -> bool:
    """Whether a path can be mapped.

    Example:
        >>> [is_folder_there(one) for one in ("/app", "/", "", "app", "C:\\\\w")]
        [True, False, False, False, False]
    """
    return path.startswith("/") and "\0" not in path and _plain(path) != "/"


def _plain(path: str) -> str:
    return "/" + posixpath.normpath(path).strip("/")


def as_here(text: str, mapped: Mapping[str, str]) -> str:
    """A text with the folders here for those there, where one begins a path.

    Example:
        >>> as_here("/app/x.py imports /usr/src/app/y.py", {"/app": "/home/me"})
        '/home/me/x.py imports /usr/src/app/y.py'
    """
    there = [one for one in mapped if one in text]
    if not there:
        return text
    names = "|".join(re.escape(one) for one in sorted(there, key=len, reverse=True))
    return re.sub(f"{_BEFORE}({names}){_AFTER}", lambda m: m[1] + mapped[m[2]].rstrip("/"), text)


# --- What came of a tool's call -----------------------------------------------------------------------

_TAG = re.compile(r"</?[a-z_]+>")
_SENTENCE = re.compile(r".{1,299}?(?:[.!?](?=\s|$)|$)")
_COMPLAINS = re.compile(
    r"(?i)error|fail|exception|invalid|n't |not |cannot|could ?not|unable|denied|refused|missing"
    r"|unknown|must |exactly|no "
)
_BLAMES = re.compile(r"(?i)^(?:error|exception)(?:\s+executing\s+\w+)?:\s+")

NAME, WORD, PATH = 200, 300, 1_000
"""Characters of a tool's name, of a word of what its command runs, and of a path, that are kept of a call.
Of longer ones both ends are, and a hash. Chosen, not measured."""


def known_call(call: ToolCall) -> Known:
    """What is known of a call, of a bounded size but for its command: a session's file has much of it."""
    if len(call.name) > NAME:
        call = replace(call, name=short(call.name, NAME))
    found = known(call)
    programs = tuple(tuple(short(word, WORD) for word in one) for one in found.programs)
    return replace(found, path=short(found.path, PATH), programs=programs)


def received_call(
    workspace: Workspace,
    call: Known,
    output: str | bytes | BaseException,
    ok: bool | None,
    exit_code: int | None,
    mapped: Mapping[str, str] | None = None,
) -> Passed | Failed:
    """What a call is to the monitor.

    Args:
        workspace: the project.
        call: the call.
        output: what it gave, or what it raised.
        ok: whether it went well, as its caller says; None: nobody says.
        exit_code: of its command, where it is known.
        mapped: folders of the place where the agent works, and those of the project that they are.
    """
    is_raised = isinstance(output, BaseException)
    if isinstance(output, BaseException):
        output, ok = "".join(traceback.format_exception(output)), bool(ok)
    if isinstance(output, str):
        output, file = unframed(output)
        call = in_file(call, file)
    text = ends(output if isinstance(output, str) else output.decode("utf-8", "replace"))
    runs = call.effect is Effect.RUN or call.is_check or call.also_runs
    if exit_code is None and runs:
        exit_code = exit_code_in(text)
    if ok is None and exit_code is None and call.effect is not Effect.READ and is_wrong_form(text):
        return Failed(replace(call, fits=False, talks=True), Failure.of(_refusal(text)))
    said = outcome(text, exit_code)
    if not call.is_check and knowledge().not_yet.search(text[:2000]):
        call = replace(call, waits=call.waits or (ok is not False and not is_raised))
    if call.stashes and "No local changes" in text:
        call = replace(call, stashes=False)
    ok = _went_well(call, said, text, ok, exit_code)
    said = said.of(runs_tests=call.runs_tests)
    if ok:
        return Passed(call, said)
    whole = mask_output(output) if isinstance(output, bytes) else mask_secrets(output)
    text = whole if isinstance(whole, str) else whole.decode("utf-8", "replace")
    failure = _failure(workspace, call, text, exit_code, mapped or {})
    if ok is None and not _shows_failure(failure, said):
        return Passed(call, said)
    return Failed(call, bounded(failure), extent(text), said)


def _went_well(
    call: Known, said: Outcome, text: str, ok: bool | None, exit_code: int | None
) -> bool | None:
    """Whether a call went well, as far as that is told; None: what is recognized decides.

    What a shell tells of `pytest | tail` is tail's: there the output decides, and so it does where nobody
    tells anything.
    """
    if exit_code == 1 and call.asks:
        return True
    if ok is None and exit_code is not None:
        ok = exit_code == 0
    if ok and call.is_hidden:
        ok = None
    if ok is not None:
        return ok
    if said.is_red and (call.is_check or call.effect is Effect.RUN):
        return False
    if said.is_green:
        return True
    runs = call.effect is Effect.RUN or call.also_runs
    changes, reads = call.effect is Effect.WRITE and not runs, call.effect is Effect.READ
    if exit_code is None and says_failed(text, changes=changes, runs=runs, reads=reads):
        return False
    return None if call.is_check else True


def _shows_failure(failure: Failure, said: Outcome) -> bool:
    """Whether what was recognized in a check's output says that it failed, where nobody else does."""
    if not said.has_begun:
        return True
    known = bool(failure.error_type or failure.error_code or failure.path)
    return bool(failure.tests) or (failure.is_specific and failure.confidence >= HIGH and known)


def _failure(
    workspace: Workspace,
    call: Known,
    text: str,
    exit_code: int | None,
    mapped: Mapping[str, str],
) -> Failure:
    """What failed. Of a tool that refuses what it is given it is what it says first."""
    text = as_here(text, mapped)
    failure = recognize(
        text,
        command=call.command or None,
        exit_code=exit_code,
        root=str(workspace.root),
        patterns=workspace.patterns,
        exists=path_exists(workspace.root),
    )
    is_known = failure.error_type or failure.error_code or failure.tool or failure.path
    is_program = call.effect is Effect.RUN or call.also_runs or call.is_check
    if is_program or is_known or (failure.match and failure.match.is_infrastructure):
        return failure
    said = error_in(text) or _refusal(text)
    return failure if not said or said == failure.message else Failure.of(said)


def _refusal(text: str) -> str:
    """What a tool says first of what is wrong; without such words its first line that has any."""
    lines = [_BLAMES.sub("", _TAG.sub("", line).strip()) for line in text.splitlines()[:40]]
    told = [line for line in lines if any(c.isalpha() for c in line) and not line.endswith(":")]
    said = next(filter(_COMPLAINS.search, told), told[0] if told else "")
    found = _SENTENCE.match(said)
    return found[0] if found else said[:300]


def is_outside(call: Known, root: Path, mapped: Mapping[str, str] | None = None) -> bool:
    """Whether a call changes a file that is not the project's: no check reads it, and it is no try.

    Args:
        call: the call.
        root: the project's folder.
        mapped: folders of the place where the agent works, and those of the project that they are. A
            folder that this machine has not is taken for one of such a place.
    """
    if call.effect is not Effect.WRITE or not os.path.isabs(call.path):
        return False
    if any(_is_in(call.path, there) for there in mapped or ()):
        return False
    try:
        path, folder = os.path.realpath(call.path), os.path.realpath(root)
    except (OSError, ValueError):  # no file has such a name: NUL, half of a character
        return False
    if _is_in(path, folder):
        return False
    top = "/" + path.split("/", 2)[1]
    return os.path.exists(top)


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == os.path.normpath(folder)


# --- Where the state of a session is ------------------------------------------------------------------

FOLDER = "state/sessions/"

MOST_SESSIONS = 100
"""Sessions that are kept, those written last. Chosen, not measured."""

LONGEST_NAME = 100
"""Characters of a session's file name. Chosen, not measured."""

LARGEST = 256 * 1024
"""Characters of a session's file: of a larger one the oldest sightings are dropped. Chosen."""

T = TypeVar("T")
Change = Callable[[MonitorState], tuple[MonitorState, T]]

logger = logging.getLogger("loki")


class LocalSession:
    """A session of this process alone."""

    def __init__(self) -> None:
        self._state = MonitorState()
        self._lock = threading.Lock()

    def change(self, change: Change[T]) -> T:
        """Make one change; nobody's comes in between."""
        with self._lock:
            self._state, answer = change(self._state)
            return answer

    def read(self) -> MonitorState:
        """As it is now."""
        return self._state


class SharedSession:
    """A session that processes share through a file of the workspace.

    Args:
        store: the workspace's.
        name: of the session, any text.
        rules: what counts.
    """

    def __init__(self, store: Store, name: str, rules: MonitorRules) -> None:
        self._store, self._rules = store, rules
        self.document = document_of(name)
        self._lock = threading.Lock()
        self._known: tuple[str, MonitorState] = ("", MonitorState())

    def change(self, change: Change[T]) -> T:
        """Make one change; nobody's comes in between."""
        answers: list[T] = []
        is_new = False

        def rewrite(text: str | None) -> str:
            nonlocal is_new
            is_new = text is None
            before = self._parsed(text, damaged=self._store.set_aside)
            after, answer = change(before)
            answers[:] = [answer]
            if after is before and text is not None:
                return Masked(text)
            new = dumped(after)
            self._known = new, after
            return new

        with self._lock:
            # What a crash of the machine loses of it is seen again; the disk need not be waited for.
            self._store.update(self.document, rewrite, durable=False)
        if is_new:
            self._sweep()
        return answers[0]

    def read(self) -> MonitorState:
        """As it is now."""
        return self._parsed(self._store.read(self.document))

    def _parsed(
        self, text: str | None, damaged: Callable[[str], None] = lambda _: None
    ) -> MonitorState:
        if text is None:
            return MonitorState()
        known, state = self._known
        if text == known:
            return state
        try:
            return MonitorState.from_dict(json.loads(text), self._rules.signs)
        except (ValueError, TypeError, RecursionError) as error:
            logger.warning("%s is damaged (%s): begun anew", self.document, error)
            damaged(self.document)
            return MonitorState()

    def _sweep(self) -> None:
        """Remove the sessions that were not written for the longest time."""
        names = self._store.keys(FOLDER)
        if len(names) <= MOST_SESSIONS:
            return
        by_age = sorted(names, key=lambda name: self._store.written_at(name) or 0.0)
        for name in by_age[:-MOST_SESSIONS]:
            if name != self.document:
                self._store.update(name, lambda _old: None, durable=False)


def document_of(session: str) -> str:
    """The file of a session, relative to ``.loki/``.

    Example:
        >>> document_of("0f3a-77"), document_of("../../x")
        ('state/sessions/0f3a-77.json', 'state/sessions/%2E.%2F..%2Fx.json')
    """
    name = quote(session, safe="", errors="backslashreplace") or "%00"
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 17]}-{sha256(name.encode()).hexdigest()[:16]}"
    return f"{FOLDER}{name}.json"


def dumped(state: MonitorState) -> Masked:
    """A state as text of a bounded size, secrets masked; without its oldest sightings where it is long."""
    data = state.head()
    lines = [sighting.line for sighting in state.seen.sightings]
    left = LARGEST - len(json.dumps(data)) - sum(len(line) + 2 for line in lines)
    for index, line in enumerate(lines):
        if left >= 0:
            lines = lines[index:]
            break
        left += len(line) + 2
        name = state.seen.sightings[index].failure.fingerprint
        if name in data["looks"]:
            left += len(json.dumps({name: data["looks"].pop(name)}))
    else:
        lines = []
    rest, joined = json.dumps(masked(data)), ",\n".join(lines)
    return Masked(f'{rest[:-1]}, "sightings": [\n{joined}\n]}}\n')


# --- The monitor --------------------------------------------------------------------------------------

_Stepped: TypeAlias = tuple[MonitorState, MonitorState, Reaction]
P = ParamSpec("P")


class Monitor:
    """Watches one agent's calls of tools and models.

    Ask it `before` a tool is called, tell it `after`, give the model its `instructions`, and ask it
    at the `ending`. A healthy run hears nothing: every reaction is then ``none``. Safe to share between
    threads and tasks.

    Args:
        workspace: the project, or its folder.
        root: the same, by the name that it has elsewhere; one of both.
        mapped: of an agent that works in a container: folders there, and what they are here, relative to
            the project; ``{"/workspace": "."}``.
        session: where several processes watch one agent, the name that they share: the state is kept
            in ``.loki/state/sessions/``. None: it is kept in memory.
        above: of an agent that works for another one in the same project, the other's session: what goes
            well here counts there, too, as a change or as a check.
        agent: the agent's name, for records.
        task: what it works on, or "".
        wait: how long a call of a model waits until its breaker lets it out, all pauses together; 0: not
            at all; None: as ``[models] wait`` says, 5 minutes.
        breakers: arguments of `loki.Breaker` for calls of models and tools, beside ``[breakers]``.
        signs: where those are that it tells; None: the branch's, which all who work on it share.
        clock: where time comes from; None: the workspace's.

    Raises:
        UsageError: no such folder, both a workspace and a root, or a mapped folder that is not absolute.
        ConfigError: a file in ``.loki/`` that a person wrote cannot be used.

    Example:
        >>> import tempfile
        >>> monitor = Monitor(tempfile.mkdtemp())
        >>> said = "FAILED test_login.py::test_redirect - KeyError: 'next'"
        >>> for text in ("return ''", "return None", "pass"):
        ...     edit = ToolCall("Edit", {"file_path": "login.py", "new_string": text})
        ...     reactions = monitor.after(edit, "ok"), monitor.after(
        ...         ToolCall("Bash", {"command": "pytest -q"}), said, exit_code=1
        ...     )
        ...     print([reaction.kind for reaction in reactions])
        ['none', 'none']
        ['none', 'none']
        ['none', 'nudge']
    """

    def __init__(
        self,
        workspace: Runtime | str | Path | None = None,
        *,
        root: str | Path | None = None,
        mapped: Mapping[str, str] | None = None,
        session: str | None = None,
        above: str | None = None,
        agent: str = "agent",
        task: str = "",
        wait: Duration | None = None,
        breakers: Mapping[str, Any] | None = None,
        signs: Signs | None = None,
        clock: Clock | None = None,
    ) -> None:
        if workspace is not None and root is not None:
            raise UsageError("both a workspace and a root are given: expected one of them")
        place = (root if workspace is None else workspace) or "."
        self.workspace = place if isinstance(place, Runtime) else Runtime(place, clock=clock)
        self.mapped = mapped_folders(mapped, self.workspace.root)
        self.clock: Clock = clock or self.workspace.clock
        self.session, self.above, self.signs = session, above, signs
        self.agent, self.task = agent, task
        self.wait = None if wait is None else argument_seconds("wait", wait)
        self._settings = breakers
        self.rules = MonitorRules(Runs(self.workspace).signs().rules)
        if self.workspace.is_configured:
            retries = self.workspace.config.loop.max_retries
            self.rules = MonitorRules.of(self.rules.signs, retries)
        self._state = LocalSession() if session is None else self._shared(session)
        self._above = None if above is None else self._shared(above)
        self._branch_signs: Signs | None = None  # what it has read is read again at a change only
        self._lock = threading.Lock()

    def _shared(self, session: str) -> SharedSession:
        return SharedSession(self.workspace.store, session, self.rules)

    @cached_property
    def _ways(self) -> ChainOptions:  # loaded once something can be down
        found = self.workspace.once(ways)
        if self._settings is None:
            return found
        return replace(found, breakers=breakers_of(self.workspace, calls=self._settings))

    # --- Tools ------------------------------------------------------------------------------------

    def before(self, call: ToolCall) -> Reaction:
        """Whether a call may be made: refused while what it reaches is known to be down.

        Args:
            call: the call.
        """
        said = known_call(call)
        if not said.breaker:
            return NOTHING
        now = self._ways.breakers[said.breaker].snapshot()
        last = now.last_error if self.signs is None else ""
        return refusal(said, now.retry_after, last) if now.state == "OPEN" else NOTHING

    def after(
        self,
        call: ToolCall,
        output: str | bytes | BaseException,
        *,
        ok: bool | None = None,
        exit_code: int | None = None,
    ) -> Reaction:
        """What is to be said about a call that was made.

        Args:
            call: the call.
            output: what it gave, or what it raised.
            ok: whether it went well; None: as the exit code says, else as the output does.
            exit_code: of its command, where it is known.

        Returns:
            The reaction; of a call whose own agent was stuck, ``stop``.
        """
        if isinstance(output, AgentStuck):  # an agent that this one uses as a tool
            return Reaction("stop", output.text, output.reason, output.failure, output.count)
        if isinstance(output, BaseException) and is_steering(output):
            return NOTHING
        event = received_call(self.workspace, known_call(call), output, ok, exit_code, self.mapped)
        if event.call.breaker:
            tell(self._ways.breakers[event.call.breaker], event, output)
        if isinstance(event, Failed):
            return self._failed(event, exit_code)
        if is_outside(event.call, self.workspace.root, self.mapped):
            event = replace(event, call=replace(event.call, tries=False, is_scratch=True))
        return self._step(event)

    def started(self, call: ToolCall, task: str = "") -> None:
        """Take note of a call that goes on in the background.

        Args:
            call: the call.
            task: what `finished` will be told when it has ended; "": nobody will tell.
        """
        self._step(Started(known_call(call), short(task, NAME)))

    def finished(self, task: str, output: str, *, exit_code: int | None = None) -> Reaction:
        """What is to be said of a call that went on in the background and has ended, as `after` does.

        Args:
            task: as `started` was told.
            output: what it printed.
            exit_code: of its command; None: nobody knows, as of one that was ended from outside.
        """
        task = short(task, NAME)
        _, going = ended(self._state.read(), task)
        self._step(Finished(task))
        if going is None or exit_code is None:
            return NOTHING
        call = ToolCall(going.tool, {"command": going.command})
        return self.after(call, output, exit_code=exit_code)

    def helped(self) -> None:
        """Take note that a person has spoken to an agent that was told to stop: it counts anew."""
        self._step(FailuresReset())

    def close(self) -> None:
        """Count anew, and end the branch's run with its signs as ``loki close`` does; given ones stay.

        Raises:
            UsageError: another run is at work in the project.
        """
        self.helped()
        if self.signs is None:
            with self.workspace.exclusive():
                Runs(self.workspace).close()

    def _failed(self, failed: Failed, exit_code: int | None) -> Reaction:
        before, reaction = self._state.read(), self._step(failed)
        who = self.session or "", self.agent, self.task
        what = isoformat(self.clock.now()), failed.call.tool, failed.call.said, failed.failure
        record = ToolFailure(*what, "; ".join(before.tried), *who, exit_code)
        ToolFailures(self.workspace.store).add(record)
        return reaction

    def _step(self, event: MonitorEvent) -> Reaction:
        if self._above is not None and isinstance(event, Passed):
            self._change(self._above, event)
        return self._change(self._state, event)

    def _change(self, session: LocalSession | SharedSession, event: MonitorEvent) -> Reaction:
        def change(state: MonitorState) -> tuple[MonitorState, _Stepped]:
            after, reaction = step(state, event, self.rules)
            return after, (state, after, reaction)

        before, after, reaction = session.change(change)
        if before.seen is not after.seen:
            if isinstance(event, Passed):
                self._mended(before, after)
            elif isinstance(event, Failed) and not (after.stashed or event.call.stashes):
                sighting = after.seen.sightings[-1]
                look = before.looks.get(sighting.failure.fingerprint)
                if sighting.count == 1 or reaction:  # what it is not told, no sign tells either
                    self._observe(sighting, event, is_told=look is not None and look.told)
        return reaction

    def _mended(self, before: MonitorState, after: MonitorState) -> None:
        """Keep what has mended failures, and take back their signs."""
        left = {one.failure.fingerprint for one in after.seen.sightings}
        gone = [one.failure for one in before.seen.sightings if one.failure.fingerprint not in left]
        now, names = isoformat(self.clock.now()), [one.fingerprint for one in gone]
        if before.tried:
            solution = "; ".join(before.tried)
            ToolFailures(self.workspace.store).mended(now, names, solution, self.session or "")
        with self._signs() as signs:
            signs.mend(gone)

    def _observe(self, sighting: Sighting, event: Failed, *, is_told: bool) -> None:
        """Tell the signs of a failure that counted, and of what led to it while the agent was not told."""
        first = sighting.count == 1  # seen in another session, nothing was tried in this one
        led = [one.text for one in sighting.approaches for _ in range(one.count)] or [""]
        missed = 0 if is_told else max(0, sighting.count - 2)
        with self._signs() as signs:
            for one in led[-1 - missed :]:
                command = event.call.command
                signs.observe(event.failure, one, self.task, command=command, only_new=first)

    # --- What the model is told -------------------------------------------------------------------

    def instructions(self) -> str:
        """The signs that bind now, for the next request to the model; "" where there are none."""
        with self._signs() as signs:
            told = str(signs)
        return f"{HEAD}\n{told}" if told else ""

    def ending(
        self, message: str, *, turn: str = "", running: Collection[str] | None = None
    ) -> Reaction:
        """Whether the agent may end with a message.

        Args:
            message: its last words.
            turn: what it works on since a person has spoken, where that has a name.
            running: tasks (see `started`) that are known to go on; None: nobody knows.

        Returns:
            ``refuse`` where it claims plainly what the run speaks against, or what nothing in it bears
            out, at most once for each claim and twice in a turn; else ``none``.
        """
        still = None if running is None else frozenset(short(one, NAME) for one in running)
        return self._step(Ended(message, turn, still))

    @contextmanager
    def _signs(self) -> Iterator[Signs]:
        """Those that were given, or those of the branch that is checked out now."""
        with self._lock:
            if self.signs is not None:
                yield self.signs
                return
            branch = self.workspace.position()[0]
            if self._branch_signs is None or self._branch_signs.branch != branch:
                self._branch_signs = Runs(self.workspace).signs(branch)
            yield self._branch_signs

    # --- The same, off the event loop -------------------------------------------------------------

    async def abefore(self, call: ToolCall) -> Reaction:
        """`before`, off the event loop."""
        return await _off(self.before, call)

    async def aafter(
        self,
        call: ToolCall,
        output: str | bytes | BaseException,
        *,
        ok: bool | None = None,
        exit_code: int | None = None,
    ) -> Reaction:
        """`after`, off the event loop."""
        return await _off(self.after, call, output, ok=ok, exit_code=exit_code)

    async def ainstructions(self) -> str:
        """`instructions`, off the event loop."""
        return await _off(self.instructions)

    async def aending(self, message: str) -> Reaction:
        """`ending`, off the event loop."""
        return await _off(self.ending, message)

    # --- Models -----------------------------------------------------------------------------------

    def call(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a model through its circuit breaker, and again after a wait where it had an outage.

        Whoever calls it here must not retry by itself: loki's retries are the only ones.

        Args:
            name: of the breaker, such as ``api/openai/gpt-5``; "": what is called passes its own, waits
                and asks again by itself.
            function: makes one call; args, kwargs: what it is given.

        Raises:
            BreakerOpen: the breaker lets nothing out for as long as ``wait`` says.
            Exception: whatever the function raised: at once where that is no outage, else once the
                retries are spent.
        """
        return self._way(name).call(partial(function, *args, **kwargs))

    async def acall(
        self, name: str, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`call` of a coroutine function, in the running event loop."""
        return await self._way(name).acall(partial(function, *args, **kwargs))

    def astream(
        self, name: str, function: Callable[[], AsyncIterator[T]], is_silent: Callable[[T], bool]
    ) -> AsyncIterator[T]:
        """`call` of what streams: asked again only as long as it has said nothing.

        Args:
            name: as there.
            function: begins one stream.
            is_silent: whether an event says nothing yet, and another stream may begin after it.
        """
        from loki.adapters.monitor.breaker_call import astream

        return astream(self._way(name), function, is_silent)

    def _way(self, name: str) -> Way:
        from loki.adapters.monitor.breaker_call import Way

        return Way(self._ways, (name,), self.task, self.wait)

    def fallback_calls(self) -> FallbackCalls:
        """One call of a model whose members are asked in turn by somebody else: each through its breaker."""
        from loki.adapters.monitor.breaker_call import FallbackCalls

        return FallbackCalls(self._ways, self.task, self.wait)


HEAD = "These failures came back. What led to them led nowhere; this binds what you do next:"


async def _off(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What may touch the disk, off the event loop; a cancellation does not tear it apart."""
    import asyncio  # there already, where somebody awaits

    return await asyncio.shield(asyncio.to_thread(work, *args, **kwargs))
