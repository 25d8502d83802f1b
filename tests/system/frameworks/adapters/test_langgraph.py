"""Nodes of LangGraph's graphs with loki round them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import SecretStr

import loki
from loki.adapters.langgraph import LokiGraph
from loki.testing import ManualClock
from support.framework_agents import CHECK, ZERO, Says, ScriptedChat, edit, monitor, tries
from support.llm_service import LLMService, Said, failed

HI: Any = {"messages": [HumanMessage("Fix it", id="0")]}


def graph(kept: LokiGraph, script: ScriptedChat, check: Says, *, is_async: bool) -> Any:
    """A graph of a model and its tools, as a person writes it."""

    def ask(state: MessagesState) -> Any:
        return {"messages": [script.invoke(state["messages"])]}

    async def aask(state: MessagesState, config: RunnableConfig) -> Any:
        assert config["metadata"] is not None
        return {"messages": [await script.ainvoke(state["messages"])]}

    def write_file(path: str, content: str) -> str:
        """Write a file."""
        return f"wrote {len(content)} characters to {path}"

    def run_tests() -> Any:
        """Run the tests."""
        return check()

    def route(state: MessagesState) -> str:
        last = state["messages"][-1]
        return "tools" if isinstance(last, AIMessage) and last.tool_calls else END

    made = StateGraph(MessagesState)
    made.add_node("model", kept.node("api/openai/gpt", aask if is_async else ask))
    made.add_node(
        "tools", ToolNode([write_file, run_tests], handle_tool_errors=True, **kept.around_tools)
    )
    made.add_edge(START, "model")
    made.add_conditional_edges("model", route)
    made.add_edge("tools", "model")
    return made.compile()


def run(made: Any, *, is_async: bool) -> list[Any]:
    return list((asyncio.run(made.ainvoke(HI)) if is_async else made.invoke(HI))["messages"])


BOTH = pytest.mark.parametrize("is_async", [False, True])


@BOTH
def test_a_failure_that_comes_back_is_named(tmp_path: Path, is_async: bool) -> None:
    script = ScriptedChat.of([*tries(2), [edit("another way")], "I do not know"])
    made = graph(LokiGraph(monitor(tmp_path)), script, Says(ZERO), is_async=is_async)
    messages = run(made, is_async=is_async)
    heard = [str(one.content) for one in script.sent[-1]]
    assert len([text for text in heard if "led nowhere" in text]) == 1
    assert not any("led nowhere" in str(one.content) for one in messages)


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        ZERO,
        {"returncode": 1, "stdout": ZERO},
        ZeroDivisionError("division by zero"),
        ValueError("no price for 'kiwi'"),
    ],
)
def test_a_stop_reaches_the_caller(tmp_path: Path, is_async: bool, answer: Any) -> None:
    """Also out of a node that turns its tools' errors into messages."""
    script = ScriptedChat.of(tries(20))
    made = graph(LokiGraph(monitor(tmp_path)), script, Says(answer), is_async=is_async)
    with pytest.raises(loki.AgentStuck):
        run(made, is_async=is_async)
    assert len(script.sent) == 12


@BOTH
def test_a_healthy_graph_hears_nothing(tmp_path: Path, is_async: bool) -> None:
    script = ScriptedChat.of([[CHECK], [edit()], "Done"])
    check = Says("2 passed")
    messages = run(graph(LokiGraph(tmp_path), script, check, is_async=is_async), is_async=is_async)
    assert [str(one.content) for one in messages][2:] == [
        "2 passed",
        "",
        "wrote 8 characters to stats.py",
        "Done",
    ]


@BOTH
def test_a_node_waits_for_an_outage_to_end(tmp_path: Path, is_async: bool) -> None:
    clock = ManualClock()
    kept = LokiGraph(monitor(tmp_path, clock))
    with LLMService([failed(503), failed(503), Said("Hi")]) as service:
        url = service.url + "/v1"
        model = ChatOpenAI(model="gpt", base_url=url, api_key=SecretStr("k"), max_retries=0)

        def ask(state: Any) -> Any:
            return {"messages": [model.invoke(state["messages"])]}

        async def aask(state: Any) -> Any:
            return {"messages": [await model.ainvoke(state["messages"])]}

        made = StateGraph(MessagesState)
        made.add_node("model", kept.node("api/openai/gpt", aask if is_async else ask))
        made.add_edge(START, "model")
        assert run(made.compile(), is_async=is_async)[-1].content == "Hi"
        assert len(service.received) == 3


def test_a_state_without_messages_is_handed_on(tmp_path: Path) -> None:
    kept = LokiGraph(monitor(tmp_path))
    node = kept.node("api/search", lambda state, *, more=1: (state, more))
    assert node({"query": "x"}, more=2) == ({"query": "x"}, 2)
    assert node("text") == ("text", 1)


def test_a_prompt_of_all_conversations_does_not_make_them_one(tmp_path: Path) -> None:
    """The same message begins each of them: `add_messages` gives it an id once."""
    prompt = SystemMessage("You mend tests.")
    kept = LokiGraph(monitor(tmp_path))
    for _ in range(5):
        script = ScriptedChat.of([[CHECK], [edit()], [CHECK], "Done"])
        made = graph(kept, script, Says(ZERO, "exit code 0\n1 passed"), is_async=False)
        made.invoke({"messages": [prompt, HumanMessage("Fix it")]})
        assert "came back" not in str(script.sent)
