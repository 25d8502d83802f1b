"""Signals that agents give: only the kinds that are theirs, and nothing in them that is loki's to say.

An agent writes a file ``.loki/signals/<KIND>`` as it would edit any other, in its copy of the project
or in its answer; what it names there is no edit of the project, but a signal.
Why it is so: ``docs/design/signals.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loki.people.signal import FOLDER, KINDS, MAX_SIZE, named, parse, render

PREFIX = f".loki/{FOLDER}/"
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
    """A signal that an agent gives; `loki.people.signals.Signals.give` takes it."""

    kind: str
    name: str
    data: Mapping[str, Any]


def why_refused(path: str, content: bytes | None) -> str:
    """Why an agent may not write a file among the signals, in a sentence; "" where it may.

    Args:
        path: relative to the project.
        content: what it would hold; None: it would be deleted.

    Example:
        >>> why_refused(".loki/signals/HUMAN_APPROVED", b"{}")
        'is a signal that agents may not give: it is given by a person'
        >>> why_refused(".loki/signals/FEATURE_READY_login", b"")
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
        data = {key: value for key, value in one.data.items() if key not in OWN and _says(value)}
        data |= {"agent": agent, "task_id": task_id}
        if one.about.form == "log":
            data["original_goal"] = goal
        if one.about.form == "notice" and one.about.queues:
            # Said once more by the next attempt, it still is the same.
            data["id"] = hashlib.sha256(f"{one.kind}{render(data)}".encode()).hexdigest()[:12]
        found.append(EmittedSignal(one.kind, one.name, data))
    return tuple(found)


def _says(value: Any) -> bool:
    return value not in ("", [], {})
