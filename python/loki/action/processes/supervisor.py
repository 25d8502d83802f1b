"""The small process between loki and a command: nothing of the command outlives it.

Run as a script by `loki.action.processes.process`, with nothing but the standard library:

    supervisor.py CONTROL STATUS STDIN STDOUT STDERR HELD TIMEOUT GRACE BOX CWD PROGRAM ARGUMENT...

CONTROL is the read end of a pipe that only loki holds open: the kernel closes it when loki dies,
kill -9 included. STATUS is a pipe on which one line is written per event: ``started PID``,
``failed ERRNO STAGE``, ``exit CODE``, ``signal NUMBER``, at last ``end done|timeout|cancelled``.
The next three are what the command gets as its standard streams. HELD are descriptors, with commas,
that are kept open until all is over, and that the command does not get: who waits for them to be
closed waits for the command. TIMEOUT and GRACE are seconds; no TIMEOUT: 0. BOX is a descriptor of what
the command may write, as `loki.action.processes.landlock` takes it (marshal: every command pays for what is
imported here; no argument: what stands beside a secret may be long); or nothing, where it may write
all that its user may.

The command runs in a session of its own. On Linux the supervisor is a subreaper (prctl(2),
PR_SET_CHILD_SUBREAPER), so that descendants that were orphaned or left the session (setsid,
daemons) become its children and are found and ended too; elsewhere only the command's process
group is. What asks another service to run something for it (systemd, at, docker) gets away.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_IS_LINUX: bool = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_DEADLINE = 10.0  # seconds to wait for what SIGKILL has hit: it may hang in the kernel


def main(arguments: list[str]) -> None:
    """Run one command and end everything it started."""
    control, status, *streams = (int(number) for number in arguments[:5])
    for held in filter(None, arguments[5].split(",")):
        os.set_inheritable(int(held), False)
    timeout, grace = float(arguments[6]), float(arguments[7])
    restrict = _restriction(int(arguments[8])) if arguments[8] else None
    cwd, command = arguments[9], arguments[10:]
    wakeup = _listen_to_signals()
    _bind_to_parent()
    child = _start(command, cwd, streams, [control, status, *wakeup], restrict)
    for stream in set(streams):
        os.close(stream)
    if isinstance(child, str):
        _say(status, f"failed {child}")
        _say(status, "end done")
        return
    _say(status, f"started {child}")
    watcher = _Watcher(child, control, status, wakeup[0])
    reason = watcher.wait(timeout)
    watcher.end_everything(grace)
    _say(status, f"end {reason}")


def _restriction(box: int) -> Callable[[], None]:
    """What puts a process into its box; all of it is ready before there is one."""
    import marshal

    # Behind the others: nothing here hides a module.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import landlock  # type: ignore[import-not-found]

    sys.path.pop()
    with os.fdopen(box, "rb") as file:  # closed before there is a command
        said = marshal.loads(file.read())  # noqa: S302 - it is loki's
    known = landlock.version()
    return lambda: landlock.restrict(said, known)


def _listen_to_signals() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    return reader, writer


def _prctl(option: int, value: int) -> None:
    if not _IS_LINUX:
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _bind_to_parent() -> None:
    # A second rope beside the control pipe, which a fork of loki could hold open by accident.
    # SIGTERM only wakes us; that the parent has changed is then seen.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _start(
    command: list[str],
    cwd: str,
    streams: list[int],
    private: list[int],
    restrict: Callable[[], None] | None = None,
) -> int | str:
    """The command's process, or ``ERRNO STAGE`` where it could not be started."""
    parent = os.getpid()
    reader, writer = os.pipe()  # closed by a successful exec
    child = os.fork()
    if child == 0:
        stage = "start"
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            for name in ("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGHUP", "SIGTERM", "SIGCHLD"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
            for stream in {*streams, *private}:
                os.close(stream)
            stage = "cwd"
            os.chdir(cwd)
            stage = "box"
            if restrict is not None:
                restrict()
            stage = "program"
            os.execvp(command[0], command)  # noqa: S606
        except OSError as error:
            os.write(writer, f"{error.errno} {stage}".encode())
        finally:
            os._exit(127)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        trouble = pipe.read().decode()
    if trouble:
        os.waitpid(child, 0)
        return trouble
    return child


def _say(status: int, line: str) -> None:
    # Loki may be gone: then nobody listens, and the work goes on.
    with contextlib.suppress(OSError):
        os.write(status, line.encode() + b"\n")


class _Watcher:
    def __init__(self, child: int, control: int, status: int, wakeup: int) -> None:
        self.child, self.control, self.status, self.wakeup = child, control, status, wakeup
        self.parent = os.getppid()
        self.is_running = True

    def wait(self, timeout: float) -> str:
        """Until the command ends (``done``), time is up, or loki cancels or is gone."""
        deadline = time.monotonic() + timeout if timeout else None
        while True:
            self.reap()
            if not self.is_running:
                return "done"
            if os.getppid() != self.parent:
                return "cancelled"
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return "timeout"
            if self.control in self._sleep(left, [self.control, self.wakeup]):
                return "cancelled"

    def end_everything(self, grace: float) -> None:
        """SIGTERM to whatever is left, ``grace`` seconds to go, then SIGKILL until none is left."""
        self._signal_all(signal.SIGTERM)
        self._until_gone(grace, None)
        self._signal_all(signal.SIGKILL)
        self._until_gone(_KILL_DEADLINE, signal.SIGKILL)

    def _until_gone(self, seconds: float, again: signal.Signals | None) -> None:
        deadline = time.monotonic() + seconds
        while self.reap() and time.monotonic() < deadline:
            if again:  # a process may have been forked while we looked for it
                self._signal_all(again)
            pause = min(0.05, max(0.0, deadline - time.monotonic()))
            self._sleep(pause, [self.wakeup])

    def _sleep(self, seconds: float | None, sources: list[int]) -> list[int]:
        ready = select.select(sources, [], [], seconds)[0]
        if self.wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wakeup, 4096)
        return ready

    def reap(self) -> bool:
        """Collect what has ended; whether there are children left."""
        while True:
            try:
                pid, result = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._group_is_alive()
            if pid == 0:
                return True
            if pid == self.child:
                self.is_running = False
                code = os.waitstatus_to_exitcode(result)
                _say(self.status, f"exit {code}" if code >= 0 else f"signal {-code}")

    def _group_is_alive(self) -> bool:
        # Without a subreaper, orphans of the group are no children of ours.
        if _IS_LINUX:
            return False
        try:
            os.killpg(self.child, 0)
        except OSError:
            return False
        return True

    def _signal_all(self, number: signal.Signals) -> None:
        # Once for each: to many a program, a second SIGTERM says not to clean up.
        with contextlib.suppress(OSError):
            os.killpg(self.child, number)
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(OSError):
                if number == signal.SIGKILL or os.getpgid(pid) != self.child:
                    os.kill(pid, number)


def _descendants(root: int) -> list[int]:
    """Processes below one, by /proc; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # "pid (name) state ppid …": the name may hold anything, brackets too.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
