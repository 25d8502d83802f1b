"""Whose signs a conversation is told: in no request stands what another person's failures say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from typing_extensions import TypedDict

import loki
from loki.adapters.claude_agent_sdk import Hooks
from loki.adapters.conversation import MOST_SCOPES, SCOPES, Watch, close, name_of
from loki.adapters.langchain import LokiMiddleware
from loki.adapters.langgraph import LokiGraph
from loki.adapters.openai_agents import LokiRunner
from loki.adapters.pydantic_ai import LokiCapability
from loki.decision.monitor.tool_call import ToolCall
from loki.memory.tool_failure import ToolFailures
from support.framework_agents import Call, monitor

ADA, BOB = "ada@example.com", "bob@example.com"
TRIES = 4


def said(user: str) -> str:
    return (
        "exit code 1\nFAILED test_mail.py::test_send - ValueError: no mailbox for "
        f"{user} in mail.toml\n1 failed in 0.02s"
    )


def step(number: int) -> list[Call] | str:
    """What each model says as the number-th in a conversation."""
    if number >= 2 * TRIES:
        return "I do not know"
    if number % 2:
        return [("run_tests", {})]
    return [("write_file", {"path": "mail.toml", "content": f"{number}"})]


class Service:
    """An agent for many users; what its model was sent in each of its runs."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.monitor, self.more = monitor(folder), more
        self.user, self.sent, self.first = "", "", ""

    async def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        return f"wrote {len(content)} characters to {path}"

    async def run_tests(self) -> str:
        """Run the tests."""
        return said(self.user)

    @property
    def tools(self) -> list[Any]:
        return [self.write_file, self.run_tests]

    def answer(self, number: int, sent: Any) -> list[Call] | str:
        self.sent += str(sent)
        self.first = self.first or self.sent
        return step(number)


def by_pydantic_ai(service: Service) -> tuple[Callable[[str], Awaitable[Any]], Any]:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        found = service.answer(number, messages)
        if isinstance(found, str):
            return ModelResponse([TextPart(found)])
        return ModelResponse([ToolCallPart(name, args) for name, args in found])

    ours = LokiCapability(service.monitor, **service.more)
    made = Agent(FunctionModel(answer), tools=service.tools, capabilities=[ours], deps_type=str)
    return lambda user: made.run("Do it", deps=user), ours


class Model(BaseChatModel):
    """A chat model that says what the service says."""

    service: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        number = sum(isinstance(one, AIMessage) for one in messages)
        found = self.service.answer(number, messages)
        message = AIMessage(found if isinstance(found, str) else "")
        if not isinstance(found, str):  # numbered anew in each conversation, as some models do
            message.tool_calls = [
                {"name": name, "args": args, "id": f"call-{number}", "type": "tool_call"}
                for name, args in found
            ]
        return ChatResult(generations=[ChatGeneration(message=message)])


class Context(TypedDict):
    user: str


def by_langchain(service: Service) -> tuple[Callable[[str], Awaitable[Any]], Any]:
    ours = LokiMiddleware(service.monitor, **service.more)
    tools = [StructuredTool.from_function(coroutine=one) for one in service.tools]
    made: Any = create_agent(
        Model(service=service), tools, middleware=[ours], context_schema=Context
    )
    return lambda user: made.ainvoke(
        {"messages": [("user", "Do it")]}, context={"user": user}
    ), ours


class State(TypedDict):
    messages: list[Any]


def by_langgraph(service: Service) -> tuple[Callable[[str], Awaitable[Any]], Any]:
    """A graph whose messages have no ids: nobody has given them any."""
    ours, model = LokiGraph(service.monitor, **service.more), Model(service=service)

    async def ask(state: State) -> Any:
        return {"messages": [*state["messages"], await model.ainvoke(state["messages"])]}

    tools = [StructuredTool.from_function(coroutine=one) for one in service.tools]
    node = ToolNode(tools, **ours.around_tools)

    async def use(state: State) -> Any:
        return {"messages": [*state["messages"], *(await node.ainvoke(state))["messages"]]}

    graph = StateGraph(State, context_schema=Context)
    graph.add_node("model", ours.node("api/openai/gpt", ask))
    graph.add_node("tools", use)
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    graph.add_edge("tools", "model")
    made: Any = graph.compile()

    def run(user: str) -> Awaitable[Any]:
        asked: Any = {"messages": [HumanMessage("Do it")]}
        found: Awaitable[Any] = made.ainvoke(asked, {"recursion_limit": 99}, context={"user": user})
        return found

    return run, ours


