"""Signals that agents give: which are accepted, and what in them is loki's to say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

from loki.people.signal import (
    AGENT_SIGNALS,
    KINDS,
    MAX_SIZE,
    MOST_LINES,
    emitted_signals,
    why_signal_refused,
)

REVIEW = b'{"reason": "keys"}'


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if not kind.by_agents])
def test_what_people_and_loki_give_is_refused(kind: object) -> None:
    pattern = getattr(kind, "pattern", "").replace("{name}", "x").replace("{branch}", "x")
    for content in (b"", b"{}", None, b'{"request_id": "r", "by": "ann", "approved": true}'):
        assert "agents may not give" in why_signal_refused(AGENT_SIGNALS + pattern, content)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("HUMAN_REVIEW_NEEDED", None, "only its consumer takes it away"),
        ("DRIFT_DETECTED", b'{"detected_drift": "x", "severity": "odd"}', "severity"),
        ("DRIFT_DETECTED", b'{"detected_drift": "x"}\n' * (MOST_LINES + 1), "lines"),
        ("DOCS_NEEDED", b"x" * (MAX_SIZE + 1), "bytes"),
        ("FEATURE_READY", b"", "is no signal"),
        ("README.md", b"", "is no signal: expected one of DRIFT_DETECTED,"),
        ("HUMAN_APPROVED.d/a.json", b"{}", "agents may not give"),
        ("../config.toml", b"", "is no signal"),
        ("", b"", "is no signal"),
    ],
)
def test_what_is_no_signal_of_theirs_is_refused(
    file: str, content: bytes | None, reason: str
) -> None:
    assert reason in why_signal_refused(AGENT_SIGNALS + file, content)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("HUMAN_REVIEW_NEEDED", REVIEW),
        ("HUMAN_REVIEW_NEEDED", b"please"),
        ("HUMAN_REVIEW_NEEDED.d/a.json", REVIEW),
        ("FEATURE_READY_login%20form", b""),
        ("CONTEXT_CLEAR_REQUESTED", b""),
        ("DOCS_NEEDED", "größer".encode("latin-1")),
        ("DRIFT_DETECTED", b'{"detected_drift": "x"}\n{"detected_drift": "y"}\n'),
    ],
)
def test_what_is_theirs_is_accepted(file: str, content: bytes) -> None:
    assert why_signal_refused(AGENT_SIGNALS + file, content) == ""
    for one in emitted_signals(AGENT_SIGNALS + file, content, agent="a", task_id="t", goal="g"):
        assert (one.data["agent"], one.data["task_id"]) == ("a", "t")


def test_who_and_when_is_never_taken_from_an_agent() -> None:
    said = {
        "reason": "keys",
        "id": "r1",
        "request_id": "r2",
        "timestamp": "1999-01-01T00:00:00Z",
        "run": "main",
        "agent": "ann",
        "task_id": "other",
        "mood": "kept",
    }
    content = json.dumps(said).encode()
    (one,) = emitted_signals(
        f"{AGENT_SIGNALS}HUMAN_REVIEW_NEEDED", content, agent="claude", task_id="t", goal="g"
    )
    assert dict(one.data) == {
        "reason": "keys",
        "mood": "kept",
        "severity": "high",
        "blocking": True,
        "agent": "claude",
        "task_id": "t",
    }
    line = b'{"detected_drift": "x", "original_goal": "another"}'
    (drift,) = emitted_signals(
        f"{AGENT_SIGNALS}DRIFT_DETECTED", line, agent="claude", task_id="t", goal="mine"
    )
    assert drift.data["original_goal"] == "mine"


def test_the_same_note_of_the_next_attempt_is_the_same_signal() -> None:
    path = f"{AGENT_SIGNALS}DOCS_NEEDED"
    ids = [
        emitted_signals(path, text, agent=agent, task_id=task, goal="")[0].data["id"]
        for text, agent, task in [
            (b"x", "a", "t"),
            (b"x", "a", "t"),
            (b"y", "a", "t"),
            (b"x", "a", "u"),
        ]
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@settings(deadline=None)  # the first of them imports pydantic
@given_by(
    file=st.one_of(st.text(), st.sampled_from([kind.pattern for kind in KINDS.values()])),
    content=st.none() | st.binary(),
)
def test_anything_is_either_refused_or_given(file: str, content: bytes | None) -> None:
    reason = why_signal_refused(AGENT_SIGNALS + file, content)
    if not reason:
        assert content is not None
        for one in emitted_signals(AGENT_SIGNALS + file, content, agent="a", task_id="t", goal="g"):
            assert KINDS[one.kind].by_agents
