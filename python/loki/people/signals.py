"""The signals of a project, joined with a store that many processes share.

A signal is a file; giving one writes it, consuming one removes it. Whoever acts on a signal removes it
after its effect: a crash in between repeats the effect, which therefore has to be idempotent.

Others write ``HUMAN_REVIEW_NEEDED`` as one file (``cat >``, or replace and rename) and do not look
whether one is open. What any process of loki has seen there, or given, is kept, so that what was written
over can wait behind.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from hashlib import blake2b
from typing import Any, NamedTuple

from loki.base import codec
from loki.base.documents import Masked, kept_as, read_as
from loki.base.error import StoreError, UsageError
from loki.base.secret import mask_secrets, masked
from loki.base.time import Clock, isoformat
from loki.memory.run_close import ended_at
from loki.memory.store import Store
from loki.people.signal import (
    FOLDER,
    KINDS,
    MAX_SIZE,
    NOTHING,
    Signal,
    Standing,
    documents,
    encoded,
    file_of,
    named,
    parse,
    render,
)

# --- What stood in a file before another program wrote over it --------------------------------------

DOCUMENT = "state/signals-seen.json"

MOST_DONE = 200
"""Ids of a file's signals that were acted on and are still known; chosen: a look takes milliseconds."""


class SeenFile(NamedTuple):
    """A text that stood in a file, or is just being written there.

    Attributes:
        id: of its signal; digest: of the text; text: what it said, without secrets.
        stood: whether anybody has seen it there.
    """

    id: str
    digest: str
    text: str
    stood: bool = True


@dataclass
class _File:
    """What is known of a file: what stood there, the newest last, and ids of what was acted on."""

    seen: list[SeenFile] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def add(self, one: SeenFile, instead: str = "") -> None:
        gone = {one.digest, instead}
        self.seen = [other for other in self.seen if other.digest not in gone]
        if one.id not in self.done:
            self.seen.append(one)


@kept_as(r"state/signals-seen\.json")
@dataclass
class _Table:
    files: dict[str, _File] = field(default_factory=dict)


