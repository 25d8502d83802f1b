"""What agents print is read whatever it is, wherever it is cut, and in a few megabytes of memory."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.agents.agent_report import FORMS, LINES, LONGEST_LINE, LONGEST_TEXT, Reader, Report
from loki.base.tokens import TokenUsage
from support import replay

STREAMS = {
    "claude": replay.lines(replay.claude_events()),
    "codex": replay.lines(replay.codex_events()),
    "gemini": replay.lines(replay.gemini_events()),
    "aider": replay.AIDER.encode(),
}


def reader(form: str) -> Reader:
    return Reader(FORMS[form], LINES.get(form))


def read(form: str, *chunks: bytes, errors: bytes = b"") -> Report:
    found = reader(form)
    for chunk in chunks:
        found.feed(chunk)
    return found.close(errors)


@pytest.mark.parametrize("form", ["claude", "codex", "gemini"])
def test_last_words_and_figures(form: str) -> None:
    report = read(form, STREAMS[form])
    assert report.text == "I wrote the note."
    assert report.session == replay.SESSION
    assert report.is_whole
    assert not report.error
    expected = {
        "claude": (TokenUsage(300, 80, 60, 40), 0.002612, "claude-opus-5-5"),
        "codex": (TokenUsage(200, 80, 60, 0), None, ""),
        "gemini": (TokenUsage(200, 90, 60, 0), None, "gemini-2.5-pro"),
    }
    assert (report.usage, report.cost, report.model) == expected[form]


def test_aider_prints_text() -> None:
    report = read("aider", STREAMS["aider"])
    assert (report.usage, report.cost, report.model) == (TokenUsage(1200, 100), 0.004, "gpt-4o")
    assert report.text == "I will write the note.\nnote.txt\n", "no code, no figures, no noise"
    assert report.is_whole


@pytest.mark.parametrize(
    ("line", "usage", "cost"),
    [
        ("Tokens: 950 sent, 8 received.", TokenUsage(950, 8), None),
        (
            "Tokens: 13k sent, 1.2k cache write, 5.0k cache hit, 2.5k received. "
            "Cost: $0.05 message, $1.27 session.",
            TokenUsage(13_000, 2500, 5000, 1200),
            1.27,
        ),
        (
            "Tokens: 1,234 sent, 56 received. Cost: $0.0016 request, $0.0016 session.",
            TokenUsage(1234, 56),
            0.0016,
        ),
    ],
)
def test_figures_of_aider(line: str, usage: TokenUsage, cost: float | None) -> None:
    report = read("aider", line.encode())
    assert (report.usage, report.cost) == (usage, cost)


def test_answers_of_aider_add_up() -> None:
    once = b"Tokens: 1.0k sent, 100 received. Cost: $0.01 message, $0.01 session.\n"
    again = b"Tokens: 2.0k sent, 50 received. Cost: $0.02 message, $0.03 session.\n"
    report = read("aider", once, again)
    assert (report.usage, report.cost) == (TokenUsage(3000, 150), 0.03)


def test_one_document() -> None:
    """``--output-format json``: of Claude Code a line, of Gemini CLI many."""
    report = read("claude", json.dumps(replay.claude_result()).encode())
    assert (report.text, report.cost) == ("I wrote the note.", 0.002612)
    assert report.usage == TokenUsage(300, 80, 60, 40)
    report = read("gemini", json.dumps(replay.gemini_document(), indent=2).encode())
    assert (report.text, report.usage) == ("I wrote the note.", TokenUsage(200, 90, 60))
    assert report.unreadable == 0


def test_a_document_among_errors() -> None:
    error = {"session_id": "s", "error": {"type": "Error", "message": "Overloaded.", "code": 503}}
    said = b"YOLO mode is enabled.\n" + json.dumps(error, indent=2).encode() + b"\n"
    report = read("gemini", b"", errors=said)
    assert (report.error, report.status) == ("Overloaded.", 503)


def test_what_is_shown_while_it_works() -> None:
    found = reader("claude")
    assert [line for chunk in STREAMS["claude"].splitlines(True) for line in found.feed(chunk)] == [
        "Write note.txt",
        "I wrote the note.",
    ]
    found = reader("codex")
    assert found.feed(STREAMS["codex"]) == ["$ /bin/bash -lc 'echo hello'", "I wrote the note."]
    assert reader("gemini").feed(STREAMS["gemini"]) == ["write_file note.txt"]


def test_a_subagent_does_not_speak_for_the_agent() -> None:
    inner = {
        "type": "assistant",
        "parent_tool_use_id": "toolu_1",
        "message": {"content": [{"type": "text", "text": "The inner one."}]},
    }
    assert (
        read("claude", replay.lines([inner, *replay.claude_events()])).text == "I wrote the note."
    )


@pytest.mark.parametrize(
    ("changed", "error", "kind", "status"),
    [
        (
            {
                "is_error": True,
                "result": "API Error: 529 Overloaded.",
                "api_error_status": 529,
                "api_error_type": "overloaded_error",
            },
            "API Error: 529 Overloaded.",
            "overloaded_error",
            529,
        ),
        (
            {"subtype": "error_max_turns", "result": None},
            "error_max_turns",
            "error_max_turns",
            None,
        ),
        (
            {"subtype": "error_during_execution", "result": None, "errors": ["a", 1, "b"]},
            "a; b",
            "error_during_execution",
            None,
        ),
        ({"is_error": True, "result": ""}, "no reason was given", "", None),
    ],
)
def test_errors_of_claude(
    changed: dict[str, object], error: str, kind: str, status: int | None
) -> None:
    report = read("claude", replay.lines(replay.claude_events(**changed)))
    assert (report.error, report.kind, report.status) == (error, kind, status)
    assert report.cost == 0.002612  # it was spent all the same


def test_an_error_that_was_overcome_is_none() -> None:
    reconnecting = {"type": "error", "message": "Reconnecting... 1/5 (503 Service Unavailable)"}
    events = [reconnecting, *replay.codex_events()]
    assert read("codex", replay.lines(events)).error == ""
    said = b"litellm.RateLimitError: slow down\nRetrying in 0.2 seconds...\n"
    assert read("aider", said).error == "litellm.RateLimitError: slow down"
    assert read("aider", said, STREAMS["aider"]).error == ""


def test_an_error_of_gemini_that_its_last_event_does_not_repeat() -> None:
    said = "Model stream ended without a finish reason."
    error = {"type": "error", "severity": "error", "message": said}
    events = [error, *replay.gemini_events(status="error")]
    assert read("gemini", replay.lines(events)).error == said
    warning = {**error, "severity": "warning"}
    assert read("gemini", replay.lines([warning, *replay.gemini_events()])).error == ""


def test_lines_that_are_none() -> None:
    """Noise between events, a torn line and an unknown event lose nothing else."""
    events = STREAMS["claude"].splitlines(True)
    torn = b'{"type": "assistant", "mess\n'
    noise = b"warning: something\n\n[1, 2]\nnull\n" + b'{"type": "new_event", "a": [1]}\n'
    report = read("claude", noise, *events[:3], torn, *events[3:], b'{"type": "res')
    assert (report.text, report.cost, report.unreadable) == ("I wrote the note.", 0.002612, 2)
    assert "warning: something" in report.plain


def test_a_stream_that_breaks_off() -> None:
    report = read("claude", *STREAMS["claude"].splitlines(True)[:-1], STREAMS["claude"][-300:-100])
    assert not report.is_whole
    assert report.text == "I wrote the note."


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = sorted(
    {"type", "subtype", "item", "message", "content", "usage", "stats", "models", "tokens", "error",
     "result", "modelUsage", "total_cost_usd", "response", "status", "session_id", "errors", "changes",
     "is_error", "text", "name", "input", "input_tokens", "costUSD", "code", "delta", "role", "prompt"}
)  # fmt: skip
TYPES = ["system", "assistant", "result", "turn.completed", "turn.failed", "error", "item.completed",
         "item.started", "init", "message", "tool_use", "text", "agent_message", "file_change"]  # fmt: skip


@given(st.sampled_from(sorted(STREAMS)), st.binary(max_size=400), st.integers(0, 3000))
def test_no_bytes_make_it_raise(form: str, noise: bytes, at: int) -> None:
    stream = STREAMS[form]
    report = read(form, stream[:at] + noise + stream[at:], errors=noise)
    assert report.cost is None or report.cost >= 0


@given(
    st.sampled_from(["claude", "codex", "gemini"]),
    st.lists(
        st.dictionaries(st.sampled_from(NAMES), HOSTILE | st.sampled_from(TYPES), max_size=6),
        max_size=4,
    ),
)
def test_fields_of_any_type(form: str, events: list[dict[str, object]]) -> None:
    report = read(form, replay.lines(events))
    report.text.encode()
    report.session.encode()
    if report.usage is not None:
        assert report.usage.total >= 0


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(0, 3000), max_size=8))
def test_it_does_not_matter_where_it_is_cut(form: str, cuts: list[int]) -> None:
    stream = b"noise \xff\n" + STREAMS[form] + b'{"torn'
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    assert read(form, *chunks) == read(form, stream)


def test_a_hundred_megabytes() -> None:
    """A line without end, tool results that never end, and the result after them."""
    found = reader("claude")
    chunk = b"x" * 2**20
    result = {"type": "user", "message": {"content": "y" * 2**20}}
    words = {
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "z" * 2**18}]},
    }
    tracemalloc.start()
    for _ in range(50):
        found.feed(chunk)
    found.feed(b"\n")
    for _ in range(40):
        found.feed(replay.lines([result, words]))
        found.feed(b"noise " + chunk[: 2**18] + b"\n")
    found.feed(STREAMS["claude"])
    report = found.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (report.text, report.cost, report.unreadable) == ("I wrote the note.", 0.002612, 1)
    assert len(report.said) <= LONGEST_TEXT
    assert peak < 4 * LONGEST_LINE
