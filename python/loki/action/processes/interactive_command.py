"""A command run in a person's place: they see, type and interrupt as if loki were not there.

Unlike what a model proposes (`loki.action.processes.process`), nothing is taken away here: the command
has the person's terminal, environment and signals, and what it leaves running in the background goes on.
loki only reads along.
"""

from __future__ import annotations

import errno
import os
import select
import selectors
import signal
import termios
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from typing import TYPE_CHECKING

from loki.action.processes.command_line import (
    find_program,
    leading_assignments,
    not_runnable_message,
)
from loki.action.processes.process import HeadTailBuffer, ProgramNotFound
from loki.base.error import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_OUTPUT = 64 * 2**20
"""Bytes kept of what the command prints, the first and the last half. Chosen, not measured."""

LINGER = 0.2
"""Seconds of silence after the command's end before loki stops listening to what it left running,
which may hold its output open for ever. Chosen, not measured."""

PASSED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
"""Signals that go on to the command."""

_HEARD = PASSED | {signal.SIGCHLD, signal.SIGWINCH}
_FOR_CHILD = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them; a command expects them
_CHUNK = 1 << 16
_LFLAG, _OFLAG = 3, 1  # places in what `termios.tcgetattr` gives
_NOT_FOUND, _NOT_STARTED = 127, 126  # as shells have it


class NotStarted(ProgramNotFound):
    """The command could not be started.

    Attributes:
        exit_code: what a shell exits with: 127 where there is no such program, else 126.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class InteractiveResult:
    """How the command went.

    Attributes:
        exit_code: its own, or 128 + the signal that ended it, as shells have it.
        signal: the signal that ended it, or None.
        kept: both streams, whole lines as they came.
        duration: seconds from start to end.
        interrupted: Ctrl-C was pressed, or SIGINT came, while it ran.
        trouble: why output could not be passed on to its end, or empty.
        unread: whoever read the output has gone before its end.
    """

    exit_code: int
    signal: int | None
    kept: HeadTailBuffer
    duration: float
    interrupted: bool = False
    trouble: str = ""
    unread: bool = False


def run_interactively(command: Sequence[str]) -> InteractiveResult:
    """Run a command with this process's streams, pass all through, and keep what it printed.

    Where stdout or stderr is a terminal the command sees a terminal, too, so that it prints colors
    and progress. Called from the main thread only.

    Args:
        command: program and arguments; leading ``NAME=value`` words go to its environment.

    Raises:
        NotStarted: there is no such program, or it cannot be started.
        UsageError: the command names no program.
    """
    extra, words = leading_assignments(command)
    if not words or not words[0]:
        raise UsageError(f"{list(command)!r}: expected a program and its arguments")
    program = find_program(words[0], path=extra.get("PATH"))
    if program is None:
        is_there = "/" in words[0] and os.path.lexists(words[0])
        raise NotStarted(_why_not(words[0]), _NOT_STARTED if is_there else _NOT_FOUND)
    with _Job(program, words, {**os.environ, **extra}) as job:
        job.start()
        return job.attend()


def _why_not(program: str) -> str:
    said = not_runnable_message(program, ".")
    if " " in program and "/" not in program.split(maxsplit=1)[0]:
        return f"{said}; its words are arguments of their own, and what needs a shell goes to sh -c"
    return said


class _Stream:
    """One way for output: from the command to where loki's own goes, seen on the way."""

    def __init__(self, targets: tuple[int, ...]) -> None:
        self.targets = targets
        self.begun = b""  # a line whose end has not come yet
        self.is_open = True
        self.is_terminal = os.isatty(targets[0])
        if self.is_terminal:
            try:
                self.reader, self.theirs = os.openpty()
                self._be_like(targets[0])
            except (OSError, termios.error):
                self.is_terminal = False  # none to be had: the command does without
        if not self.is_terminal:
            self.reader, self.theirs = os.pipe()

    def _be_like(self, terminal: int) -> None:
        settings = termios.tcgetattr(terminal)
        # Bytes must come out as they go in: the real terminal does what is to be done to them.
        settings[_OFLAG] &= ~termios.OPOST
        settings[_LFLAG] &= ~termios.ECHO
        termios.tcsetattr(self.theirs, termios.TCSANOW, settings)
        self.resize()

    def resize(self) -> None:
        """Give the command's terminal the size of the real one."""
        if self.is_terminal and self.is_open:
            with suppress(OSError):
                size = ioctl(self.targets[0], termios.TIOCGWINSZ, bytes(8))
                ioctl(self.reader, termios.TIOCSWINSZ, size)

    def read(self) -> bytes:
        """What has come; nothing at the end."""
        try:
            return os.read(self.reader, _CHUNK)
        except OSError as error:
            if error.errno == errno.EIO:  # how a pseudo-terminal says that it is closed
                return b""
            raise

    def pass_on(self, chunk: bytes) -> None:
        """Write to loki's own stream.

        Raises:
            OSError: it takes no more.
        """
        rest = memoryview(chunk)
        while rest:
            try:
                rest = rest[os.write(self.targets[0], rest) :]
            except BlockingIOError:
                select.select([], [self.targets[0]], [])

    def close(self) -> None:
        """Hear no more; a command that goes on writing is told so by the system."""
        if self.is_open:
            self.is_open = False
            os.close(self.reader)


