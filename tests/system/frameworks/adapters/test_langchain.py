"""The middleware in LangChain's own agents: what they are told, and when they are stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

import loki
from loki.adapters.langchain import LokiMiddleware
from support.framework_agents import (
    CHECK,
    PASSED,
    TYPE,
    ZERO,
    Call,
    Says,
    ScriptedChat,
    edit,
    monitor,
    tries,
)

HI: dict[str, Any] = {"messages": [HumanMessage("Fix it", id="0")]}


def tools(check: Callable[[], Any]) -> list[BaseTool]:
    def write_file(path: str, content: str) -> str:
        """Write a file."""
        return f"wrote {len(content)} characters to {path}"

    def run_tests() -> Any:
        """Run the tests."""
        return check()

    return [
        StructuredTool.from_function(write_file),
        StructuredTool.from_function(run_tests, handle_tool_error=True),
    ]


def agent(script: ScriptedChat, check: Callable[[], Any], *middleware: Any, **more: Any) -> Any:
    return create_agent(script, tools(check), middleware=middleware, **more)


def by_invoke(made: Any, **more: Any) -> list[AnyMessage]:
    return list(made.invoke(HI, **more)["messages"])


def by_ainvoke(made: Any, **more: Any) -> list[AnyMessage]:
    return list(asyncio.run(made.ainvoke(HI, **more))["messages"])


def by_stream(made: Any, **more: Any) -> list[AnyMessage]:
    states = list(made.stream(HI, stream_mode="values", **more))
    return list(states[-1]["messages"])


def by_tokens(made: Any, **more: Any) -> list[AnyMessage]:
    async def go() -> list[AnyMessage]:
        modes = ["messages", "values"]
        states = [
            s async for mode, s in made.astream(HI, stream_mode=modes, **more) if mode == "values"
        ]
        return list(states[-1]["messages"])

    return asyncio.run(go())


WAYS = [by_invoke, by_ainvoke, by_stream, by_tokens]
EACH = pytest.mark.parametrize("way", WAYS)
TWO = pytest.mark.parametrize("way", WAYS[:2])
Way = Callable[..., "list[AnyMessage]"]


def plain(messages: Sequence[AnyMessage]) -> str:
    """Messages without what differs from run to run."""
    return json.dumps([{**one.model_dump(), "id": ""} for one in messages], default=repr)


def told(messages: Sequence[AnyMessage]) -> list[str]:
    """What a model is told after the prompt."""
    return [str(one.content) for one in messages[1:] if not isinstance(one, AIMessage)]


@EACH
@pytest.mark.parametrize("check", [Says(ZERO, PASSED), Says({"passed": 2})])
def test_a_healthy_run_is_the_same_to_the_byte(tmp_path: Path, way: Way, check: Says) -> None:
    seen = []
    for middleware in ([], [LokiMiddleware(monitor(tmp_path))]):
        check.calls = 0
        script = ScriptedChat.of([[CHECK], [edit(), edit("b")], [CHECK], "Done"])
        messages = way(agent(script, check, *middleware, system_prompt="You fix code."))
        seen.append((plain(messages), [plain(one) for one in script.sent]))
    assert seen[0] == seen[1]


@EACH
def test_a_failure_that_comes_back_is_named(tmp_path: Path, way: Way) -> None:
    script = ScriptedChat.of([*tries(2), [edit("another way")], "I do not know"])
    messages = way(agent(script, Says(ZERO), LokiMiddleware(monitor(tmp_path))))
    heard = told(script.sent[-1])
    assert heard[1] == ZERO
    assert heard[3].startswith(ZERO)
    assert "came back" in heard[3]
    sign = heard[4]
    assert "led nowhere" in sign
    assert "write_file stats.py" in sign
    assert [text for text in heard if "led nowhere" in text] == [sign]
    assert sign not in told(messages), "the sign is for requests alone"


def test_a_sign_keeps_its_place_for_the_prompt_cache(tmp_path: Path) -> None:
    script = ScriptedChat.of([*tries(2), [edit("a")], [edit("b")], "I do not know"])
    by_invoke(agent(script, Says(ZERO), LokiMiddleware(monitor(tmp_path))))
    earlier, later = script.sent[-2:]
    assert plain(later[: len(earlier)]) == plain(earlier)


def test_no_sign_stands_between_a_call_and_its_result(tmp_path: Path) -> None:
    """A middleware that shortens the history moves all that follows."""

    class Shortens(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            messages = request.messages
            return handler(request.override(messages=[messages[0], *messages[-2:]]))

    script = ScriptedChat.of([*tries(2), *[[edit("a")]] * 3, "I do not know"])
    by_invoke(agent(script, Says(ZERO), Shortens(), LokiMiddleware(monitor(tmp_path))))
    for sent in script.sent:
        for before, after in pairwise(sent):
            assert not isinstance(after, ToolMessage) or isinstance(
                before, (AIMessage, ToolMessage)
            )


@EACH
def test_who_goes_on_all_the_same_is_stopped(tmp_path: Path, way: Way) -> None:
    script = ScriptedChat.of(tries(20))
    with pytest.raises(loki.AgentStuck) as stuck:
        way(agent(script, Says(ZERO), LokiMiddleware(monitor(tmp_path))))
    assert stuck.value.count == 6
    assert "ZeroDivisionError" in str(stuck.value.failure)
    assert len(script.sent) == 12


@TWO
def test_failures_in_turn_are_seen(tmp_path: Path, way: Way) -> None:
    check = Says(*[ZERO, TYPE] * 20)
    script = ScriptedChat.of([*tries(4), "I do not know"])
    way(agent(script, check, LokiMiddleware(monitor(tmp_path))))
    for failure in (ZERO, TYPE):
        first, second = (text for text in told(script.sent[-1]) if text.startswith(failure))
        assert first == failure
        assert "came back" in second
    assert "come back in turn" in str(script.sent[-1]), "the signs say so"


@TWO
def test_a_person_can_go_on_where_it_was_stopped(tmp_path: Path, way: Way) -> None:
    """The thread is whole: each call has its result."""
    script = ScriptedChat.of([*tries(6), "I wait for you"])
    made = agent(
        script, Says(ZERO), LokiMiddleware(monitor(tmp_path)), checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    with pytest.raises(loki.AgentStuck):
        way(made, config=config)
    kept = made.get_state(config).values["messages"]
    assert isinstance(kept[-1], ToolMessage)
    assert way(made, config=config)[-1].content == "I wait for you"


@TWO
@pytest.mark.parametrize(
    "answer",
    [
        ToolException("ZeroDivisionError: division by zero in stats.py"),
        {"returncode": 1, "stdout": ZERO},
        [{"type": "text", "text": ZERO}],
        Command(update={"messages": []}),
        ZeroDivisionError("division by zero"),
    ],
)
def test_each_way_to_fail_is_recognized(tmp_path: Path, way: Way, answer: Any) -> None:
    script = ScriptedChat.of([*tries(2), "I do not know"])
    watched = monitor(tmp_path)
    made = agent(script, Says(answer), LokiMiddleware(watched, scope="project"))
    if isinstance(answer, ZeroDivisionError):  # LangChain ends a run at any other exception
        for _ in range(3):
            script.sent.clear()
            with pytest.raises(ZeroDivisionError):
                way(made)
        assert "led nowhere" in told(script.sent[-1])[0]
    elif isinstance(answer, Command):  # what it would do to the graph is no failure
        with pytest.raises(ValueError, match="ToolMessage"):
            way(made)
    else:
        way(made)
        assert any("came back" in text for text in told(script.sent[-1]))
        assert "ZeroDivisionError" in watched.instructions()


@TWO
@pytest.mark.parametrize("is_outer", [True, False])
@pytest.mark.parametrize(
    "middleware",
    [
        ToolErrorMiddleware(lambda error, _: str(error)),
        ToolRetryMiddleware(max_retries=2, initial_delay=0),
        ToolRetryMiddleware(max_retries=2, initial_delay=0, on_failure=lambda _: "Sorry"),
    ],
)
def test_exceptions_may_be_made_messages_by_others(
    tmp_path: Path, way: Way, middleware: Any, is_outer: bool
) -> None:
    """What they make of a stop is no way round it, and what they try again is no repeat of the agent's."""
    check = Says(ValueError("the section 'server' is missing in settings.toml"))
    script, ours = ScriptedChat.of(tries(20)), LokiMiddleware(monitor(tmp_path))
    both = [middleware, ours] if is_outer else [ours, middleware]
    with pytest.raises(loki.AgentStuck) as stuck:
        way(agent(script, check, *both))
    runs = 1 if isinstance(middleware, ToolErrorMiddleware) else 3
    assert stuck.value.count == 6
    assert len(script.sent) == 12
    assert check.calls <= 6 * runs
    if is_outer and runs == 3:
        assert check.calls == 5 * runs + 1  # the one that it was stopped at was not tried again


