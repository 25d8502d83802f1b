"""The ``loki`` command: called in this process, or its words where a process of its own is meant."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from loki.cli import main
from loki.decision import breakers
from loki.jobs.queue import queue

LOKI = (sys.executable, "-m", "loki")
"""What starts it as a process, for tests of what only a process has: signals, a terminal, a crash,
others that share its files, how it starts and ends."""

_STREAMS = ("stdin", "stdout", "stderr")


class Ended(NamedTuple):
    """What is left of a command that has ended."""

    code: int
    out: str
    err: str


def loki(
    *words: str,
    cwd: Path | None = None,
    data: str | bytes = b"",
    environment: Mapping[str, str | None] | None = None,
) -> Ended:
    """Run it to its end, in this process: its exit code, standard output and standard error.

    What it starts has its standard streams, folder and variables. What it changes of the process (those,
    signal handlers, the log) is as before when it has ended. It has a process of its own number and its
    locks nowhere, so two of them, or threads, are no test of what is shared.

    Args:
        words: its arguments.
        cwd: where it is called; where the test is, if it is not said.
        data: its standard input.
        environment: variables that it has beside the test's; None: it has no such one.

    Raises:
        Exception: what it did not catch; a process would print it and end with 1.
    """
    with ExitStack() as ending:
        streams = ending.enter_context(
            _own_streams(data if isinstance(data, bytes) else data.encode())
        )
        ending.enter_context(_own_process({**os.environ, **(environment or {})}, cwd))
        sys.argv = ["loki", *words]
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = _exit_code(ended)
        breakers._at_exit()
        queue._at_exit()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # as it is after its reader has gone
                stream.flush()
        out, err = (_read(stream) for stream in streams)
    assert "Traceback (most recent" not in err, err
    return Ended(code, out, err)


def _exit_code(ended: SystemExit) -> int:
    if isinstance(ended.code, str):
        print(ended.code, file=sys.stderr)
        return 1
    return ended.code or 0


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


@contextmanager
def _own_streams(data: bytes) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Files as standard streams, also for what it starts; those of standard output and error."""
    ours = [getattr(sys, name) for name in _STREAMS]
    for stream in ours[1:]:
        stream.flush()
    with ExitStack() as ending:
        files = [ending.enter_context(tempfile.TemporaryFile()) for _ in _STREAMS]
        files[0].write(data)
        files[0].seek(0)
        for number, file in enumerate(files):
            kept = os.dup(number)
            ending.callback(os.close, kept)
            ending.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
        for name, stream in zip(_STREAMS, ours, strict=True):
            ending.callback(setattr, sys, name, stream)
        for number, name in enumerate(_STREAMS):
            errors = "backslashreplace" if name == "stderr" else "strict"
            mode = "w" if number else "r"
            stream = ending.enter_context(
                open(number, mode, encoding="utf-8", errors=errors, closefd=False)
            )
            setattr(sys, name, stream)
        yield files[1], files[2]


@contextmanager
def _own_process(environment: Mapping[str, str | None], cwd: Path | None) -> Iterator[None]:
    """Signals, log, variables, folder and arguments as a process has them that was just started."""
    variables, folder, arguments = dict(os.environ), Path.cwd(), sys.argv
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    logger = logging.getLogger("loki")
    log = (logger.handlers[:], logger.level, logger.propagate)
    logger.handlers[:], logger.propagate = [], True
    logger.setLevel(logging.NOTSET)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    queue._told.clear()
    try:
        _become(environment)
        if cwd is not None:
            os.chdir(cwd)
        yield
    finally:
        os.chdir(folder)
        _become(variables)
        sys.argv = arguments
        logger.handlers[:], logger.propagate = log[0], log[2]
        logger.setLevel(log[1])
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _become(environment: Mapping[str, str | None]) -> None:
    zone = os.environ.get("TZ")
    os.environ.clear()
    os.environ.update({name: value for name, value in environment.items() if value is not None})
    if os.environ.get("TZ") != zone:
        time.tzset()