def _streams() -> list[_Stream]:
    """One where stdout and stderr lead to the same place, so that their order is kept; else two."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(1), os.fstat(2)):
            return [_Stream((1, 2))]
    return [_Stream((1,)), _Stream((2,))]


class _Job:
    """One command from start to end; the only state is in here."""

    def __init__(self, program: str, words: Sequence[str], environment: dict[str, str]) -> None:
        self.program, self.words, self.environment = program, words, environment
        self.kept = HeadTailBuffer(MAX_OUTPUT)
        self.waiting: list[bytes] = []
        self.waiting_size = 0
        self.streams = _streams()
        self.child = 0
        self.status: int | None = None
        self.over = False
        self.interrupted = False
        self.trouble = ""
        self.unread = False
        self.lock = threading.Lock()
        self.wake, self.waker = os.pipe()
        self.listener = threading.Thread(target=self._listen, daemon=True)

    # --- Start and end -------------------------------------------------------------------------

    def __enter__(self) -> _Job:
        # Blocked signals wait until the listener takes them: none is lost, none interrupts us.
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        return self

    def start(self) -> None:
        """Start the command.

        Raises:
            NotStarted: the system refuses.
        """
        moves = [(os.POSIX_SPAWN_DUP2, s.theirs, t) for s in self.streams for t in s.targets]
        self.began = time.monotonic()
        try:
            self.child = os.posix_spawn(
                self.program, tuple(self.words), self.environment, file_actions=moves,
                setsigmask=self.mask, setsigdef=_FOR_CHILD,
            )  # fmt: skip
        except OSError as error:
            if error.errno == errno.E2BIG:
                said = f"cannot run {self.words[0]!r}: its arguments and environment are too long"
            else:
                said = (
                    not_runnable_message(self.words[0], ".") if "/" in self.words[0] else str(error)
                )
            raise NotStarted(said, _NOT_STARTED) from error
        finally:
            for stream in self.streams:
                os.close(stream.theirs)
        self.listener.start()

    def __exit__(self, *_: object) -> None:
        self.over = True
        if self.listener.ident is not None:
            signal.pthread_kill(self.listener.ident, signal.SIGCHLD)
            self.listener.join()
        for stream in self.streams:
            stream.close()
        os.close(self.wake)
        os.close(self.waker)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def _listen(self) -> None:
        """Take the signals that come to loki, in a thread of its own."""
        while True:
            came = signal.sigwaitinfo(_HEARD)
            if self.over:
                return
            number = came.si_signo
            if number == signal.SIGCHLD:
                os.write(self.waker, b".")
                continue
            if number == signal.SIGINT:
                self.interrupted = True
            if number == signal.SIGWINCH:
                for stream in self.streams:
                    stream.resize()
            elif came.si_code > 0:
                continue  # from the kernel: a key pressed at the terminal, which tells the command, too
            with self.lock:
                if self.status is None:
                    with suppress(ProcessLookupError):
                        os.kill(self.child, number)

    # --- While it runs -------------------------------------------------------------------------

    def attend(self) -> InteractiveResult:
        """Pass everything through until the command has ended and is silent."""
        with selectors.DefaultSelector() as selector:
            for stream in self.streams:
                selector.register(stream.reader, selectors.EVENT_READ, stream)
            selector.register(self.wake, selectors.EVENT_READ)
            while self.status is None or any(stream.is_open for stream in self.streams):
                ready = selector.select(None if self.status is None else LINGER)
                if not ready:
                    break
                for key, _ in ready:
                    if key.data is None:
                        os.read(self.wake, _CHUNK)
                        self._reap()
                    elif not self._hear(key.data):
                        selector.unregister(key.fd)
                        key.data.close()
        self._keep(b"".join(stream.begun for stream in self.streams), now=True)
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        return InteractiveResult(
            code if code >= 0 else 128 - code,
            None if code >= 0 else -code,
            self.kept,
            time.monotonic() - self.began,
            self.interrupted,
            self.trouble,
            self.unread,
        )

    def _reap(self) -> None:
        with self.lock:
            if self.status is None:
                pid, status = os.waitpid(self.child, os.WNOHANG)
                self.status = status if pid else None

    def _hear(self, stream: _Stream) -> bool:
        chunk = stream.read()
        if not chunk:
            return False
        takes_more = True
        try:
            stream.pass_on(chunk)
        except OSError as error:
            # Its reader has gone (`… | head`), or the disk is full: the command learns it as well.
            takes_more = False
            self.unread = self.unread or error.errno == errno.EPIPE
            if error.errno not in {errno.EPIPE, errno.EBADF}:
                self.trouble = f"output could not be passed on: {os.strerror(error.errno or 0)}"
        # Two streams are joined line by line: half a line of one would spoil the other's.
        text = stream.begun + chunk
        end = text.rfind(b"\n") + 1 if len(text) < _CHUNK else len(text)
        stream.begun = text[end:]
        self._keep(text[:end])
        return takes_more

    def _keep(self, chunk: bytes, *, now: bool = False) -> None:
        """Collect small pieces: each would cost more than it holds."""
        self.waiting.append(chunk)
        self.waiting_size += len(chunk)
        if now or self.waiting_size >= _CHUNK or len(self.waiting) >= _CHUNK // 64:
            self.kept.add(b"".join(self.waiting))
            self.waiting, self.waiting_size = [], 0