@TWO
@pytest.mark.parametrize("is_outer", [True, False])
@pytest.mark.parametrize("on_failure", ["continue", "error"])
def test_who_asks_the_model_again_does_not_get_round_a_stop(
    tmp_path: Path, way: Way, is_outer: bool, on_failure: Any
) -> None:
    script, ours = ScriptedChat.of(tries(20)), LokiMiddleware(monitor(tmp_path))
    other = ModelRetryMiddleware(max_retries=2, initial_delay=0, on_failure=on_failure)
    with pytest.raises(loki.AgentStuck):
        way(agent(script, Says(ZERO), *([other, ours] if is_outer else [ours, other])))
    assert len(script.sent) == 12


def test_another_model_does_not_get_round_a_stop(tmp_path: Path) -> None:
    script, other = ScriptedChat.of(tries(20)), ScriptedChat.of(["All is well"])
    both = ModelFallbackMiddleware(other), LokiMiddleware(monitor(tmp_path))
    with pytest.raises(loki.AgentStuck):
        by_invoke(agent(script, Says(ZERO), *both))
    assert len(script.sent) == 12
    assert other.sent == []


@TWO
def test_a_service_that_fails_is_not_hammered_by_who_tries_again(tmp_path: Path, way: Way) -> None:
    fetch = Says(ConnectionError("connect ECONNREFUSED 203.0.113.7:443"))

    def fetch_page(url: str) -> str:
        """Fetch a page."""
        return str(fetch())

    calls: list[Call] = [("fetch_page", {"url": "https://docs.example.com/a"})]
    script = ScriptedChat.of([*[calls] * 6, "I do not know"])
    both = ToolRetryMiddleware(max_retries=5, initial_delay=0), LokiMiddleware(monitor(tmp_path))
    way(create_agent(script, [fetch_page], middleware=both))
    assert fetch.calls == 3


