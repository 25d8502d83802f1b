"""The kinds of signals: who gives each, who acts on it, what its file holds and what becomes of it.

Why it is so: ``docs/design/signals.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

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
