"""Where texts stand in conversations, and which conversations are to be stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.adapters.conversation import KEPT, Conversations, Watch
from loki.decision.monitor.tool_call import ToolCall
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
        change = ToolCall("write_file", {"path": "stats.py", "content": "return 0"})
        watch.received(of, change, "wrote")
        kinds.append(watch.received(of, ToolCall("run_tests", id=f"call-{number}"), ZERO).kind)
    return kinds


def test_a_stop_waits_for_the_request_with_its_result(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    looped(watch, "a", 6)
    watch.raise_held("a", ["call-3", "call-4"])
    with pytest.raises(loki.AgentStuck, match="Stop here"):
        watch.raise_held("a", ["call-4", "call-5"])
    watch.raise_held("a", ["call-5"])  # said once: whoever goes on may


def test_a_stop_is_said_again_to_who_asks_again_without_a_person(tmp_path: Path) -> None:
    watch, asker = Watch(monitor(tmp_path), "test"), object()
    looped(watch, "a", 6)
    for _ in range(3):
        with pytest.raises(loki.AgentStuck):
            watch.raise_held("a", ["call-5"], asker)
    watch.raise_held("a", ["call-5"], object())
    watch.raise_held("a", ["call-5"], asker)


def test_a_call_that_was_a_reason_to_stop_is_not_made_again(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    looped(watch, "a", 6)
    assert watch.before("a", ToolCall("run_tests", id="call-5")).kind == "stop"
    assert not watch.before("a", ToolCall("run_tests", id="call-6"))
    assert not watch.before("b", ToolCall("run_tests", id="call-5"))


def test_what_a_framework_tries_again_by_itself_counts_once(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    error = ValueError("no price for 'kiwi'")

    class Task: ...

    for number in range(5):
        task = Task()
        for _ in range(3):
            watch.ended("a", ToolCall("run_tests", id=f"call-{number}"), error, task)
    task = Task()
    for _ in range(3):  # it is stopped by the first of these
        with pytest.raises(loki.AgentStuck):
            watch.ended("a", ToolCall("run_tests", id="call-5"), error, task)
        break
    assert watch.before("a", ToolCall("run_tests", id="call-5")).kind == "stop"


def test_who_goes_on_after_a_stop_is_counted_anew(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    told = ["none", "nudge", "nudge", "nudge", "nudge", "stop"]
    assert looped(watch, "a", 6) == told
    with pytest.raises(loki.AgentStuck):
        watch.raise_held("a", ["call-5"])
    assert looped(watch, "a", 6, first=6) == told


def test_a_stop_is_of_its_own_conversation_where_all_number_their_calls_alike(
    tmp_path: Path,
) -> None:
    watch = Watch(monitor(tmp_path), "test")
    looped(watch, "a", 6)
    looped(watch, "b", 1, first=5)
    watch.raise_held("b", ["call-5"])
    with pytest.raises(loki.AgentStuck):
        watch.raise_held("summed up", ["call-5"])


def test_each_conversation_is_counted_by_itself(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    assert watch.of("a") is watch.of("a") is not watch.of("b")
    outside = watch.of()
    with watch.running():
        inside = watch.of()
        assert inside is watch.of() is not outside
    assert watch.of() is outside
    assert inside.workspace is watch.monitor.workspace


def test_a_session_that_processes_share_is_one(tmp_path: Path) -> None:
    watch = Watch(loki.Monitor(tmp_path, session="s", above="t"), "test")
    assert watch.of("a") is watch.of("b")
    assert (watch.of("a").session, watch.of("a").above) == ("s", "t")
    looped(watch, "a", 3)
    another = Watch(loki.Monitor(tmp_path, session="s"), "test")
    assert looped(another, "b", 3) == ["nudge", "nudge", "stop"]


@pytest.mark.parametrize("scope", ["project", "ada"])
def test_a_run_that_a_tool_ended_is_gone_on_counting_by_the_next(
    tmp_path: Path, scope: str
) -> None:
    watch = Watch(monitor(tmp_path), "test", scope)
    first = watch.of("a")
    watch.ended("a", ToolCall("run_tests"), ValueError("no price for 'kiwi'"))
    assert watch.of("b") is first
    assert watch.of("c") is not first


def test_where_each_has_signs_of_its_own_the_next_one_is_counted_by_itself(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    first = watch.of("a")
    watch.ended("a", ToolCall("run_tests"), ValueError("no price for 'kiwi'"))
    assert watch.of("b") is not first


def test_where_there_are_others_the_next_one_is_counted_by_itself(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test", "project")
    watch.of("somebody else")
    first = watch.of("a")
    watch.ended("a", ToolCall("run_tests"), ValueError("no price for 'kiwi'"))
    assert watch.of("b") is not first
