"""The runner in the OpenAI Agents SDK's own runs: what agents are told, and when they are stopped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, SQLiteSession, handoff

import loki
from loki.adapters.openai_agents import LokiRunner
from support.framework_agents import CHECK, PASSED, TYPE, ZERO, Call, Says, edit, monitor, tries
from support.openai_agents import Steps, agent, asked, outputs, run, scripted


def test_a_repeat_is_named_in_the_result_of_the_tool_and_then_stopped(tmp_path: Path) -> None:
    fixer = agent(tries(9), Says(ZERO))
    with pytest.raises(loki.AgentStuck) as stuck:
        run(LokiRunner(monitor(tmp_path)), fixer)
    assert stuck.value.failure is not None
    assert (stuck.value.count, stuck.value.failure.error_type) == (6, "ZeroDivisionError")
    calls = asked(fixer)
    assert len(calls) == 12  # six tries of two requests; the thirteenth was never sent
    seen = outputs(calls[-1])
    assert [text.startswith(ZERO) for text in seen] == [False, True] * 5 + [False]
    assert ["led there" in text for text in seen[1::2]] == [False] + [True] * 4
    assert ["the very same change" in text for text in seen[::2]] == [False] * 2 + [True] * 4


def test_signs_stand_once_in_each_request_and_never_in_the_history(tmp_path: Path) -> None:
    fixer = agent([*tries(3), "I cannot fix it."], Says(ZERO))
    result = run(LokiRunner(monitor(tmp_path)), fixer)
    told = [call.system_instructions for call in asked(fixer)]
    assert told[:4] == ["Fix it."] * 4
    assert all(text.count("ZeroDivisionError") == 1 for text in told[4:])
    assert "bind" not in json.dumps(result.to_input_list())


def test_what_another_run_ran_into_is_remembered(tmp_path: Path) -> None:
    run(LokiRunner(monitor(tmp_path), "project"), agent([*tries(3), "I give up."], Says(ZERO)))
    next_one = agent(["Nothing to do."], Says(ZERO))
    run(LokiRunner(monitor(tmp_path), "project"), next_one)
    assert "ZeroDivisionError" in asked(next_one)[0].system_instructions


def test_the_turn_of_two_failures_is_seen(tmp_path: Path) -> None:
    fixer = agent([*tries(4), "I give up."], Says(*[ZERO, TYPE] * 6))
    run(LokiRunner(monitor(tmp_path)), fixer)
    last = asked(fixer)[-1]
    assert ["came back" in text for text in outputs(last)[1::2]] == [False, False, True, True]
    assert "come back in turn" in last.system_instructions


def test_arguments_that_do_not_fit_are_named_and_never_stopped(tmp_path: Path) -> None:
    wrong: list[Call] = [("write_file", {"file": "stats.py"})]
    fixer = agent([*[wrong] * 15, "I give up."], Says(ZERO))
    assert run(LokiRunner(monitor(tmp_path)), fixer).final_output == "I give up."
    named = ["was not accepted" in text for text in outputs(asked(fixer)[-1])]
    assert named == [False] + [True] * 14


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_healthy_run_is_unchanged(is_streamed: bool, tmp_path: Path) -> None:
    async def of(runner: Any) -> tuple[Any, ...]:
        steps: Steps = [[edit()], [CHECK], [edit("return 1")], [CHECK], "All tests pass."]
        fixer, events = agent(steps, Says(ZERO, PASSED)), []
        if is_streamed:
            result = runner.run_streamed(fixer, "Fix it")
            events = [event.type async for event in result.stream_events()]
        else:
            result = await runner.run(fixer, "Fix it")
        calls = [(call.system_instructions, call.input) for call in asked(fixer)]
        usage = result.context_wrapper.usage.requests
        return result.final_output, result.to_input_list(), calls, usage, events

    assert asyncio.run(of(LokiRunner(monitor(tmp_path)))) == asyncio.run(of(Runner))


def test_a_streamed_run_is_stopped_out_of_its_events(tmp_path: Path) -> None:
    async def stream() -> int:
        fixer = agent(tries(9), Says(ZERO))
        result = LokiRunner(monitor(tmp_path)).run_streamed(fixer, "Fix it", max_turns=30)
        with pytest.raises(loki.AgentStuck):
            async for _ in result.stream_events():
                pass
        return len(asked(fixer))

    assert asyncio.run(stream()) == 12


def test_a_run_without_a_loop_is_stopped(tmp_path: Path) -> None:
    fixer = agent(tries(9), Says(ZERO))
    loop = asyncio.new_event_loop()  # the SDK would make one, and leave it open
    asyncio.set_event_loop(loop)
    try:
        with pytest.raises(loki.AgentStuck):
            LokiRunner(monitor(tmp_path)).run_sync(fixer, "Fix it", max_turns=30)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_agents_that_are_handed_over_to_are_watched_also_in_a_ring(tmp_path: Path) -> None:
    second = agent(tries(9), Says(ZERO))
    second.name = "second"
    first = Agent(
        "first", model=scripted([[("transfer_to_second", {})]], "first"), handoffs=[second]
    )
    second.handoffs = [handoff(first)]
    with pytest.raises(loki.AgentStuck):
        run(LokiRunner(monitor(tmp_path)), first)
    assert len(asked(second)) == 12
    check: Any = second.tools[1]
    assert check.tool_output_guardrails is None  # a copy was watched


def test_an_agent_of_a_result_goes_on_watched_once(tmp_path: Path) -> None:
    runner = LokiRunner(monitor(tmp_path))
    result = run(runner, agent(["Nothing to do."], Says(PASSED)))
    assert runner.agent(result.last_agent) is result.last_agent


def test_calls_made_at_once_all_have_results_where_it_stops(tmp_path: Path) -> None:
    both: list[Call] = [edit(), CHECK]
    session = SQLiteSession("s")
    # Which of two calls made at once ends first is chance: a check may see the project before its edit.
    fixer = agent([*[both] * 8, "Still failing."], Says(ZERO))
    with pytest.raises(loki.AgentStuck):
        run(LokiRunner(monitor(tmp_path)), fixer, session=session)
    items: list[Any] = asyncio.run(session.get_items())
    kinds = [item.get("type") for item in items]
    assert kinds.count("function_call") == kinds.count("function_call_output") >= 8
