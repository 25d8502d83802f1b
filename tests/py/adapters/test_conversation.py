"""Where texts stand in conversations, and which conversations are to be stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.adapters.conversation import KEPT, Conversations, Watch
from loki.decision.tool_call import ToolCall
from support.framework_agents import ZERO, monitor


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


def looped(watch: Watch, of: str, tries: int, first: int = 0) -> list[str]:
    """What a conversation hears of its checks; they are numbered in each conversation anew."""
    kinds: list[str] = []
    for number in range(first, first + tries):
        change = ToolCall("write_file", {"path": "stats.py", "content": str(number)})
        watch.heard(of, change, "wrote")
        kinds.append(watch.heard(of, ToolCall("run_tests", id=f"call-{number}"), ZERO).kind)
    return kinds


def test_a_stop_waits_for_the_request_with_its_result(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    looped(watch, "a", 4)
    watch.raise_held("a", ["call-1", "call-2"])
    with pytest.raises(loki.AgentStuck, match="Stop here"):
        watch.raise_held("a", ["call-2", "call-3"])
    watch.raise_held("a", ["call-3"])  # said once: whoever goes on may


def test_who_goes_on_after_a_stop_is_counted_anew(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    assert looped(watch, "a", 4) == ["none", "nudge", "nudge", "stop"]
    with pytest.raises(loki.AgentStuck):
        watch.raise_held("a", ["call-3"])
    assert looped(watch, "a", 4, first=4) == ["none", "nudge", "nudge", "stop"]


def test_a_stop_is_of_its_own_conversation_where_all_number_their_calls_alike(
    tmp_path: Path,
) -> None:
    watch = Watch(monitor(tmp_path), "test")
    looped(watch, "a", 4)
    looped(watch, "b", 1, first=3)
    watch.raise_held("b", ["call-3"])
    with pytest.raises(loki.AgentStuck):
        watch.raise_held("summed up", ["call-3"])


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


def test_where_there_are_others_the_next_one_is_counted_by_itself(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    watch.of("somebody else")
    first = watch.of("a")
    watch.ended("a", ToolCall("run_tests"), ValueError("no price for 'kiwi'"))
    assert watch.of("b") is not first
