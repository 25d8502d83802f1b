"""One damaged file, one face: whether it speaks plainly, in time, and keeps what can be read."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loki
from fuzz.state import faces, project
from fuzz.state.damage import damaged
from fuzz.state.kept import lost
from loki.base import path_containment
from loki.base.error import LokiError

SLOW = 60.0
"""Seconds after which a face hangs, and is ended; chosen, far over what any takes."""

ACTS = 0.15
"""Share of inputs that go to faces that change something: they take longer. Chosen."""

SIGNALS = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_opened: set[str] = set()
_hears: list[bool] = []
"""Whether anybody asks what is opened: nobody can take a listener away again."""


def _listen_to_opens() -> None:
    if not _hears:
        sys.addaudithook(_listen)
    _hears[:] = [True]


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _hears[0] and isinstance(arguments[0], (str, os.PathLike)):
        _opened.add(os.path.abspath(arguments[0]))


class Hang(BaseException):
    """A face that takes too long; no error that anything below would take for its own."""


@dataclass(frozen=True)
class Finding:
    """Something that must not happen: `what`, told alike for the same place; where, and the seed of it."""

    what: str
    face: str
    path: str
    seed: int
    told: str


class Trials:
    """Damaged states of one project.

    Args:
        pristine: a project that `fuzz.state.project` made.
        place: a folder for a copy of it; the working folder from then on.
        acts: share of inputs that go to faces that change something.
        leave: names of faces that are not called.
    """

    def __init__(
        self, pristine: Path, place: Path, acts: float = ACTS, leave: Collection[str] = ()
    ) -> None:
        self.pristine, self.place, self.share = pristine, place, acts
        logging.getLogger("loki").addHandler(logging.NullHandler())
        self._anew()
        self.whole = {name: (place / name).read_bytes() for name in path_containment.files(place)}
        self.kept = {
            name.removeprefix(".loki/"): data
            for name, data in self.whole.items()
            if name.startswith(".loki/") and not name.endswith((".lock", "-wal", "-shm"))
        }
        self.looks = faces.looks()
        self.acts = {name: face for name, face in faces.acts().items() if name not in leave}
        self.reads = self._seen()
        self._may: dict[str, frozenset[str]] = {}

    def _seen(self) -> dict[str, list[str]]:
        """By face, the files that it opens."""
        _listen_to_opens()
        found = {}
        base = os.path.join(os.path.realpath(self.place), ".loki", "")
        for name, face in self.looks.items():
            _opened.clear()
            _called(face)
            opened = {one[len(base) :] for one in _opened if one.startswith(base)}
            found[name] = sorted(opened & self.kept.keys()) or sorted(self.kept)
        _hears[:] = [False]
        self._mend()
        return found

    def _removes(self, name: str) -> frozenset[str]:
        """What an act removes of a project that nobody damaged: that it may, then."""
        if name not in self._may:
            _called(self.acts[name])
            found = lost(self.place / ".loki", self.kept, "", None, frozenset())
            self._may[name] = frozenset(found)
            self._mend()
        return self._may[name]

    def _anew(self) -> None:
        project.fresh(self.pristine, self.place)
        os.chdir(self.place)
        self._stamps = self._now()

    def _now(self) -> dict[str, tuple[int, int]]:
        stamps = {}
        for name in path_containment.files(self.place):
            try:
                status = os.lstat(self.place / name)
            except FileNotFoundError:  # of a database that is closed just now
                continue
            stamps[name] = status.st_mtime_ns, status.st_size
        return stamps

    def run(self, seed: int, inputs: int) -> list[Finding]:
        """Try so many; what was found."""
        found: list[Finding] = []
        try:
            for number in range(inputs):
                for finding in self.one(seed * 1_000_003 + number):
                    if finding.what not in {known.what for known in found}:
                        line = (
                            f"{finding.what}: {finding.face}, {finding.path}, input {finding.seed}"
                        )
                        print(line, file=sys.__stdout__, flush=True)
                    found.append(finding)
        finally:
            gc.unfreeze()
        return found

    def one(self, seed: int) -> list[Finding]:
        """One input."""
        chance = random.Random(seed)
        is_act = chance.random() < self.share
        name = chance.choice(sorted(self.acts if is_act else self.looks))
        path = chance.choice(sorted(self.kept) if is_act else self.reads[name])
        data, may = damaged(chance, path, self.kept[path]), frozenset[str]()
        if is_act:
            may = self._removes(name)
        full = self.place / ".loki" / path
        full.unlink()
        if data is None:
            (full / "x").mkdir(parents=True)
        else:
            full.write_bytes(data)
        told = _called((self.acts if is_act else self.looks)[name])
        found = [Finding(told[0], name, path, seed, told[1])] if told else []
        gone = lost(self.place / ".loki", self.kept, path, data, may)
        found += [Finding(f"lost {one.split('/')[-1]}", name, path, seed, one) for one in gone]
        self._mend()
        return found

    def _mend(self) -> None:
        """Have all files of the place as they were."""
        log = self.place / ".loki" / "state" / "queue.db-wal"
        if log.exists():  # a database that is open still would write into the new one
            gc.collect()
            if not log.exists():
                gc.freeze()  # what is there stays: it need not be looked through again
        there = self._now()
        stamps = self._stamps
        differs = {name for name in {*there, *stamps} if there.get(name) != stamps.get(name)}
        try:
            for name in differs - self.whole.keys():
                (self.place / name).unlink(missing_ok=True)
            for name in differs & self.whole.keys():
                full = self.place / name
                shutil.rmtree(full) if full.is_dir() else full.unlink(missing_ok=True)
                full.parent.mkdir(parents=True, exist_ok=True)
                full.write_bytes(self.whole[name])
                status = os.lstat(full)
                stamps[name] = status.st_mtime_ns, status.st_size
        except OSError:  # a file where a folder was, or one that cannot be written
            self._anew()


def _called(face: faces.Face) -> tuple[str, str] | None:
    """What a face raised that it must not; None where it spoke plainly."""

    def hangs(*_: object) -> None:
        raise Hang

    before = {one: signal.getsignal(one) for one in SIGNALS}  # a command takes some for itself
    signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, SLOW)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            face()
        except (LokiError, SystemExit):
            return None
        except BaseException as error:  # whatever it is: it is a finding
            frames = traceback.extract_tb(error.__traceback__)
            package = os.path.dirname(loki.__file__)
            own = [one for one in frames if one.filename.startswith(package)] or frames
            where = f"{os.path.relpath(own[-1].filename, package)}:{own[-1].lineno}"
            told = "".join(traceback.format_exception(error)[-6:])
            return f"{type(error).__name__} in {where} {own[-1].name}", told[-1500:]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for one, handler in before.items():
                signal.signal(one, handler)
    return None


def work(share: tuple[Path, Path, int, int]) -> list[Finding]:
    """What a process of several tries: project, its own place, seed, inputs."""
    pristine, place, seed, inputs = share
    return Trials(pristine, place).run(seed, inputs)
