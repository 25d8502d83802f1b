"""Commands: run without a shell, bounded in time and output, with nothing left running afterwards.

A supervisor process (`loki.action.processes.supervisor`) stands between loki and the command. It ends
the command and everything that the command started when the command ends, when its time is up, when
loki says so, and when loki dies. Of streams of any length the first and the last half are kept.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loki.action.processes.command_line import (
    find_program,
    leading_assignments,
    not_runnable_message,
)
from loki.action.processes.sandbox import Sandbox, log_denials
from loki.base.error import UsageError
from loki.base.secret import clean_environment, mask_output

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


# --- What is kept of a stream -------------------------------------------------------------------------


class HeadTailBuffer:
    """The first and the last half of a stream, whatever its length.

    Args:
        limit: bytes to keep.

    Example:
        >>> kept = HeadTailBuffer(8)
        >>> kept.add(b"abcd"), kept.add(b"efgh"), kept.add(b"ijkl")
        (None, None, None)
        >>> kept.content()
        b'abcd\\n[... 4 bytes left out ...]\\nijkl'
    """

    def __init__(self, limit: int) -> None:
        self.room = self.tail_limit = max(1, limit // 2)
        self.head: list[bytes] = []
        self.tail: deque[bytes] = deque()
        self.tail_size = 0
        self.left_out = 0
        self.lines_left_out = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        if self.room:
            self.head.append(chunk[: self.room])
            chunk = chunk[self.room :] if len(chunk) > self.room else b""
            self.room -= len(self.head[-1])
        if chunk:
            self.tail.append(chunk)
            self.tail_size += len(chunk)
        # Whole chunks only: the tail is at most one chunk too long, and each byte moves once.
        while self.tail and self.tail_size - len(self.tail[0]) >= self.tail_limit:
            dropped = self.tail.popleft()
            self.tail_size -= len(dropped)
            self._leave_out(dropped)

    def _leave_out(self, dropped: bytes) -> None:
        self.left_out += len(dropped)
        self.lines_left_out += dropped.count(b"\n")

    def content(self) -> bytes:
        """What is kept; where bytes are missing in the middle, a line says how many."""
        tail = b"".join(self.tail)
        excess = max(0, len(tail) - self.tail_limit)
        if excess:
            self._leave_out(tail[:excess])
            self.tail, self.tail_size = deque([tail[excess:]]), len(tail) - excess
        if not self.left_out:
            return b"".join(self.head) + tail
        marker = b"\n[... %d bytes left out ...]\n" % self.left_out
        return b"".join(self.head) + marker + tail[excess:]

    def line(self, number: int) -> int:
        """Line of the stream that a line of `content` is, both from 1."""
        before = sum(chunk.count(b"\n") for chunk in self.head) if self.left_out else number
        # The line that says so has a line feed before and after it.
        return number if number <= before + 1 else number + self.lines_left_out - 2


# --- A command, from start to end ---------------------------------------------------------------------

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL. Chosen, not measured."""

MAX_OUTPUT = 16 * 2**20
"""Bytes kept of each output stream, the first and the last half each. Chosen, not measured."""

_POLL = 0.05  # seconds between looks at a `threading.Event`, which cannot be waited for with pipes
_MARGIN = 15.0  # seconds beyond its own deadlines after which the supervisor counts as lost
_CHUNK = 1 << 16
_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))


_held: set[int] = set()
"""Descriptors that every supervisor of this process keeps open; see `outlived_by_commands`."""


@contextlib.contextmanager
def outlived_by_commands(handle: int) -> Iterator[None]:
    """Have a descriptor stay open while any command runs, also when this process is killed.

    A lock that is on it is then not free before nothing of what was begun under it runs any more.

    Args:
        handle: the descriptor; supervisors hold it, commands do not get it.
    """
    _held.add(handle)
    try:
        yield
    finally:
        _held.discard(handle)