def of_openai(service: Service) -> agents.Agent[Any]:
    agents.set_tracing_disabled(True)

    def answer(asked: Any) -> ModelStep:
        items = [] if isinstance(asked.input, str) else asked.input
        number = sum(one.get("type") == "function_call" for one in items)
        found = service.answer(number, (asked.system_instructions, items))
        if isinstance(found, str):
            return ModelStep([assistant_message(found)])
        return ModelStep([function_call(n, a, call_id=f"call-{number}") for n, a in found])

    model = ScriptedModel([ModelStep.respond(answer)] * 500)
    tools: list[Any] = [agents.function_tool(one) for one in service.tools]
    return agents.Agent("one", model=model, tools=tools)


def by_openai_agents(service: Service) -> tuple[Callable[[str], Awaitable[Any]], Any]:
    ours, made = LokiRunner(service.monitor, **service.more), of_openai(service)
    return lambda user: ours.run(made, "Do it", max_turns=30, context=user), ours


def by_their_runner(service: Service) -> tuple[Callable[[str], Awaitable[Any]], Any]:
    """The SDK's own runner with a watched agent, each run in a task of its own, as servers do it."""
    ours, made = LokiRunner(service.monitor, **service.more), of_openai(service)

    def run(user: str) -> Awaitable[Any]:
        watched, config = ours.agent(made), ours.config()
        work = agents.Runner.run(watched, "Do it", max_turns=30, context=user, run_config=config)
        return asyncio.get_running_loop().create_task(work)

    return run, ours


def by_claude(service: Service) -> tuple[Callable[[str], Awaitable[Any]], Any]:
    """Hooks of a client for each user, called as Claude Code calls them."""
    ours = Hooks(service.monitor, **service.more)

    async def run(user: str) -> None:
        more: Any = {"signal": None}
        hooks: Any = Hooks(service.monitor, **service.more).by_event()
        known: Any = {"session_id": f"session of {user}"}
        for number in range(2 * TRIES + 1):
            given = {"hook_event_name": "UserPromptSubmit", **known, "prompt": "Do it"}
            told = [await hooks["UserPromptSubmit"](given, None, more)]
            found = service.answer(number, told)
            for name, args in [] if isinstance(found, str) else found:
                call = {"tool_name": name, "tool_input": args, "tool_use_id": f"call-{number}"}
                given = {"hook_event_name": "PreToolUse", **known, **call}
                service.sent += str(await hooks["PreToolUse"](given, None, more))
                event = "PostToolUseFailure" if name == "run_tests" else "PostToolUse"
                result: Any = {"tool_response": "ok", "error": said(service.user)}
                del result["error" if event == "PostToolUse" else "tool_response"]
                given = {"hook_event_name": event, **known, **call, **result}
                service.sent += str(await hooks[event](given, None, more))

    return run, ours


WAYS = [by_pydantic_ai, by_langchain, by_langgraph, by_openai_agents, by_their_runner, by_claude]
EACH = pytest.mark.parametrize("way", WAYS)
Way = Callable[[Service], "tuple[Callable[[str], Awaitable[Any]], Any]"]

USERS: dict[Any, Any] = {
    by_pydantic_ai: lambda ctx: ctx.deps,
    by_langchain: lambda runtime: runtime.context["user"],
    by_langgraph: lambda runtime: runtime.context["user"],
    by_openai_agents: lambda context: context,
}
"""How a user is told from a run, where frameworks have a context for that."""


class Sent(str):
    """What a run's model was sent, and in its first request."""

    first: str


def runs(service: Service, way: Way, *users: str) -> list[Sent]:
    """What each run's model was sent."""

    async def go() -> list[Sent]:
        run, _ = way(service)
        found = []
        for user in users:
            service.user, service.sent, service.first = user, "", ""
            await run(user)
            found.append(Sent(service.sent))
            found[-1].first = service.first
        return found

    return asyncio.run(go())


@EACH
def test_no_request_has_another_ones_data(tmp_path: Path, way: Way) -> None:
    ada, bob = runs(Service(tmp_path), way, ADA, BOB)
    assert ADA in ada
    assert "led there" in ada, "it is told of its own"
    assert ADA not in bob
    assert "led there" in bob
    assert not list((tmp_path / ".loki").glob("run/*")), "nothing is kept for others"


@EACH
def test_a_project_tells_all_that_are_of_it(tmp_path: Path, way: Way) -> None:
    ada, bob = runs(Service(tmp_path, scope="project"), way, ADA, BOB)
    assert ADA in ada
    assert ADA in bob


