"""Signals: files in ``.loki/signals/`` by which agents, people and loki tell each other something.

What kinds there are, how a signal's file is named, and what it says; nothing here touches files. An agent
writes a file ``.loki/signals/<KIND>`` as it would edit any other, in its copy of the project or in its
answer; what it names there is no edit of the project, but a signal. Why it is so: ``docs/design/signals.md``.
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
from loki.base.time import isoformat, moment

# --- The kinds of signals -----------------------------------------------------------------------------

MAX_SIZE = 65_536
"""Bytes of what a signal says: more is no signal. Chosen, not measured."""

Form: TypeAlias = Literal["log", "presence", "notice", "review", "decision"]
"""A log of JSON lines, a file whose presence is enough, one that says something (JSON or text), a
request for a person, or a person's decision (both JSON)."""

Belongs: TypeAlias = Literal["run", "branch", "request"]
"""What a signal acts on: the run that it was given in, the run of the branch that it names, or the
request whose id it names, whenever that was."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of signal.

    Attributes:
        name: what its file is called; where ``named`` says of what, ``_`` and that follow.
        meaning: in a few words.
        producer, consumer: who gives it, and who acts on it; one of each.
        next: what its consumer does.
        form: what its file holds.
        by_agents: whether an agent may give it.
        named: what the rest of its name names: ``name``, ``branch``, or "" where there is none.
        belongs: what it acts on.
        queues: whether further ones wait in ``<file>.d/``; else the last one replaces the others.
    """

    name: str
    meaning: str
    producer: str
    consumer: str
    next: str
    form: Form
    by_agents: bool = False
    named: Literal["", "name", "branch"] = ""
    belongs: Belongs = "run"
    queues: bool = False

    @property
    def pattern(self) -> str:
        """The name of its files, as people write it: ``FEATURE_READY_{name}``."""
        return f"{self.name}_{{{self.named}}}" if self.named else self.name


DRIFT_DETECTED = "DRIFT_DETECTED"
CONTEXT_CLEAR_REQUESTED = "CONTEXT_CLEAR_REQUESTED"
HUMAN_REVIEW_NEEDED = "HUMAN_REVIEW_NEEDED"
HUMAN_APPROVED = "HUMAN_APPROVED"
FEATURE_READY = "FEATURE_READY"
TESTS_PASSED = "TESTS_PASSED"
TESTS_FAILED = "TESTS_FAILED"
MERGE_REQUESTED = "MERGE_REQUESTED"
DOCS_NEEDED = "DOCS_NEEDED"
BLOG_POST_QUEUED = "BLOG_POST_QUEUED"
PLAN_APPROVED = "PLAN_APPROVED"