class ProgramNotFound(UsageError):
    """A program that does not exist or cannot be executed; the message says which it is."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command went.

    Attributes:
        exit_code: its exit code; None where a signal ended it.
        signal: the signal that ended it, or None.
        stdout: what it printed; both streams, as they came, where they were merged. What was too long
            has a line in its middle that says so.
        stderr: what it printed as errors.
        timed_out: its time was up; it may have ended with any code then.
        cancelled: loki ended it.
        duration: seconds from start to end.
        refused: what its box kept it from, and how to allow it; "" where it tells of nothing.
    """

    exit_code: int | None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    cancelled: bool = False
    duration: float = 0.0
    refused: str = ""

    @property
    def output(self) -> bytes:
        """Both streams: as they came where they were merged, else errors last."""
        return self.stdout + self.stderr

    def masked(self) -> CommandResult:
        """The same with secrets masked in what it printed: for all that is kept, shown or sent."""
        return replace(self, stdout=mask_output(self.stdout), stderr=mask_output(self.stderr))

    @property
    def is_success(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out and not self.cancelled


def run(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    timeout: float | None = None,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    pass_environment: Iterable[str] = (),
    cancelled: threading.Event | None = None,
    max_output: int = MAX_OUTPUT,
    merge: bool = False,
    grace: float = GRACE,
    heard: Callable[[bytes], bool] | None = None,
    box: Sandbox | None = None,
) -> CommandResult:
    """Run a command to its end; afterwards nothing that it started is running.

    May be called from any thread. Ctrl-C ends the command before it is passed on.

    Args:
        command: program and arguments; leading ``NAME=value`` words go to its environment.
        cwd: the folder it runs in.
        timeout: seconds; None: no limit.
        stdin: what it can read; None: nothing.
        environment: variables for it, on top of this process's; those whose names or values
            look like secrets are taken from this process only if ``pass_environment`` names them.
        pass_environment: names, or globs of names, of variables to pass although they look secret.
        cancelled: ends the command when it is set.
        max_output: bytes to keep per stream: the first and the last half.
        merge: both output streams as one, in the order they were written.
        grace: seconds between asking it to end and ending it.
        heard: given each piece of its standard output as it comes; False ends the command.
        box: where it may write; None: wherever its user may.

    Raises:
        ProgramNotFound: the program does not exist or cannot be executed.
        UsageError: a command that names no program, a folder that does not exist.

    Example:
        >>> run(["echo", "hello"], cwd="/").stdout
        b'hello\\n'
    """
    extra, words = leading_assignments(command)
    if not words or not words[0] or any("\0" in word for word in words):
        raise UsageError(f"{list(command)!r}: expected a program and its arguments")
    if not os.path.isdir(cwd):
        raise UsageError(f"{os.fspath(cwd)}: no such folder to run {words[0]!r} in")
    surroundings = clean_environment(os.environ, pass_environment)
    surroundings.update(environment or {})
    surroundings.update(extra)
    cwd, outer = os.path.abspath(cwd), box.words(os.path.abspath(cwd)) if box is not None else ()
    if outer and find_program(words[0], cwd, surroundings.get("PATH")) is None:
        raise ProgramNotFound(not_runnable_message(words[0], cwd))
    said = box.said() if box is not None else b""
    job = _Job((*outer, *words), cwd, timeout or 0.0, grace, cancelled, heard, said)
    with job:
        job.start(surroundings, has_input=stdin is not None, merge=merge)
        job.attend(stdin or b"", max_output)
    done = job.result()
    if box is None or done.is_success:
        return done
    return replace(done, refused=log_denials(done.output, words[0], cwd, box))


@dataclass
class _Job:
    """One command, from start to end, as loki sees it; the only state is in here."""

    words: tuple[str, ...]
    cwd: str
    timeout: float
    grace: float
    cancelled: threading.Event | None
    heard: Callable[[bytes], bool] | None = None
    box: bytes = b""
    supervisor: subprocess.Popen[bytes] | None = None
    child: int = 0
    exit_code: int | None = None
    number: int | None = None
    reason: str = ""
    failure: str = ""
    ends: dict[str, int] = field(default_factory=dict)
    kept: dict[str, HeadTailBuffer] = field(default_factory=dict)
    started: float = 0.0
    ended: float = 0.0
    _line: bytes = b""

    def __enter__(self) -> _Job:
        return self

    def start(self, environment: dict[str, str], *, has_input: bool, merge: bool) -> None:
        theirs: dict[str, int] = {}
        try:
            theirs["control"], self.ends["control"] = os.pipe()
            self.ends["status"], theirs["status"] = os.pipe()
            if has_input:
                theirs["stdin"], self.ends["stdin"] = os.pipe()
            else:
                theirs["stdin"] = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            self.ends["stdout"], theirs["stdout"] = os.pipe()
            if not merge:
                self.ends["stderr"], theirs["stderr"] = os.pipe()
            if self.box:
                theirs["box"] = _in_memory(self.box)
            self._spawn(theirs, environment)
        finally:
            for handle in theirs.values():
                os.close(handle)

    def _spawn(self, theirs: dict[str, int], environment: dict[str, str]) -> None:
        handles = [theirs["control"], theirs["status"], theirs["stdin"], theirs["stdout"],
                   theirs.get("stderr", theirs["stdout"])]  # fmt: skip
        box = (theirs["box"],) if "box" in theirs else ()
        held = tuple(_held)
        self.started = time.monotonic()
        try:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", _SUPERVISOR, *map(str, handles),
                 ",".join(map(str, held)), repr(self.timeout), repr(self.grace), "".join(map(str, box)),
                 self.cwd, *self.words],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd="/", env=environment, pass_fds=(*handles, *box, *held), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise UsageError(
                    f"cannot run {self.words[0]!r}: its arguments and environment are too long; "
                    "long text goes to its standard input"
                ) from error
            raise

    # --- While it runs -------------------------------------------------------------------------

    def attend(self, data: bytes, limit: int) -> None:
        """Feed it, listen to it, and return when the supervisor says that all is over."""
        rest = memoryview(data)
        with selectors.DefaultSelector() as selector:
            for name, handle in self.ends.items():
                if name != "control":
                    os.set_blocking(handle, False)
                    kind = selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ
                    selector.register(handle, kind, name)
                if name in {"stdout", "stderr"}:
                    self.kept[name] = HeadTailBuffer(limit)
            while not self.reason and "status" in self.ends and not self._is_overdue():
                for key, _ in selector.select(self._pause()):
                    if key.data == "stdin":
                        rest = self._feed(selector, rest)
                    elif not self._listen(key.data):
                        self._close(key.data, selector)
                if self.cancelled is not None and self.cancelled.is_set():
                    self._close("control")
        self._drain("stdout", "stderr")

    def _pause(self) -> float | None:
        if self.cancelled is not None and "control" in self.ends:
            return _POLL
        return 1.0 if self.timeout else None

    def _is_overdue(self) -> bool:
        limit = self.timeout + self.grace + _MARGIN
        return bool(self.timeout) and time.monotonic() - self.started > limit

    def _feed(self, selector: selectors.BaseSelector, rest: memoryview) -> memoryview:
        try:
            rest = rest[os.write(self.ends["stdin"], rest[:_CHUNK]) :]
        except BlockingIOError:
            return rest
        except OSError:  # it closed its standard input: it does not want the rest
            rest = rest[:0]
        if not rest:
            self._close("stdin", selector)
        return rest

    def _listen(self, name: str, *, at_most_one: bool = False) -> bool:
        """Read what there is; false at the end (or where, once all is over, nothing is left)."""
        try:
            chunk = os.read(self.ends[name], _CHUNK)
        except BlockingIOError:
            return not at_most_one
        if name == "status":
            self._hear(chunk)
        else:
            self.kept[name].add(chunk)
            if name == "stdout" and chunk and self.heard is not None and not self.heard(chunk):
                self._close("control")
        return bool(chunk)

    def _drain(self, *names: str) -> None:
        for name in names:
            while name in self.ends and self._listen(name, at_most_one=True):
                pass

    def _hear(self, chunk: bytes) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            if word == "started":
                self.child = int(rest)
            elif word == "failed":
                self.failure = rest
            elif word in {"exit", "signal"}:
                self.ended = time.monotonic()
                if word == "exit":
                    self.exit_code = int(rest)
                else:
                    self.number = int(rest)
            elif word == "end":
                self.reason = rest

    def _close(self, name: str, selector: selectors.BaseSelector | None = None) -> None:
        handle = self.ends.pop(name, None)
        if handle is not None:
            if selector is not None:
                selector.unregister(handle)
            os.close(handle)

    # --- The end -------------------------------------------------------------------------------

    def __exit__(self, *_: object) -> None:
        # Closing the control pipe is what ends the command; it happens on every way out.
        self._close("control")
        try:
            if self.supervisor is not None:
                self._wait_for_supervisor()
        finally:
            for name in tuple(self.ends):
                self._close(name)

    def _wait_for_supervisor(self) -> None:
        assert self.supervisor is not None
        # It must not block on streams that nobody reads any more.
        for name in ("stdin", "stdout", "stderr"):
            self._close(name)
        try:
            self.supervisor.wait(self.grace + _MARGIN)
        except BaseException as error:  # a second Ctrl-C: no more patience, but no less care
            self.supervisor.kill()
            self.supervisor.wait()
            self._kill_group()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        if not self.reason:
            self._drain("status")
        if not self.reason:  # the supervisor was killed: the rest falls to us
            self._kill_group()

    def _kill_group(self) -> None:
        if not self.child:
            with contextlib.suppress(OSError, KeyError):
                self._hear(os.read(self.ends["status"], _CHUNK))
        if self.child:
            with contextlib.suppress(OSError):
                os.killpg(self.child, signal.SIGKILL)

    def result(self) -> CommandResult:
        if self.failure:
            raise self._failure()
        number = self.number
        if self.exit_code is None and number is None:
            number = int(signal.SIGKILL)
        kept = {name: buffer.content() for name, buffer in self.kept.items()}
        return CommandResult(
            exit_code=self.exit_code,
            signal=number,
            stdout=kept.get("stdout", b""),
            stderr=kept.get("stderr", b""),
            timed_out=self.reason == "timeout",
            cancelled=self.reason == "cancelled",
            duration=(self.ended or time.monotonic()) - self.started,
        )

    def _failure(self) -> UsageError:
        code, _, stage = self.failure.partition(" ")
        if stage == "cwd":
            return UsageError(f"{self.cwd}: {os.strerror(int(code))}: cannot run anything there")
        if stage == "box":
            return UsageError(
                f"cannot put {self.words[0]!r} into a sandbox: {os.strerror(int(code))}"
            )
        if int(code) in {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EISDIR}:
            return ProgramNotFound(not_runnable_message(self.words[0], self.cwd))
        return UsageError(f"cannot run {self.words[0]!r}: {os.strerror(int(code))}")


def _in_memory(data: bytes) -> int:
    """A descriptor of a file that is nowhere, and holds it; Linux has them, as it has landlock."""
    handle = os.memfd_create("loki")
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(data)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
