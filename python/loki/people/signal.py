"""Signals: files in ``.loki/signals/`` by which agents, people and loki tell each other something.

What kinds there are, how a signal's file is named, and what it says; nothing here touches files.
Why it is so: ``docs/design/signals.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote

from loki.base.error import UsageError
from loki.base.time import moment
from loki.people.signal_kind import (
    BLOG_POST_QUEUED,
    CONTEXT_CLEAR_REQUESTED,
    DOCS_NEEDED,
    DRIFT_DETECTED,
    FEATURE_READY,
    HUMAN_APPROVED,
    HUMAN_REVIEW_NEEDED,
    KINDS,
    MAX_SIZE,
    MERGE_REQUESTED,
    PLAN_APPROVED,
    TESTS_FAILED,
    TESTS_PASSED,
    Kind,
)

__all__ = [
    "BLOG_POST_QUEUED",
    "CONTEXT_CLEAR_REQUESTED",
    "DOCS_NEEDED",
    "DRIFT_DETECTED",
    "FEATURE_READY",
    "FOLDER",
    "HUMAN_APPROVED",
    "HUMAN_REVIEW_NEEDED",
    "KINDS",
    "LONGEST_NAME",
    "MAX_SIZE",
    "MERGE_REQUESTED",
    "NOTHING",
    "PLAN_APPROVED",
    "TESTS_FAILED",
    "TESTS_PASSED",
    "Kind",
    "Signal",
    "Standing",
    "documents",
    "encoded",
    "file_of",
    "named",
    "parse",
    "render",
]

FOLDER = "signals"
"""Relative to ``.loki/``."""

LONGEST_NAME = 200
"""Bytes of an encoded name; file systems allow 255. As for folders of runs (`loki.memory.signs`)."""

_BLANKS = re.compile(r"\s*")

NOTHING: Mapping[str, Any] = MappingProxyType({})

Standing: TypeAlias = Literal["pending", "handled", "stale", "elsewhere", "unreadable"]
"""Waits for its consumer; is done (of the log, which stays); was given in a run that is over; belongs
to the run of another branch than the one checked out; or cannot be read."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal that was given.

    Attributes:
        kind: name of its kind.
        name: of what: the feature, or the branch; "" for kinds that name none.
        data: all that it says, also what loki does not know; its keys are those of SPEC's formats.
        given_at: when, as it says itself or else its file does; None: nobody knows.
        file: where it stands, relative to ``.loki/``.
        line: number of its line in a log, from 0.
        standing: whether it acts now, and why not.
        problem: what is wrong with one that cannot be read, or why it does not act; "" else.
        text: the file as it was read, for whoever removes it.
        written_at: when the file was written, in seconds since the epoch; None: not known.
    """

    kind: str
    name: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    given_at: datetime | None = None
    file: str = ""
    line: int = 0
    standing: Standing = "pending"
    problem: str = ""
    text: str = field(default="", repr=False)
    written_at: float | None = None

    @property
    def about(self) -> Kind:
        """Its kind."""
        return KINDS[self.kind]

    @property
    def id(self) -> str:
        """What it is known by: the id that it names, else one made of all that it is.

        The same file given again, also an empty one, is another signal.
        """
        said = self.data.get("id")
        if self.about.queues and isinstance(said, str) and said:
            return said
        key = f"{self.file}\0{self.line}\0{self.text}\0{'' if self.data else self.written_at}"
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @property
    def label(self) -> str:
        """Kind and name, as a person reads them: ``FEATURE_READY login form``."""
        return f"{self.kind} {self.name}".rstrip()

    def string_field(self, key: str) -> str:
        """A field as text, "" where it says no such thing."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, for programs."""
        from loki.base.time import isoformat

        return {
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "given_at": isoformat(self.given_at) if self.given_at else None,
            "file": self.file,
            "standing": self.standing,
            "problem": self.problem,
            "producer": self.about.producer,
            "consumer": self.about.consumer,
            "next": self.about.next,
            "data": dict(self.data),
        }


def file_of(kind: str, name: str = "") -> str:
    """The file of a signal, relative to ``.loki/``: its name percent-encoded.

    Args:
        kind: one of `KINDS`.
        name: of the feature or branch, for kinds that have one.

    Raises:
        UsageError: there is no such kind, or the name is missing, or one too many.

    Example:
        >>> file_of("MERGE_REQUESTED", "feature/login form")
        'signals/MERGE_REQUESTED_feature%2Flogin%20form'
    """
    known = KINDS.get(kind)
    if known is None:
        raise UsageError(f"no kind of signal {kind!r}: expected one of {', '.join(KINDS)}")
    if bool(name) != bool(known.named):
        wanted = f"a name, as in {known.pattern}" if known.named else "no name"
        raise UsageError(
            f"{kind} is given with {repr(name) if name else 'no name'}: expected {wanted}"
        )
    return f"{FOLDER}/{kind}_{encoded(name)}" if name else f"{FOLDER}/{kind}"