_ALL = (
    Kind(
        DRIFT_DETECTED,
        "work strays from the task's goal",
        "the agent at work, or the loop",
        "the loop",
        "the task is reasoned about anew; more than one in a task is looked at",
        "log",
        by_agents=True,
    ),
    Kind(
        CONTEXT_CLEAR_REQUESTED,
        "the conversation has become too long to be of use",
        "the agent at work, or the loop",
        "the loop",
        "the agent begins a new session, with the ledger and the last handoffs",
        "presence",
        by_agents=True,
    ),
    Kind(
        HUMAN_REVIEW_NEEDED,
        "a person has to decide",
        "the agent at work, or the loop",
        "a person",
        "the task is blocked until a person answers, for 24 h at most",
        "review",
        by_agents=True,
        belongs="request",
        queues=True,
    ),
    Kind(
        HUMAN_APPROVED,
        "a person has decided",
        "a person",
        "the dispatcher",
        "the task whose request it names goes on, or ends",
        "decision",
        belongs="request",
        queues=True,
    ),
    Kind(
        FEATURE_READY,
        "a feature is ready to be tested",
        "an agent",
        "the dispatcher",
        "the project's tests run",
        "presence",
        by_agents=True,
        named="name",
    ),
    Kind(
        TESTS_PASSED,
        "the tests of a feature passed",
        "the dispatcher",
        "the dispatcher",
        "its branch is requested to be merged",
        "notice",
        named="name",
    ),
    Kind(
        TESTS_FAILED,
        "the tests of a feature failed",
        "the dispatcher",
        "the dispatcher",
        "a task to mend them is queued",
        "notice",
        named="name",
    ),
    Kind(
        MERGE_REQUESTED,
        "a branch is ready to be merged",
        "the dispatcher",
        "a person, or the dispatcher",
        "it is merged",
        "notice",
        named="branch",
        belongs="branch",
    ),
    Kind(
        DOCS_NEEDED,
        "something has to be documented",
        "an agent",
        "the dispatcher",
        "a task to document it is queued",
        "notice",
        by_agents=True,
        queues=True,
    ),
    Kind(
        BLOG_POST_QUEUED,
        "a change is worth telling about",
        "an agent",
        "the dispatcher",
        "a task to write about it is queued",
        "notice",
        by_agents=True,
        queues=True,
    ),
    Kind(
        PLAN_APPROVED,
        "a person approves a plan",
        "a person",
        "the dispatcher",
        "the pipeline stage that waits for this goes on",
        "presence",
        queues=True,
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Every kind, by its name."""


# --- What stands in a signal's file -------------------------------------------------------------------


# --- A signal and its file ----------------------------------------------------------------------------

FOLDER = "signals"
"""Relative to ``.loki/``."""

LONGEST_NAME = 200
"""Bytes of an encoded name; file systems allow 255. As for folders of runs (`loki.memory.sign`)."""

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

    from loki.people.signal_body import read  # pydantic is much to load

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


# --- Signals that agents give: only what is theirs to say ---------------------------------------------

AGENT_SIGNALS = f".loki/{FOLDER}/"
"""Where agents write them, relative to the project."""

OWN = ("id", "request_id", "timestamp", "run", "agent", "task_id", "original_goal")
"""Fields that loki fills in itself, whatever an agent says."""

MOST_LINES = 20
"""Lines of a log that one answer may add; chosen, not measured."""


TOLD = (
    "If only a person can decide something, write why to `.loki/signals/HUMAN_REVIEW_NEEDED`, as JSON: "
    '`{"reason": "…", "context": "what to decide", "severity": "high"}`.'
)
TOLD_FEATURE = (
    "A finished part that is to be tested: `.loki/signals/FEATURE_READY_<name>`. Something to document: "
    "say what in `.loki/signals/DOCS_NEEDED`."
)


def signal_instructions(kind: str) -> str:
    """What agents are told of signals: those that a task of a kind can need.

    Args:
        kind: of the task.
    """
    return f"{TOLD}\n{TOLD_FEATURE}" if kind == "feature" else TOLD


@dataclass(frozen=True, slots=True)
class EmittedSignal:
    """A signal that an agent gives; `loki.people.signals.Signals.emit` takes what it says."""

    kind: str
    name: str
    data: Mapping[str, Any]


def why_signal_refused(path: str, content: bytes | None) -> str:
    """Why an agent may not write a file among the signals, in a sentence; "" where it may.

    Args:
        path: relative to the project.
        content: what it would hold; None: it would be deleted.

    Example:
        >>> why_signal_refused(".loki/signals/HUMAN_APPROVED", b"{}")
        'is a signal that agents may not give: it is given by a person'
        >>> why_signal_refused(".loki/signals/FEATURE_READY_login", b"")
        ''
    """
    file = path.removeprefix(".loki/")
    found = named(file)
    if found is None:
        theirs = ", ".join(kind.pattern for kind in KINDS.values() if kind.by_agents)
        return f"is no signal: expected one of {theirs}"
    kind = KINDS[found[0]]
    if not kind.by_agents:
        return f"is a signal that agents may not give: it is given by {kind.producer}"
    if content is None:
        return "is a signal: only its consumer takes it away"
    if len(content) > MAX_SIZE:
        return f"says {len(content):,} bytes: expected at most {MAX_SIZE:,}"
    signals = parse(file, content.decode("utf-8", "replace"))
    if len(signals) > MOST_LINES:
        return f"has {len(signals)} lines: expected at most {MOST_LINES}"
    return next((one.problem for one in signals if one.problem), "")


def is_for_people(path: str) -> bool:
    """Whether a file is a signal that only a person gives; arguments: `refused`.

    Example:
        >>> is_for_people(".loki/signals/HUMAN_APPROVED"), is_for_people(".loki/signals/DOCS_NEEDED")
        (True, False)
    """
    found = named(path.removeprefix(".loki/"))
    return found is not None and KINDS[found[0]].producer == "a person"


def emitted_signals(
    path: str, content: bytes, *, agent: str, task_id: str, goal: str
) -> tuple[EmittedSignal, ...]:
    """The signals in a file that `refused` has nothing against.

    Args:
        path: relative to the project.
        content: what it holds.
        agent: name of the agent; task_id: of the task that it works on; goal: of that task.

    Example:
        >>> text = b'{"reason": "keys", "agent": "ann", "task_id": "other"}'
        >>> path = ".loki/signals/HUMAN_REVIEW_NEEDED"
        >>> (one,) = emitted_signals(path, text, agent="claude", task_id="t1", goal="")
        >>> dict(one.data)
        {'reason': 'keys', 'severity': 'high', 'blocking': True, 'agent': 'claude', 'task_id': 't1'}
    """
    found = []
    for one in parse(path.removeprefix(".loki/"), content.decode("utf-8", "replace")):
        data = {
            key: value
            for key, value in one.data.items()
            if key not in OWN and value not in ("", [], {})
        }
        data |= {"agent": agent, "task_id": task_id}
        if one.about.form == "log":
            data["original_goal"] = goal
        if one.about.form == "notice" and one.about.queues:
            # Said once more by the next attempt, it still is the same.
            data["id"] = hashlib.sha256(f"{one.kind}{render(data)}".encode()).hexdigest()[:12]
        found.append(EmittedSignal(one.kind, one.name, data))
    return tuple(found)
