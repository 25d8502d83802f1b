"""One damaged file, one face: whether it speaks plainly, and keeps what can be read."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loki
from fuzz.state import faces, project
from fuzz.state.damage import damaged
from loki.base import below
from loki.base.error import LokiError

SLOW = 30.0
"""Seconds after which a face counts as hanging; chosen, far over what any takes."""

ACTS = 0.05
"""Share of inputs that go to faces that change something: each takes a second, others some milliseconds."""

DERIVED = frozenset({"state/waiting.json", "state/queue.db"})
"""Files that are made anew from others whenever they cannot be used: there is nothing in them to lose."""

_opened: set[str] = set()


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        _opened.add(os.path.abspath(arguments[0]))


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
    """

    def __init__(self, pristine: Path, place: Path, acts: float = ACTS) -> None:
        self.pristine, self.place, self.share = pristine, place, acts
        project.fresh(pristine, place)
        os.chdir(place)
        logging.getLogger("loki").addHandler(logging.NullHandler())
        self.kept = {
            name: (place / ".loki" / name).read_bytes()
            for name in below.files(place / ".loki")
            if not name.endswith((".lock", "-wal", "-shm"))
        }
        self.looks, self.acts = faces.looks(), faces.acts()
        self.reads = self._seen()

    def _seen(self) -> dict[str, list[str]]:
        """By face, the files that it opens."""
        sys.addaudithook(_listen)
        found = {}
        base = os.path.join(os.path.realpath(self.place), ".loki", "")
        for name, face in self.looks.items():
            _opened.clear()
            _called(face)
            opened = {one[len(base) :] for one in _opened if one.startswith(base)}
            found[name] = sorted(opened & self.kept.keys()) or sorted(self.kept)
        self._restore()
        return found

    def _restore(self) -> None:
        project.fresh(self.pristine, self.place)
        os.chdir(self.place)
        self._stamps = self._now()

    def _now(self) -> dict[str, tuple[int, int]]:
        stamps = {}
        for name in below.files(self.place / ".loki"):
            try:
                status = os.lstat(self.place / ".loki" / name)
            except FileNotFoundError:  # of a database that is closed just now
                continue
            stamps[name] = status.st_mtime_ns, status.st_size
        return stamps

    def run(self, seed: int, inputs: int) -> list[Finding]:
        """Try so many; what was found."""
        found: list[Finding] = []
        for number in range(inputs):
            for finding in self.one(seed * 1_000_003 + number):
                if finding.what not in {known.what for known in found}:
                    line = f"{finding.what}: {finding.face}, {finding.path}, input {finding.seed}"
                    print(line, file=sys.__stdout__, flush=True)
                found.append(finding)
        return found

    def one(self, seed: int) -> list[Finding]:
        """One input."""
        chance = random.Random(seed)
        is_act = chance.random() < self.share
        name = chance.choice(sorted(self.acts if is_act else self.looks))
        path = chance.choice(sorted(self.kept) if is_act else self.reads[name])
        data = damaged(chance, path, self.kept[path])
        full = self.place / ".loki" / path
        full.unlink()
        if data is None:
            (full / "x").mkdir(parents=True)
        else:
            full.write_bytes(data)
        began = time.monotonic()
        told = _called((self.acts if is_act else self.looks)[name])
        if time.monotonic() - began > SLOW:
            told = ("hangs", f"{time.monotonic() - began:.0f} s")
        found = [Finding(told[0], name, path, seed, told[1])] if told else []
        if not is_act:
            found += [Finding("lost", name, path, seed, lost) for lost in self._lost(path, data)]
        self._mend(path, everything=is_act)
        return found

    def _lost(self, path: str, data: bytes | None) -> list[str]:
        """What was there and is nowhere any more, after a face that only looks."""
        base = self.place / ".loki"
        if path in DERIVED or path.startswith(
            "signals/"
        ):  # a request's text is taken over as its context
            return []
        # A log may have been added to.
        if data is None or (
            (base / path).is_file() and (base / path).read_bytes().startswith(data)
        ):
            return []
        others = (base / name for name in self._now() if name not in self.kept)
        return [] if any(one.read_bytes() == data for one in others if one.is_file()) else [path]

    def _mend(self, path: str, *, everything: bool) -> None:
        base = self.place / ".loki"
        if everything or (base / path).is_dir():
            self._restore()
            return
        there = self._now()
        differs = {
            name for name in {*there, *self._stamps} if there.get(name) != self._stamps.get(name)
        }
        for name in {*differs, path}:
            if name in self.kept:
                (base / name).parent.mkdir(parents=True, exist_ok=True)
                (base / name).write_bytes(self.kept[name])
            elif not name.endswith(".lock"):
                (base / name).unlink(missing_ok=True)
        now = self._now()
        self._stamps |= {name: now[name] for name in {*differs, path} if name in now}


def _called(face: faces.Face) -> tuple[str, str] | None:
    """What a face raised that it must not; None where it spoke plainly."""
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
    return None


def work(share: tuple[Path, Path, int, int]) -> list[Finding]:
    """What a process of several tries: project, its own place, seed, inputs."""
    pristine, place, seed, inputs = share
    return Trials(pristine, place).run(seed, inputs)