def encoded(name: str) -> str:
    """A name as a part of a file's name: percent-encoded, and shortened where it is too long.

    Dots are encoded, too: ``.lock`` and ``.json`` mean something at the end of a file's name.

    Example:
        >>> encoded("v1.2/ü")
        'v1%2E2%2F%C3%BC'
    """
    text = quote(name, safe="", errors="backslashreplace").replace(".", "%2E")
    if len(text) <= LONGEST_NAME:
        return text
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{text[: LONGEST_NAME - 17]}-{digest}"


def named(file: str) -> tuple[str, str] | None:
    """Kind and name of the signal that a file is, whoever wrote it; None: it is none.

    Args:
        file: relative to ``.loki/``. One in ``<kind>.d/`` waits behind the one in ``<kind>``.

    Example:
        >>> named("signals/FEATURE_READY_login%20form"), named("signals/DOCS_NEEDED.d/a.json")
        (('FEATURE_READY', 'login form'), ('DOCS_NEEDED', ''))
        >>> named("signals/README.md") is named("signals/FEATURE_READY_") is None
        True
    """
    folder, _, name = file.partition("/")
    if folder != FOLDER:
        return None
    name, _, waiting = name.partition(".d/")
    for kind in KINDS.values():
        if waiting and (not kind.queues or "/" in waiting):
            continue
        if not kind.named and name == kind.name:
            return kind.name, ""
        of = name.removeprefix(f"{kind.name}_")
        if kind.named and of not in {name, ""} and "/" not in of:
            return kind.name, unquote(of, errors="replace")
    return None


def parse(file: str, text: str, written_at: datetime | None = None) -> tuple[Signal, ...]:
    """What a file of signals says; whatever it holds, this is a value.

    Args:
        file: where it stands, relative to ``.loki/``.
        text: what it holds.
        written_at: when that was, as far as the file tells.

    Returns:
        One signal, or as many as a log has lines; none where the file is no signal. One that cannot
        be read has the standing ``unreadable``, and says in ``problem`` what was expected.

    Example:
        >>> (drift,) = parse("signals/DRIFT_DETECTED", '{"task_id": "t", "detected_drift": "x"}')
        >>> drift.data["severity"], drift.standing
        ('medium', 'pending')
        >>> parse("signals/HUMAN_APPROVED", "yes")[0].problem
        'is no JSON object'
    """
    found = named(file)
    if found is None:
        return ()
    kind, name = found
    seconds = written_at.timestamp() if written_at else None
    if KINDS[kind].form != "log":
        return (_signal(kind, name, file, text, written_at, seconds),)
    lines = enumerate(text.split("\n"))
    return tuple(
        _signal(kind, name, file, line, None, seconds, number)
        for number, line in lines
        if line.strip()
    )


def _signal(
    kind: str,
    name: str,
    file: str,
    text: str,
    written_at: datetime | None,
    seconds: float | None,
    line: int = 0,
) -> Signal:
    from loki.people.signal_body import read

    data, problem = read(KINDS[kind].form, text)
    said = data.get("timestamp")
    given = (moment(said) if isinstance(said, str) else None) or written_at
    # A name that was too long for a file stands inside.
    full = data.get("name" if KINDS[kind].named == "name" else "branch")
    if name and isinstance(full, str) and encoded(full) == _encoded_in(file):
        name = full
    standing: Standing = "unreadable" if problem else "pending"
    return Signal(kind, name, data, given, file, line, standing, problem, text, seconds)


def _encoded_in(file: str) -> str:
    """The name in a file's name, as it is encoded there."""
    found = named(file)
    return file.removeprefix(f"{FOLDER}/{found[0]}_") if found else ""


def documents(text: str) -> list[str]:
    """The JSON objects that stand in a text one after another: a program has appended.

    Returns:
        Each as it is written, once; the whole text alone, where it is anything else.

    Example:
        >>> documents('{"a": 1}\\n{"a": 2}\\n'), documents("{} and more")
        (['{"a": 1}', '{"a": 2}'], ['{} and more'])
    """
    found: list[str] = []
    decoder, at = json.JSONDecoder(), _after_blanks(text, 0)
    while at < len(text):
        try:
            data, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [text]
        if not isinstance(data, dict):
            return [text]
        found.append(text[at:end])
        at = _after_blanks(text, end)
    return list(dict.fromkeys(found)) if len(found) > 1 else [text]


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def render(data: Mapping[str, Any]) -> str:
    """What a signal's file holds, on one line.

    Example:
        >>> render({"task_id": "t"})
        '{"task_id": "t"}\\n'
    """
    return json.dumps(dict(data), ensure_ascii=False) + "\n"