class SignalOverwrites:
    """What stood in files of signals, and was not acted on.

    Args:
        store: where signals are kept.

    Example:
        >>> from loki.testing import MemoryStore
        >>> store = MemoryStore()
        >>> known = SignalOverwrites(store)
        >>> store.write("signals/HUMAN_REVIEW_NEEDED", "May I?")
        >>> known.look("signals/HUMAN_REVIEW_NEEDED")
        []
        >>> store.write("signals/HUMAN_REVIEW_NEEDED", "And now?")
        >>> [one.text for one in known.look("signals/HUMAN_REVIEW_NEEDED")]
        ['May I?']
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def look(self, file: str) -> list[SeenFile]:
        """Look what stands in a file; what stood there before, and another program wrote over.

        Each is told again until it is `kept`: whoever keeps it may be killed before.

        Raises:
            StoreError: that cannot be remembered.
        """
        now, known = self._store.read(file), self._known(file)
        if not known.seen and now is None:  # as nearly always
            return []
        if known.seen and known.seen[-1].stood and now and known.seen[-1].digest == _digest(now):
            return known.seen[:-1]
        found: list[SeenFile] = []

        def change(known: _File) -> None:
            now = self._store.read(file)  # whoever removes it does so under the same lock
            if now is None:  # whoever has taken away what stood there knows of it
                known.seen = [*known.seen[:-1], *(one for one in known.seen[-1:] if not one.stood)]
                found[:] = [one for one in known.seen if one.stood]
                return
            known.add(_seen(file, now))
            found[:] = [one for one in known.seen if one.digest != _digest(now)]

        self._change(file, change)
        return found

    def expect(self, file: str, text: str, instead: str = "") -> None:
        """Something is about to be written here.

        Args:
            file: where.
            text: what it will hold.
            instead: what it holds now, if that says the same.
        """
        one = _seen(file, text, stood=bool(instead))
        self._change(file, lambda known: known.add(one, _digest(instead)))

    def remember(self, file: str, one: SeenFile) -> None:
        """What was written over is kept elsewhere."""

        def change(known: _File) -> None:
            known.seen = [other for other in known.seen if other.digest != one.digest]

        self._change(file, change)

    def done(self, file: str, id_: str) -> None:
        """A signal was acted on: nobody is to bring it back."""

        def change(known: _File) -> None:
            known.seen = [one for one in known.seen if one.id != id_]
            known.done = [*(one for one in known.done if one != id_), id_][-MOST_DONE:]

        self._change(file, change)

    def is_done(self, file: str, id_: str) -> bool:
        """Whether a signal was acted on."""
        return id_ in self._known(file).done

    def _known(self, file: str) -> _File:
        return self._table(self._store.read(DOCUMENT)).get(file) or _File()

    def _change(self, file: str, change: Callable[[_File], None]) -> None:
        def rewrite(text: str | None) -> str:
            table = self._table(text)
            change(table.setdefault(file, _File()))
            return Masked(json.dumps(codec.write(_Table(table)), ensure_ascii=False) + "\n")

        # A machine that goes down loses what was seen, not what is asked: that stands in the files.
        self._store.update(DOCUMENT, rewrite, durable=False)

    def _table(self, text: str | None) -> dict[str, _File]:
        """What is known of each file."""
        found = read_as(_Table, self._store, DOCUMENT, text)
        return found.files if found else {}


def _seen(file: str, text: str, *, stood: bool = True) -> SeenFile:
    (signal,) = parse(file, text)
    return SeenFile(signal.id, _digest(text), mask_secrets(text[:MAX_SIZE]), stood)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# --- The signals of a project -----------------------------------------------------------------------

HANDLED = "state/signals.json"
"""How many lines of each log are done."""


@kept_as(r"state/signals\.json")
@dataclass
class _Handled:
    handled: dict[str, int] = field(default_factory=dict)


logger = logging.getLogger("loki")


class Signals:
    """The signals of a project.

    Args:
        store: where they are kept.
        clock: the time.
        branch: the git branch that is checked out; what is given belongs to its run. None: there is
            none, or nobody looked: then no signal is of another run for that.

    Example:
        >>> from loki.testing import ManualClock, MemoryStore
        >>> signals = Signals(MemoryStore(), ManualClock())
        >>> ready = signals.emit("FEATURE_READY", "login form", {"task_id": "t1"})
        >>> [(one.label, one.string_field("task_id")) for one in signals.pending()]
        [('FEATURE_READY login form', 't1')]
        >>> signals.consume(ready), signals.pending()
        (True, [])
    """

    def __init__(self, store: Store, clock: Clock, *, branch: str | None = None) -> None:
        self.branch = branch
        self.store = store
        self.clock = clock
        self._told: set[str] = set()
        self._seen = SignalOverwrites(store)

    def emit(self, kind: str, name: str = "", data: Mapping[str, Any] = NOTHING) -> Signal:
        """Give a signal; it is on disk when this returns.

        Args:
            kind: one of `loki.people.signal.KINDS`.
            name: of the feature or the branch, for kinds that have one.
            data: what it says: JSON-able. ``timestamp`` and the run that it belongs to are added.

        Returns:
            The signal as it is kept. One that queues and finds another before it waits behind it.

        Raises:
            UsageError: there is no such kind; its name is missing, or one too many; it says too
                much, or not what its kind has to say.
            StoreError: it could not be kept.
        """
        file, about = file_of(kind, name), KINDS[kind]
        now = self.clock.now()
        said: dict[str, Any] = masked({**data, "timestamp": isoformat(now)})
        said |= {"run": self.branch} if self.branch else {}
        said |= {about.named: name} if about.named else {}
        text = render(said)
        if len(text) > MAX_SIZE:
            raise UsageError(f"{kind} says {len(text):,} characters: expected at most {MAX_SIZE:,}")
        (signal,) = parse(file, text, now)
        if signal.standing == "unreadable":
            raise UsageError(f"{kind}: {signal.problem}")
        if about.form == "log":
            self.store.append(file, said)
            return (self._read(file) or (signal,))[-1]
        if not about.queues:
            self.store.write(file, Masked(text))
            return (self._read(file) or (signal,))[0]  # somebody may have consumed it at once
        return self._queue(*parse(file, render({**said, "id": signal.id}), now))

    def pending(self, *kinds: str) -> list[Signal]:
        """The signals that wait for their consumer and act on this run, the oldest first.

        Args:
            kinds: only these; all where nothing is said.
        """
        return [one for one in self.all(*kinds) if one.standing == "pending"]

    def all(self, *kinds: str) -> list[Signal]:
        """Every signal that there is; ``standing`` says which of them act.

        Returns:
            The lines of logs, and then the others, the oldest first.
        """
        found: dict[tuple[str, str], Signal] = {}
        for one in self._each(*kinds):  # one that moved up when its writer died stands twice
            found.setdefault((one.kind, one.id), one)
        return sorted(found.values(), key=_order)

    def foreign(self) -> list[str]:
        """Files among the signals that are none, relative to ``.loki/``."""
        return [file for file in self.store.keys(f"{FOLDER}/") if named(file) is None]

    def consume(self, signal: Signal) -> bool:
        """Note that a signal was acted on: its file goes; a line of a log, and those before, stay.

        Returns:
            Whether it is gone now; False: it was given anew meanwhile, and waits again.
        """
        about = signal.about
        if about.form == "log":
            self._count(signal)
            return True
        if about.queues:
            self._seen.done(file_of(signal.kind), signal.id)
            for twin in self._each(signal.kind):
                if twin.id == signal.id and twin.file != signal.file:
                    self._remove(twin)
        gone = self._remove(signal)
        if about.queues:
            self._move_up(signal.kind)
        return gone

    def rewrite(self, signal: Signal, text: Masked) -> None:
        """Let a signal's file say the same in other words, unless it was given anew meanwhile."""
        if signal.file == file_of(signal.kind, signal.name):
            self._seen.expect(signal.file, text, signal.text)
        self.store.update(signal.file, lambda old: text if old == signal.text else old)

    def clear(self, signal: Signal) -> bool:
        """Remove a signal that nobody is to act on any more; as `consume`, with a line in the log."""
        gone = self.consume(signal)
        if gone:
            logger.info("signal %s cleared", signal.label)
        return gone

    def sweep(self) -> list[Signal]:
        """Remove the signals of runs that are over, and tell of each once.

        Returns:
            The signals that were removed.
        """
        swept = []
        for one in self.all():
            if one.standing == "stale" and one.about.form != "log" and self.consume(one):
                logger.info("signal %s ignored and removed: %s", one.label, one.problem)
                swept.append(one)
            elif one.standing == "unreadable" and (one.file + one.text) not in self._told:
                self._told.add(one.file + one.text)
                logger.warning(".loki/%s: left as it is: %s", one.file, one.problem)
        return swept

    def clear_run(self, branch: str | None) -> list[Signal]:
        """Remove the signals of a run that is over."""
        cleared = []
        for one in self.all():
            belongs = one.about.belongs
            of = one.name if belongs == "branch" else one.string_field("run") or branch
            is_kept = belongs == "request" or one.about.form == "log"
            if of == branch and not is_kept and self.consume(one):
                cleared.append(one)
        return cleared

    # --- How it is kept -----------------------------------------------------------------------------

    def _each(self, *kinds: str) -> Iterator[Signal]:
        ends: dict[str | None, datetime | None] = {}
        for kind in kinds or KINDS:
            if KINDS[kind].queues:
                with suppress(StoreError):  # who cannot write may look all the same
                    self._keep_overwritten(file_of(kind))
        for file in self.store.keys(f"{FOLDER}/"):
            known = named(file)
            if known is not None and (not kinds or known[0] in kinds):
                yield from self._read(file, ends)

    def _read(
        self, file: str, ends: dict[str | None, datetime | None] | None = None
    ) -> tuple[Signal, ...]:
        """What a file says; ``ends``: when runs ended, as far as somebody has looked already."""
        text, at = self.store.read(file), self.store.written_at(file)
        if text is None:  # gone since it was listed
            return ()
        found = parse(file, text, None if at is None else datetime.fromtimestamp(at, timezone.utc))
        done = self._done(found) if found and found[0].about.form == "log" else 0
        known = {} if ends is None else ends
        # A datetime has microseconds: too few to tell a file from the same one given anew.
        return tuple(self._placed(replace(one, written_at=at), done, known) for one in found)

    def _placed(self, signal: Signal, done: int, ends: dict[str | None, datetime | None]) -> Signal:
        """The signal with its standing."""
        if signal.line < done:
            return replace(signal, standing="handled")
        if signal.standing != "pending":
            return signal
        standing, problem = self._standing(signal, ends)
        return replace(signal, standing=standing, problem=problem)

    def _standing(
        self, signal: Signal, ends: dict[str | None, datetime | None]
    ) -> tuple[Standing, str]:
        belongs = signal.about.belongs
        if belongs == "request":
            return "pending", ""
        of = signal.name if belongs == "branch" else signal.string_field("run") or self.branch
        if of not in ends:
            ends[of] = ended_at(self.store, of)
        ended = ends[of]
        if ended is not None and signal.given_at is not None and signal.given_at < ended:
            where = f"on {of} " if of else ""
            return "stale", f"of the run {where}that ended at {isoformat(ended)}"
        if belongs == "run" and self.branch is not None and of != self.branch:
            return "elsewhere", f"of the run on {of}, which is not checked out"
        return "pending", ""

    def _queue(self, signal: Signal) -> Signal:
        """Keep a signal, behind the one that is there."""
        text, first = Masked(signal.text), [False]

        def change(old: str | None) -> str:
            # Given twice by a caller that was killed in between, it still is one.
            first[0] = old is None or parse(signal.file, old)[0].id == signal.id
            return text if old is None else old

        self._seen.expect(signal.file, signal.text)
        self.store.update(signal.file, change)
        file = signal.file
        if not first[0]:
            file = f"{signal.file}.d/{encoded(signal.id)}.json"
            self.store.update(file, lambda old: text if old is None else old)
        return (self._read(file) or (signal,))[0]

    def _keep_overwritten(self, file: str) -> None:
        """Let what another program has written over, or appended to, wait behind what stands there."""
        text = self.store.read(file)
        if text is not None and (several := documents(text)) != [text]:
            for one in several[1:]:
                self._keep_behind(file, one)
            self.store.update(file, lambda old: Masked(several[0]) if old == text else old)
        for gone in self._seen.look(file):
            self._keep_behind(file, gone.text)
            self._seen.remember(file, gone)

    def _keep_behind(self, file: str, text: str) -> None:
        (signal,) = parse(file, text, self.clock.now())
        if signal.standing == "unreadable" or not text.strip():
            return
        said = dict(signal.data)
        if signal.given_at:
            said["timestamp"] = isoformat(signal.given_at)
        if signal.about.form != "review":  # its readers give it an id of its own
            said["id"] = signal.id
        kept, name = Masked(render(masked(said))), f"{file}.d/{encoded(signal.id)}.json"
        is_new = [False]

        def change(old: str | None) -> str | None:
            is_new[0] = old is None and not self._seen.is_done(file, signal.id)
            return kept if is_new[0] else old

        self.store.update(name, change)
        if is_new[0]:
            logger.warning(
                ".loki/%s: another program has written there again: what it held waits as .loki/%s",
                *(file, name),
            )

    def _remove(self, signal: Signal) -> bool:
        """Remove what was read, not what was written since; whether it is gone."""
        gone = [True]

        def change(text: str | None) -> str | None:
            # Of a file that says nothing only the time tells whether it was given anew.
            is_same = text == signal.text and (
                bool(text.strip()) or self.store.written_at(signal.file) == signal.written_at
            )
            gone[0] = text is None or is_same
            return None if gone[0] else text

        self.store.update(signal.file, change)
        return gone[0]

    def _move_up(self, kind: str) -> None:
        """Let the oldest that waits stand where the first one stood."""
        file = file_of(kind)
        waiting = sorted((one for one in self._each(kind) if one.file != file), key=_order)
        if not waiting:
            return
        following, is_ours, was_there = waiting[0], [False], [False]

        def place(old: str | None) -> str:
            is_ours[0] = old is None
            return Masked(following.text) if old is None else old

        def take(text: str | None) -> None:
            was_there[0] = text is not None

        self._seen.expect(file, following.text)
        self.store.update(file, place)
        if is_ours[0]:  # who finds it placed by another must not take it for one that was consumed
            self.store.update(following.file, take)
            if not was_there[0]:  # somebody has consumed it meanwhile
                self.store.update(file, lambda old: None if old == following.text else old)

    def _done(self, lines: Sequence[Signal]) -> int:
        """How many lines of a log are done; of one that somebody has begun anew, none."""
        count = _counts(self.store, self.store.read(HANDLED)).get(lines[0].file, 0)
        return count if count <= lines[-1].line + 1 else 0

    def _count(self, signal: Signal) -> None:
        def change(text: str | None) -> str:
            counts = _counts(self.store, text)
            counts[signal.file] = max(counts.get(signal.file, 0), signal.line + 1)
            return json.dumps({"handled": counts}) + "\n"

        self.store.update(HANDLED, change)


def _counts(store: Store, text: str | None) -> dict[str, int]:
    found = read_as(_Handled, store, HANDLED, text)
    return found.handled if found else {}  # then lines of the log are acted on once more


def _order(signal: Signal) -> tuple[bool, float, str, int]:
    is_log = signal.about.form == "log"
    at = signal.given_at.timestamp() if signal.given_at and not is_log else 0.0
    return not is_log, at, signal.file, signal.line