@EACH
def test_runs_of_one_user_are_told_of_each_other(tmp_path: Path, way: Way) -> None:
    first = runs(Service(tmp_path, scope=ADA), way, ADA)[0]
    assert "led there" in first
    mine = Service(tmp_path, scope=ADA)
    assert "led there" in runs(mine, way, "")[0].first, "from the first request on"
    assert ADA not in runs(Service(tmp_path, scope=BOB), way, BOB)[0]


@pytest.mark.parametrize("way", list(USERS))
def test_a_user_may_be_told_from_the_run(tmp_path: Path, way: Way) -> None:
    users = ADA, BOB, ADA, ""
    ada, bob, again, nobody = runs(Service(tmp_path, scope=USERS[way]), way, *users)
    assert "led there" not in ada.first
    assert ADA not in bob
    assert "led there" in again.first
    assert ADA not in nobody
    assert BOB not in nobody


@EACH
@pytest.mark.parametrize("scope", ["project", ADA])
def test_signs_are_closed(tmp_path: Path, way: Way, scope: str) -> None:
    service = Service(tmp_path, scope=scope)
    _, ours = way(service)
    runs(service, way, ADA)
    ours.close()
    assert "led there" not in runs(service, way, "")[0].first


def test_signs_of_a_conversation_or_a_user_are_closed_by_name(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test", lambda user: user)
    for conversation, user in (("1", ADA), ("2", BOB), ("3", "")):
        watch.scoped(conversation, user)
        loop(watch, conversation)
    everybody = (("4", ADA), ("5", BOB), ("3", ""))
    assert all(watch.instructions(*one) for one in everybody)
    watch.close(ADA)
    assert [bool(watch.instructions(*one)) for one in everybody] == [False, True, True]
    close("3", tmp_path)
    assert [bool(watch.instructions(*one)) for one in everybody] == [False, True, False]
    watch.close()
    assert not any(watch.instructions(*one) for one in everybody)


def loop(watch: Watch, of: str, tries: int = TRIES) -> list[str]:
    kinds: list[str] = []
    for number in range(tries):
        call = ToolCall("write_file", {"path": "mail.toml", "content": str(number)})
        watch.received(of, call, "wrote")
        kinds.append(watch.received(of, ToolCall("run_tests", id=f"{number}"), said(of)).kind)
    return kinds


def test_who_is_closed_is_counted_anew(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    assert loop(watch, "a", 2) == ["none", "nudge"]
    watch.close("a")
    assert loop(watch, "a", 2) == ["none", "nudge"]


def test_of_a_conversation_that_nobody_knows_nothing_is_told(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    loop(watch, "")
    assert watch.instructions() == ""
    named = Watch(monitor(tmp_path), "test", ADA)
    loop(named, "")
    assert "led there" in named.instructions()


def test_a_name_is_a_name_whatever_it_is() -> None:
    """Else a user called `project` would be told of everybody."""
    assert name_of(lambda user: user, "1", "project") == "user project"
    assert name_of(lambda user: user, "1", None) == "conversation 1"
    assert name_of("project", "1") is None


def test_an_outage_tells_others_only_that_there_is_one(tmp_path: Path) -> None:
    url = {"url": "https://mail.example.com/send"}
    refused = {}
    for scope in ("conversation", "project"):
        watch = Watch(monitor(tmp_path), "test", scope)
        for number in range(3):
            call = ToolCall("fetch_page", url, id=f"{number}")
            watch.received("a", call, f"Error: connect ECONNREFUSED while sending to {ADA}")
        refused[scope] = watch.before("b", ToolCall("fetch_page", url)).text
    assert "left alone" in refused["conversation"]
    assert ADA not in refused["conversation"]
    assert ADA in refused["project"]


def test_secrets_are_masked(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    for number in range(3):
        key = {"path": "mail.toml", "content": f"password=hunter{number}secret"}
        watch.received("a", ToolCall("write_file", key), "wrote")
        watch.received("a", ToolCall("run_tests"), said("a"))
    assert "led there" in watch.instructions("a")
    assert "hunter" not in watch.instructions("a")


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    watch = Watch(monitor(tmp_path), "test")
    loop(watch, "first")
    for number in range(MOST_SCOPES):
        SCOPES.signs(tmp_path.resolve(), f"conversation {number}", watch.monitor.rules.signs)
    assert (
        str(SCOPES.signs(tmp_path.resolve(), "conversation first", watch.monitor.rules.signs)) == ""
    )


def test_what_fails_is_recorded_for_the_owner(tmp_path: Path) -> None:
    """The log is the project's, and no request has it."""
    runs(Service(tmp_path), by_pydantic_ai, ADA)
    assert len(list(ToolFailures(loki.Workspace(tmp_path).store))) == TRIES
