"""Commands end when they should, with all that they started; what they print is kept in bounds."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from loki.action.processes.process import ProgramNotFound, run
from loki.base.error import UsageError

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a subreaper")

# Ignores SIGTERM, as do its child and a grandchild in a session of its own; each holds the pipe
# open, and the last one says that they are there. `exec` so that there is no shell in between.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(int(sys.argv[1]), b"up")
signal.pause()
"""


class Lifeline:
    """A named pipe that every descendant of a command holds open: at its end, none is left."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lifeline"
        os.mkfifo(self.path)
        self.reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def command(self, script: str = STUBBORN) -> list[str]:
        opened = f"import os, sys; sys.argv = ['', os.open({str(self.path)!r}, os.O_WRONLY)]\n"
        return [sys.executable, "-c", opened + script]

    def wait_up(self) -> None:
        assert self._read(60) == b"up"

    def wait_gone(self) -> None:
        """Whatever a daemon still wrote is read; then comes the end, when nobody holds the pipe."""
        while said := self._read(60):
            assert said == b"up"

    def _read(self, seconds: float) -> bytes:
        assert select.select([self.reader], [], [], seconds)[0], "nothing happened"
        return os.read(self.reader, 2)


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    line = Lifeline(tmp_path)
    yield line
    os.close(line.reader)


def test_what_a_command_did(tmp_path: Path) -> None:
    """Exit code, both streams, its folder, its input, its environment."""
    script = 'pwd; cat; echo "$A $B" >&2; exit 3'
    done = run(["A=1", "sh", "-c", script], cwd=tmp_path, stdin=b"in\n", environment={"B": "2"})
    assert done.exit_code == 3
    assert done.stdout == f"{tmp_path}\nin\n".encode()
    assert done.stderr == b"1 2\n"
    assert done.output == done.stdout + done.stderr
    assert not done.is_success
    assert (done.timed_out, done.cancelled) == (False, False)
    assert 0 < done.duration < 60
    assert run(["true"], cwd="/").is_success
    assert run(["sh", "-c", "kill -9 $$"], cwd="/").signal == 9


def test_merged_streams_keep_their_order() -> None:
    """As a terminal would show them."""
    script = "for i in 1 2 3; do echo o$i; echo e$i >&2; done"
    done = run(["sh", "-c", script], cwd="/", merge=True)
    assert done.stdout == b"o1\ne1\no2\ne2\no3\ne3\n"
    assert done.stderr == b""


def test_no_shell_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words arrive as they are; keys stay here unless they are passed on purpose."""
    assert run(["echo", "$HOME", "*", "a;b"], cwd="/").stdout == b"$HOME * a;b\n"
    monkeypatch.setenv("TEST_API_KEY", "k")
    assert b"TEST_API_KEY" not in run(["env"], cwd="/").stdout
    assert b"TEST_API_KEY" in run(["env"], cwd="/", pass_environment=["TEST_*"]).stdout
    ours = os.environ | {"TEST_API_KEY": "mine"}
    assert b"TEST_API_KEY=mine" in run(["env"], cwd="/", environment=ours).stdout


def test_it_inherits_nothing_odd() -> None:
    """Only the standard streams are open, no signal is ignored, input is empty where none is given."""
    done = run(
        ["sh", "-c", "ls /proc/self/fd | wc -w; grep SigIgn /proc/self/status; cat"], cwd="/"
    )
    if os.path.isdir("/proc/self/fd"):
        count, _, ignored = done.stdout.split()
        assert count == b"4"
        own = 0b11 << 31  # signals 32 and 33 belong to the C library and cannot be reset
        assert int(ignored, 16) & ~own == 0


def test_what_cannot_run(tmp_path: Path) -> None:
    """One clear sentence for each, and a type of its own for programs."""
    (tmp_path / "plain").write_text("x")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    for program, says in [
        ("no-such-program", "there is no such program on the PATH"),
        ("./missing", "there is no such file in"),
        ("./plain", r"is not executable \(chmod"),
        ("./broken", "is its #! line right"),
        (str(tmp_path), "it is a folder"),
    ]:
        with pytest.raises(ProgramNotFound, match=says):
            run([program], cwd=tmp_path)
    with pytest.raises(UsageError, match="no such folder to run"):
        run(["true"], cwd=tmp_path / "none")
    for command in ([], [""], ["A=1"], ["a\0b"]):
        with pytest.raises(UsageError, match="expected a program"):
            run(command, cwd="/")
    with pytest.raises(UsageError, match="too long; long text goes to its standard input"):
        run(["true", "x" * 4_000_000], cwd="/")


