"""One outcome of a breaker that processes share through a file, on the disk before it is answered."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks.breaker_families import Parameters
from benchmarks.floors import count
from benchmarks.job import Data, Family, Job

BARE = "bare lock, write, fsync, rename, fsync"


def _shared(folder: Path, breakers: int) -> tuple[Any, Path]:
    """A breaker that never opens, and the file that it and others are kept in.

    Failures count for a millisecond, so that the file stays as long as it is.
    """
    from loki import Breakers

    folder.mkdir()
    file = folder / "circuit-breakers.json"
    breaker = Breakers(file, threshold=1_000_000, window="1ms")["api/claude"]
    _fail(breaker, 1)
    (entry,) = json.loads(file.read_bytes()).values()
    others = {f"api/{number}": entry for number in range(1, breakers)}
    file.write_text(json.dumps({"api/claude": entry, **others}), "utf-8")
    _fail(breaker, 1)
    return breaker, file


def _fail(breaker: Any, times: int) -> int:
    written = 0
    for _ in range(times):
        permit = breaker.try_acquire()
        if permit is not None:
            permit.failure("connection lost")
            written += 1
    return written


def _loki(parameters: Parameters, data: Data) -> Job:
    breaker, _ = _shared(Path(mkdtemp(dir=data.folder)) / "state", parameters["breakers"])
    calls = count(parameters)
    return Job(lambda: _fail(breaker, calls), calls, lambda written: written, calls)


def _bare(parameters: Parameters, data: Data) -> Job:
    """The least that is safe: nobody else writes, all of it or nothing is there, it stays."""
    _, file = _shared(Path(mkdtemp(dir=data.folder)) / "state", parameters["breakers"])
    content, folder, calls = file.read_bytes(), file.parent, count(parameters)
    temporary = folder / "temporary"

    def write() -> None:
        with (folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with temporary.open("wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(file)
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)

    def run() -> int:
        for _ in range(calls):
            write()
        return calls

    return Job(run, calls, lambda written: written, calls)


SHARED_FILE = Family(
    "calls",
    {"loki": _loki, BARE: _bare},
    lambda mine, other: float(mine == other),
    waits=True,
)
