"""Where texts stand in conversations, and which conversations are to be stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.adapters.conversation import KEPT, Conversations, Watch
from loki.decision.monitor import Reaction
from loki.decision.tool_call import ToolCall
from support.framework_agents import monitor


def test_a_text_keeps_its_place() -> None:
    kept = Conversations()
    assert [kept.place("run", "sign", end) for end in (1, 3, 5)] == [1, 1, 1]
    assert kept.place("run", "another sign", 5) == 5
    assert kept.place("another run", "sign", 3) == 3


def test_of_a_history_that_was_cut_it_is_the_end() -> None:
    kept = Conversations()
    assert kept.place("run", "sign", 9) == 9
    assert kept.place("run", "sign", 4) == 4


def test_only_so_many_are_kept() -> None:
    kept = Conversations()
    for number in range(KEPT + 1):
        kept.place(str(number), "sign", 1)
    assert kept.place("0", "sign", 5) == 5
    assert kept.place(str(KEPT), "sign", 5) == 1


def test_a_stop_waits_for_the_request_with_its_result() -> None:
    kept = Conversations()
    kept.hold("call-1", Reaction("stop", "stuck", "repeat", None, 4))
    kept.hold("call-2", Reaction("nudge", "try another way"))
    kept.raise_held(["call-2", "call-3"])
    with pytest.raises(loki.AgentStuck, match="stuck"):
        kept.raise_held(["call-3", "call-1"])
    kept.raise_held(["call-1"])  # said once: whoever goes on may


def test_each_conversation_is_counted_by_itself(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    assert watch.of("a") is watch.of("a") is not watch.of("b")
    assert watch.of() is watch.monitor
    with watch.running():
        inside = watch.of()
        assert inside is watch.of() is not watch.monitor
    assert watch.of() is watch.monitor
    assert inside.workspace is watch.monitor.workspace


def test_a_session_that_processes_share_is_one(tmp_path: Path) -> None:
    shared = loki.Monitor(tmp_path, session="s")
    assert Watch(shared, "test").of("a") is shared


def test_a_run_that_a_tool_ended_is_gone_on_counting_by_the_next(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    first = watch.of("a")
    watch.ended("a", ToolCall("run_tests"), ValueError("no price for 'kiwi'"))
    assert watch.of("b") is first
    assert watch.of("c") is not first
