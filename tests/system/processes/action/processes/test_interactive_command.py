"""A command behind `loki explain --` behaves as it does alone: bytes, signals, exit codes, terminals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.action.processes.process import HeadTailBuffer
from support.examples import examples

LOKI = (sys.executable, "-m", "loki", "explain", "--")


def through(*command: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*LOKI, *command], input=data, capture_output=True, check=False)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=200)), max_size=6),
    st.integers(0, 255),
)
def test_bytes_and_exit_codes_pass_through(writes: list[tuple[int, bytes]], code: int) -> None:
    script = f"import os\nfor fd, data in {writes!r}: os.write(fd, data)\nos._exit({code})"
    done = through(sys.executable, "-c", script)
    streams = [b"".join(data for fd, data in writes if fd == stream) for stream in (1, 2)]
    assert done.returncode == code
    assert done.stdout == streams[0]
    assert done.stderr.startswith(streams[1])
    said = done.stderr[len(streams[1]) :]
    assert said == b"" if code == 0 else b"exit code %d after" % code in said


def test_large_output_passes_whole() -> None:
    done = through(
        "sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' 'x'; head -c 3000000 /dev/zero >&2"
    )
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (0, 30_000_000, 3_000_000)


def test_input_passes_through() -> None:
    data = bytes(range(256)) * 1000
    assert through("cat", data=data).stdout == data


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_a_command_that_a_signal_ends_is_128_more(number: int) -> None:
    done = through("sh", "-c", f"echo begun; kill -{number} $$")
    assert done.returncode == 128 + number
    assert done.stdout == b"begun\n"
    assert f"ended by signal {number} (".encode() in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_that_come_to_loki_reach_the_command(number: int) -> None:
    script = f"trap 'echo caught; exit 7' {number}; echo ready; while :; do sleep 0.05; done"
    # Whoever runs the tests may have the signal ignored, as nohup does; a shell could not trap it then.
    heard = "import os, signal, sys; signal.signal(int(sys.argv[1]), signal.SIG_DFL); "
    heard += "os.execv(sys.argv[2], sys.argv[2:])"
    work = subprocess.Popen(
        [sys.executable, "-c", heard, str(number), *LOKI, "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert work.stdout is not None
    assert work.stdout.readline() == b"ready\n"
    work.send_signal(number)
    out, _ = work.communicate(timeout=60)
    assert (out, work.returncode) == (b"caught\n", 7)


def test_interrupting_is_not_explained() -> None:
    script = "echo 'TypeError: not this' >&2; echo ready; exec sleep 1000"
    work = subprocess.Popen(
        [*LOKI, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert work.stdout is not None
    assert work.stdout.readline() == b"ready\n"
    work.send_signal(signal.SIGINT)
    _, err = work.communicate(timeout=60)
    assert (work.returncode, err) == (130, b"TypeError: not this\n")


def test_a_reader_that_goes_away_ends_the_command_as_in_a_shell() -> None:
    work = subprocess.Popen(
        [*LOKI, "sh", "-c", "yes; echo $? > /dev/null; exit 9"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert work.stdout is not None
    assert work.stdout.readline() == b"y\n"
    work.stdout.close()
    assert work.wait(60) == 9
    assert work.stderr is not None
    with work.stderr:
        assert b"Traceback" not in work.stderr.read()


def test_a_command_that_nobody_listens_to_any_more_is_not_explained() -> None:
    script = f"{shlex.join(LOKI)} yes | head -n 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"y\n", b"")


def test_output_that_is_lost_is_no_success() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*LOKI, "echo", "hi"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"loki: output could not be passed on: No space left on device\n"


def test_output_that_goes_nowhere_is_still_explained() -> None:
    script = f"exec {shlex.join(LOKI)} sh -c 'echo KeyError: 3; exit 4' >&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=False)
    assert done.returncode == 4
    assert b"KeyError: 3" in done.stderr


def test_output_comes_at_once() -> None:
    """The command waits for an answer to what it has printed so far, half a line."""
    script = "import sys; print('name? ', end='', flush=True); print(sys.stdin.readline())"
    work = subprocess.Popen(
        [*LOKI, sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert work.stdin is not None
    assert work.stdout is not None
    assert work.stdout.read(6) == b"name? "
    out, _ = work.communicate(b"loki\n", timeout=60)
    assert (out, work.returncode) == (b"loki\n\n", 0)


def test_what_it_leaves_in_the_background_does_not_hold_loki(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    done = through("sh", "-c", f"cat {fifo} & echo started; exit 3")
    assert (done.returncode, done.stdout) == (3, b"started\n")
    fifo.write_bytes(b"")  # lets the background process go


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("no-such-program", 127, "no such program on the PATH"),
        ("./no/such/file", 127, "no such file"),
        ("echo hello", 127, "what needs a shell goes to sh -c"),
        ("/", 126, "is a folder"),
        ("./plain", 126, "not executable"),
        ("./broken", 126, "cannot execute it"),
    ],
)
def test_what_cannot_be_started(tmp_path: Path, command: str, code: int, said: str) -> None:
    (tmp_path / "plain").write_text("echo\n")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    done = subprocess.run([*LOKI, command], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_environment_can_be_set_as_in_a_shell() -> None:
    assert through("LOKI_TEST_WORD=a b", "sh", "-c", 'printf "$LOKI_TEST_WORD"').stdout == b"a b"


# --- at a terminal ------------------------------------------------------------------------------


def at_a_terminal(*command: str, keys: tuple[tuple[bytes, bytes], ...] = ()) -> tuple[int, bytes]:
    """Run loki at a terminal of its own, 111 columns wide; press keys when something is printed."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
        os.execv(LOKI[0], [*LOKI, *command])
    seen, waiting = b"", list(keys)
    while True:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # how a terminal says that nobody is there any more
            break
        if waiting and waiting[0][0] in seen:
            os.write(terminal, waiting.pop(0)[1])
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen


def test_a_command_sees_the_terminal() -> None:
    script = "import os; print([os.isatty(i) for i in (0, 1, 2)], *os.get_terminal_size(1))"
    code, seen = at_a_terminal(sys.executable, "-c", script)
    assert code == 0
    assert seen.startswith(b"[True, True, True] 111 33\r\n")
    assert b"loki: exit code 0 after" in seen


def test_ctrl_c_reaches_it_once() -> None:
    script = (
        "import os, signal, sys, time\n"
        "count = []\n"
        "def hear(*_):\n"
        "    count.append(1)\n"
        # Not print: the signal may come while the one below is at work.
        "    os.write(1, b'interrupted\\n')\n"
        "signal.signal(signal.SIGINT, hear)\n"
        "print('ready', flush=True)\n"
        # A signal that comes just before a wait does not end it.
        "while not count: time.sleep(0.05)\n"
        "input()\n"
        "print('interrupts:', len(count)); sys.exit(4)"
    )
    keys = ((b"ready", b"\x03"), (b"interrupted", b"\n"))
    code, seen = at_a_terminal(sys.executable, "-c", script, keys=keys)
    assert code == 4
    assert b"interrupts: 1\r\n" in seen


def test_keys_reach_it_and_the_terminal_is_left_as_it_was() -> None:
    script = "printf 'go? '; read x; echo got $x; exit 1"
    code, seen = at_a_terminal("sh", "-c", script, keys=((b"go? ", b"yes\n"),))
    assert code == 1
    assert b"got yes\r\n" in seen
    assert b"exit code 1 after" in seen
    assert b"\r\r" not in seen


# --- what is kept -------------------------------------------------------------------------------


def test_endless_output_is_kept_at_both_ends_only() -> None:
    """200 MB pass through, and the explanation still names the right line, at the end."""
    line = "all is well and nothing is wrong here\n"
    noise = f"yes '{line.strip()}' | head -c 200000000"
    script = f"{noise}; echo; echo 'TypeError: x is no till'; exit 1"
    work = subprocess.Popen(
        [sys.executable, "-c", _MEASURED, *LOKI[:-1], "--json", "--", "sh", "-c", script],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, err = work.communicate(timeout=300)
    text, _, peak = err.decode().rpartition("peak ")
    data = json.loads(text)
    assert work.returncode == 1
    assert data["left_out_bytes"] > 100_000_000
    assert data["message"] == "x is no till"
    assert data["output_line"] == 200_000_000 // len(line) + 2
    assert int(peak) < 600_000, "kilobytes"


_MEASURED = (
    "import os, resource, subprocess, sys\n"
    "code = subprocess.run(sys.argv[1:]).returncode\n"
    "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
    "sys.exit(code)"
)


@given(
    st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\0", b"\n")), max_size=20),
    st.integers(2, 60),
)
def test_lines_of_what_is_kept(chunks: list[bytes], limit: int) -> None:
    kept, whole = HeadTailBuffer(limit), b"".join(chunks)
    for chunk in chunks:
        kept.add(chunk)
    content = kept.content()
    assert (
        len(content.replace(b"\n[... %d bytes left out ...]\n" % kept.left_out, b"")) <= limit + 1
    )
    if not kept.left_out:
        assert content == whole
    last = content.count(b"\n") + 1
    assert kept.line(1) == 1
    assert kept.line(last) == whole.count(b"\n") + 1