def test_arguments_that_do_not_fit_are_named_and_never_stopped(tmp_path: Path) -> None:
    wrong: list[Call] = [("write_file", {"file": "stats.py"})]
    script = ScriptedChat.of([*[wrong] * 15, "I do not know"])
    messages = by_invoke(
        agent(script, Says(ZERO), LokiMiddleware(monitor(tmp_path))), config={"recursion_limit": 99}
    )
    assert messages[-1].content == "I do not know"
    assert "was not accepted" not in told(script.sent[-1])[0]
    assert all("was not accepted" in text for text in told(script.sent[-1])[1:])


def test_a_later_run_begins_with_what_an_earlier_one_learned(tmp_path: Path) -> None:
    def watched() -> LokiMiddleware:
        return LokiMiddleware(monitor(tmp_path), scope="project")

    with pytest.raises(loki.AgentStuck):
        by_invoke(agent(ScriptedChat.of(tries(9)), Says(ZERO), watched()))
    script = ScriptedChat.of(["Let me think"])
    by_invoke(agent(script, Says(ZERO), watched()))
    assert "write_file stats.py" in told(script.sent[0])[0]


@TWO
def test_calls_in_parallel_keep_their_results(tmp_path: Path, way: Way) -> None:
    calls = [edit(), CHECK, ("write_file", {"path": "b.py", "content": ""})]
    script = ScriptedChat.of([calls, calls, "I do not know"])
    messages = way(agent(script, Says(ZERO), LokiMiddleware(monitor(tmp_path))))
    returned = [one for one in messages if isinstance(one, ToolMessage)]
    assert [one.tool_call_id for one in returned] == [f"{n}-{i}" for n in (1, 2) for i in (0, 1, 2)]
    assert all(str(one.content).startswith((ZERO, "wrote")) for one in returned)


@TWO
def test_a_service_that_is_down_is_left_alone(tmp_path: Path, way: Way) -> None:
    fetch = Says("Error: connect ECONNREFUSED 203.0.113.7:443")

    def fetch_page(url: str) -> str:
        """Fetch a page."""
        return str(fetch())

    calls: list[Call] = [("fetch_page", {"url": "https://docs.example.com/a"})]
    script = ScriptedChat.of([*[calls] * 6, "I do not know"])
    way(create_agent(script, [fetch_page], middleware=[LokiMiddleware(monitor(tmp_path))]))
    assert fetch.calls == 3
    assert "docs.example.com" in told(script.sent[-1])[-1]
    assert script.sent[-1][-1].status == "error"


@EACH
def test_a_claim_without_a_check_is_refused_once(tmp_path: Path, way: Way) -> None:
    script = ScriptedChat.of([[CHECK], [edit()], "All tests pass now.", "All tests pass now."])
    messages = way(agent(script, Says(ZERO), LokiMiddleware(monitor(tmp_path))))
    assert messages[-1].content == "All tests pass now."
    assert len(script.sent) == 4
    assert "files were changed after the last run of tests" in told(script.sent[-1])[-1]


def test_a_question_to_a_person_is_no_failure(tmp_path: Path) -> None:
    def ask_person() -> str:
        """Ask."""
        return str(interrupt("Which branch?"))

    script = ScriptedChat.of([[("ask_person", {})], "Thanks"])
    made: Any = create_agent(
        script,
        [ask_person],
        middleware=[LokiMiddleware(monitor(tmp_path))],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    assert "__interrupt__" in made.invoke(HI, config)
    assert made.invoke(Command(resume="main"), config)["messages"][-1].content == "Thanks"
    assert not (tmp_path / ".loki/logs/tool-calls.jsonl").exists()


def test_langchains_own_fake_model_runs(tmp_path: Path) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Hello")]))
    made: Any = create_agent(model, middleware=[LokiMiddleware(tmp_path)])
    assert made.invoke(HI)["messages"][-1].content == "Hello"
