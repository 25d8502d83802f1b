"""The record of a call: what is written is read again, and told in one line that can be parsed."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.log import fields
from loki.base.tokens import TokenUsage
from loki.memory.call_log import LOG, Call, Calls, line
from loki.stores.file_store import FileStore, ForgivingStore

AT = "2026-04-04T10:15:30.000Z"
GOOD = Call(
    AT,
    "anthropic",
    "claude-sonnet-4-5",
    "ok",
    attempts=2,
    usage=TokenUsage(1200, 300, 1000, 100),
    cost=0.0123,
    latency_ms=5400,
    response_model="claude-sonnet-4-5-20250929",
    request_id="req_1",
    task="fix-it-1a2b3c",
    breaker="api/anthropic/claude-sonnet-4-5",
)
LOST = Call(
    AT,
    "openai",
    "gpt-5",
    "error",
    error_kind="server",
    error='503: "no" healthy\nupstream model=other',
    status=503,
)


def test_a_record_is_kept_and_read_again(tmp_path: Path) -> None:
    calls = Calls(ForgivingStore(FileStore(tmp_path)))
    calls.add(GOOD)
    calls.add(LOST)
    assert list(calls) == [GOOD, LOST]
    rows = [json.loads(row) for row in (tmp_path / LOG).read_text().splitlines()]
    assert rows[0]["cache_read_tokens"] == 1000
    assert "cost" not in rows[1], "what is not known is not 0"


def test_what_is_no_record_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = ForgivingStore(FileStore(tmp_path))
    store.append(LOG, {"provider": "x", "outcome": "splendid"})
    store.append(LOG, {**GOOD.to_dict(), "a_field_of_next_year": 1})
    store.append(LOG, {**GOOD.to_dict(), "input_tokens": "many"})
    assert list(Calls(store)) == [GOOD]
    assert len(caplog.records) == 2


def test_secrets_are_neither_kept_nor_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "loki")
    key = "sk-ant-api03-" + "a1B2c3D4" * 10
    Calls(ForgivingStore(FileStore(tmp_path))).add(
        Call(AT, "anthropic", "m", "error", error=f"invalid x-api-key {key}")
    )
    assert key not in (tmp_path / LOG).read_text()
    assert key not in caplog.text
    assert key not in str(caplog.records[0].__dict__)


def test_one_line_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "loki")
    Calls().add(LOST)
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith("[closed-loop] call=llm provider=openai model=gpt-5 outcome=error")
    assert "\n" not in message
    assert record.__dict__["loki"]["status"] == 503
    told = fields(message)
    assert told["model"] == "gpt-5", "what an error says forges no field"
    assert told["error_kind"] == "server"


@given(st.text(), st.text(), st.floats(0, 1e6), st.integers(0, 2**53))
def test_no_text_forges_a_field(model: str, error: str, cost: float, tokens: int) -> None:
    call = Call(AT, "p", f"m{model}", "error", usage=TokenUsage(tokens), cost=cost, error=error)
    text = line(call)
    told = fields(" ".join(text.split()))
    assert told["provider"] == "p"
    assert told["outcome"] == "error"
    assert told["input_tokens"] == tokens
    assert told["work"] == "full"