@LINUX
def test_time_is_up(lifeline: Lifeline) -> None:
    """Children that ignore SIGTERM, or left the session, are ended too; a quick one exits first."""
    done = run(lifeline.command(), cwd="/", timeout=5, grace=0.1)
    assert (done.timed_out, done.exit_code, done.signal) == (True, None, 9)
    lifeline.wait_up()
    lifeline.wait_gone()
    script = "trap 'echo bye; exit 5' TERM; echo hi; while :; do sleep 0.01; done"
    done = run(["sh", "-c", script], cwd="/", timeout=5)
    assert (done.timed_out, done.exit_code, done.stdout) == (True, 5, b"hi\nbye\n")
    assert done.duration < 6.9, "the grace is not waited for when all have gone"


COUNTS = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("hi", flush=True)
while signal.sigtimedwait({signal.SIGTERM}, 600 if sys.argv[1] == "0" else 0.5):
    sys.argv[1] = "1"
    print("term", flush=True)
"""


@LINUX
@pytest.mark.parametrize("session", [[], ["setsid", "--wait"]])
def test_each_process_is_asked_to_end_once(session: list[str]) -> None:
    """To many a program, a second SIGTERM says not to clean up."""
    script = [*session, sys.executable, "-c", COUNTS, "0"]
    assert run(script, cwd="/", timeout=8, grace=10).stdout == b"hi\nterm\n"


@LINUX
def test_cancelled(lifeline: Lifeline) -> None:
    """Another thread says so; and before it began."""
    cancelled = threading.Event()

    def cancel() -> None:
        lifeline.wait_up()
        cancelled.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    done = run(lifeline.command(), cwd="/", cancelled=cancelled, grace=0.1, timeout=60)
    thread.join()
    assert done.cancelled
    assert not done.timed_out
    lifeline.wait_gone()
    assert run(["sleep", "60"], cwd="/", cancelled=cancelled).cancelled


@LINUX
def test_daemons_end_with_the_command(lifeline: Lifeline) -> None:
    """A command that leaves a daemon holding its output: it has ended, and the daemon too."""
    script = "import os, sys\nif os.fork():\n    sys.stdout.flush(); os._exit(7)\n" + STUBBORN
    done = run(lifeline.command(script), cwd="/", timeout=60, grace=0.1)
    assert (done.exit_code, done.timed_out) == (7, False)
    lifeline.wait_gone()


CALLER = """
import sys
from loki.action.processes.process import run
run(sys.argv[1:], cwd="/", timeout=600, grace=0.1)
"""


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_loki_is_killed(lifeline: Lifeline, number: int) -> None:
    """kill -9 included: nothing is left."""
    caller = subprocess.Popen([sys.executable, "-c", CALLER, *lifeline.command()])
    lifeline.wait_up()
    caller.send_signal(number)
    caller.wait()
    lifeline.wait_gone()


@LINUX
def test_ctrl_c(lifeline: Lifeline) -> None:
    """KeyboardInterrupt comes out when all has ended; the terminal's SIGINT never gets in."""
    script = CALLER.replace("run(", "try:\n    run(") + "except KeyboardInterrupt: print('out')\n"
    caller = subprocess.Popen(
        [sys.executable, "-c", script, *lifeline.command()],
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    lifeline.wait_up()
    os.killpg(caller.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
    assert caller.stdout
    assert caller.stdout.readline() == b"out\n"
    assert lifeline._read(0) == b"", "all had ended before it came out"
    caller.stdout.close()
    caller.wait()


@LINUX
def test_the_supervisor_is_killed(lifeline: Lifeline) -> None:
    """The command goes with it, and its group by loki's hand."""
    found: list[int] = []

    def kill() -> None:
        lifeline.wait_up()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
            if b"supervisor.py" in line and str(lifeline.path).encode() in line:
                found.append(int(name))
                os.kill(int(name), signal.SIGKILL)

    script = STUBBORN.replace("os.setsid()", "pass")
    thread = threading.Thread(target=kill)
    thread.start()
    done = run(lifeline.command(script), cwd="/", timeout=60, grace=0.1)
    thread.join()
    assert len(found) == 1
    assert not done.is_success
    assert done.signal == 9
    lifeline.wait_gone()


def test_floods_are_kept_in_bounds() -> None:
    """The first and the last half, memory bounded, and time in proportion to the output."""
    tracemalloc.start()
    script = "echo first; head -c 200000000 /dev/zero; echo last"
    done = run(["sh", "-c", script], cwd="/", max_output=100_000)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert len(done.stdout) < 101_000
    assert done.stdout.startswith(b"first\n")
    assert done.stdout.endswith(b"\0last\n")
    assert b"\n[... 199900011 bytes left out ...]\n" in done.stdout
    exact = run(["head", "-c", "1000", "/dev/zero"], cwd="/", max_output=1000)
    assert exact.stdout == bytes(1000)


def test_one_byte_at_a_time() -> None:
    """Many small writes are no less linear."""
    script = "import os\nfor n in range(20000): os.write(1, b'%d\\n' % n)"
    done = run([sys.executable, "-c", script], cwd="/", max_output=200)
    assert done.stdout.endswith(b"19998\n19999\n")
    assert len(done.stdout) < 300


def test_input_that_nobody_reads() -> None:
    """10 MB to a command that closes its input, ignores it, or reads all of it."""
    data = os.urandom(1 << 20) * 10
    assert run(["true"], cwd="/", stdin=data).is_success
    assert run(["sh", "-c", "exec <&-; echo x"], cwd="/", stdin=data).stdout == b"x\n"
    done = run(["sleep", "600"], cwd="/", stdin=data, timeout=0.2)
    assert done.timed_out
    assert run(["cat"], cwd="/", stdin=data).stdout == data


def test_a_command_that_closes_its_output() -> None:
    """It is waited for all the same."""
    done = run(["sh", "-c", "echo x; exec >&- 2>&-; cat >/dev/null; exit 4"], cwd="/")
    assert (done.exit_code, done.stdout) == (4, b"x\n")


THREADS = """
import os, threading
from loki.action.processes.process import run
results = {}
def work(number):
    results[number] = run(["sh", "-c", f"cat; echo {number}"], cwd="/", stdin=b"x" * number).stdout
def descriptors():
    return os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
work(0)
before = descriptors()
threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert results == {n: b"x" * n + b"%d\\n" % n for n in range(12)}
assert descriptors() == before
"""


def test_many_threads() -> None:
    """Each gets its own result, and nothing leaks: in a process in which nothing else opens files."""
    subprocess.run([sys.executable, "-c", THREADS], check=True)


def test_a_fork_of_loki_holds_nothing_up(lifeline: Lifeline) -> None:
    """A process forked off the caller inherits the control pipe; killing loki still ends all."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs PR_SET_PDEATHSIG")
    script = (
        "import os, sys, threading, time\n"
        "from loki.action.processes.process import run\n"
        "t = threading.Thread(target=lambda: run(sys.argv[2:], cwd='/', timeout=600, grace=0.1))\n"
        "t.start()\n"
        "reader = os.open(sys.argv[1], os.O_RDONLY)\n"
        "os.read(reader, 1)\n"
        "child = os.fork()\n"
        "if child == 0: os.read(0, 1); os._exit(0)\n"
        "print(child, flush=True)\n"
        "t.join()\n"
    )
    gate = lifeline.path.with_name("gate")
    os.mkfifo(gate)
    hold, writer = os.pipe()
    caller = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, str(gate), *lifeline.command()],
        stdin=hold, stdout=subprocess.PIPE,
    )  # fmt: skip
    lifeline.wait_up()
    gate.write_text("go")
    assert caller.stdout
    caller.stdout.readline()
    caller.kill()
    caller.wait()
    lifeline.wait_gone()
    os.close(writer)
    os.close(hold)
    caller.stdout.close()


def test_it_starts_fast() -> None:
    """The supervisor costs tens of milliseconds, not seconds."""
    assert min(run(["true"], cwd="/").duration for _ in range(5)) < 1


def test_output_is_heard_as_it_comes(tmp_path: Path) -> None:
    """The command goes on only once what it said has been heard."""
    heard: list[bytes] = []

    def hear(chunk: bytes) -> bool:
        heard.append(chunk)
        (tmp_path / "heard").touch()
        return True

    script = "echo one; while ! test -e heard; do :; done; echo two; echo error >&2"
    done = run(["sh", "-c", script], cwd=tmp_path, timeout=60, heard=hear)
    assert done.is_success
    assert b"".join(heard) == done.stdout == b"one\ntwo\n"


def test_who_hears_may_end_it(tmp_path: Path) -> None:
    done = run(["sh", "-c", "echo enough; exec sleep 600"], cwd=tmp_path, heard=lambda _: False)
    assert done.cancelled
    assert done.stdout == b"enough\n"
    with pytest.raises(ZeroDivisionError):
        run(["sh", "-c", "echo x; exec sleep 600"], cwd=tmp_path, heard=lambda _: 1 // 0 > 0)


def test_a_lock_outlives_whoever_took_it_until_the_last_command_is_gone(tmp_path: Path) -> None:
    """Killed by kill -9, loki's lock is free once its supervisor is gone, and no command had it."""
    script = (
        "import fcntl, os, sys\n"
        "from loki.action.processes.process import outlived_by_commands, run\n"
        f"handle = os.open({str(tmp_path / 'lock')!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(handle, fcntl.LOCK_EX)\n"
        "with outlived_by_commands(handle):\n"
        "    run(['sh', '-c', 'ls -l /proc/self/fd > fds; trap \"\" TERM; touch began; sleep 600 & wait; wait'],"
        f" cwd={str(tmp_path)!r}, grace=8)\n"
    )
    loki = subprocess.Popen([sys.executable, "-c", script])
    end = time.monotonic() + 60
    while not (tmp_path / "began").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    loki.kill()
    loki.wait()
    with open(tmp_path / "lock") as lock:
        with pytest.raises(BlockingIOError):  # the command ignores SIGTERM: it has its grace yet
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert f"{tmp_path}/lock" not in (tmp_path / "fds").read_text()
