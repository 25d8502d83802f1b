"""The capability in pydantic-ai's own agents: what they are told, and when they are stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, ToolFailed, ToolReturn, UnexpectedModelBehavior
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests

import loki
from loki.adapters.pydantic_ai import LokiCapability
from support.framework_agents import CHECK, PASSED, TYPE, ZERO, Call, Says, edit, monitor, tries

Steps = Sequence["list[Call] | str"]


class Script:
    """A model that says its steps in turn: calls of tools, or last words; keeps what it was sent."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.sent: list[list[ModelMessage]] = []

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self.answer, stream_function=self.stream)

    def answer(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        step = self._next(messages)
        if isinstance(step, str):
            return ModelResponse([TextPart(step)])
        number = len(self.sent)
        return ModelResponse(
            [ToolCallPart(name, args, f"{number}-{i}") for i, (name, args) in enumerate(step)]
        )

    async def stream(
        self, messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        step = self._next(messages)
        if isinstance(step, str):
            yield step
            return
        for i, (name, args) in enumerate(step):
            yield {i: DeltaToolCall(name, json.dumps(args), tool_call_id=f"{len(self.sent)}-{i}")}

    def _next(self, messages: list[ModelMessage]) -> list[Call] | str:
        self.sent.append(messages)
        return self.steps[min(len(self.sent), len(self.steps)) - 1]


def agent(
    script: Script, check: Callable[[], Any], *capabilities: LokiCapability, **more: Any
) -> Agent[None, Any]:
    made = Agent(script.model, capabilities=capabilities, **more)

    @made.tool_plain
    def write_file(path: str, content: str) -> str:
        return f"wrote {len(content)} characters to {path}"

    @made.tool_plain(retries=9)
    def run_tests() -> Any:
        return check()

    return made


def ended(made: Agent[None, Any], prompt: str = "Fix it") -> AgentRunResult[Any]:
    """How a run ends."""
    return asyncio.run(made.run(prompt))


def told(messages: list[ModelMessage]) -> list[str]:
    """What a model is told after the prompt, as text."""
    parts = [part for one in messages if isinstance(one, ModelRequest) for part in one.parts]
    return [str(part.content) for part in parts[1:] if hasattr(part, "content")]


def plain(messages: Sequence[ModelMessage]) -> bytes:
    """Messages without what differs from run to run."""
    found = json.loads(ModelMessagesTypeAdapter.dump_json(list(messages)))

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            left = {"timestamp", "run_id", "conversation_id"}
            return {key: without(one) for key, one in value.items() if key not in left}
        return [without(one) for one in value] if isinstance(value, list) else value

    return json.dumps(without(found)).encode()


@pytest.mark.parametrize(
    "check", [Says(ZERO, PASSED), Says({"passed": 2}), Says(ToolReturn(PASSED))]
)
def test_a_healthy_run_is_the_same_to_the_byte(tmp_path: Path, check: Says) -> None:
    steps: Steps = [
        [CHECK],
        [edit(), ("write_file", {"path": "b", "content": ""})],
        [CHECK],
        "Done",
    ]
    seen = []
    for capabilities in ([], [LokiCapability(monitor(tmp_path))]):
        check.calls = 0
        script = Script(steps)
        result = ended(agent(script, check, *capabilities))
        seen.append((plain(result.all_messages()), [plain(one) for one in script.sent]))
    assert seen[0] == seen[1]


def test_a_failure_that_comes_back_is_named(tmp_path: Path) -> None:
    script = Script([*tries(2), edit_and_end(), "I do not know"])
    result = ended(agent(script, Says(ZERO), LokiCapability(monitor(tmp_path))))
    heard = told(script.sent[-1])
    assert heard[1] == ZERO
    assert heard[3].startswith(ZERO)
    assert "came back" in heard[3]
    sign = heard[4]
    assert "led nowhere" in sign
    assert "write_file stats.py" in sign
    assert [text for text in heard if "led nowhere" in text] == [sign]
    assert sign not in told(result.all_messages()), "the sign is for requests alone"


def edit_and_end() -> list[Call]:
    return [edit("another way")]


def test_a_sign_keeps_its_place_for_the_prompt_cache(tmp_path: Path) -> None:
    script = Script([*tries(2), [edit("a")], [edit("b")], "I do not know"])
    ended(agent(script, Says(ZERO), LokiCapability(monitor(tmp_path))))
    earlier, later = told(script.sent[-2]), told(script.sent[-1])
    assert later[: len(earlier)] == earlier


def test_who_goes_on_all_the_same_is_stopped(tmp_path: Path) -> None:
    script = Script(tries(20))
    with pytest.raises(loki.AgentStuck) as stuck:
        ended(agent(script, Says(ZERO), LokiCapability(monitor(tmp_path))))
    assert stuck.value.count == 6
    assert "ZeroDivisionError" in str(stuck.value.failure)
    assert len(script.sent) == 12


def test_failures_in_turn_are_seen(tmp_path: Path) -> None:
    script = Script([*tries(4), "I do not know"])
    ended(agent(script, Says(*[ZERO, TYPE] * 20), LokiCapability(monitor(tmp_path))))
    for failure in (ZERO, TYPE):
        first, second = (text for text in told(script.sent[-1]) if text.startswith(failure))
        assert first == failure
        assert "came back" in second
    assert "come back in turn" in str(script.sent[-1]), "the signs say so"


async def by_run(made: Agent[None, Any]) -> None:
    await made.run("Fix it")


async def by_iter(made: Agent[None, Any]) -> None:
    async with made.iter("Fix it") as run:
        async for _ in run:
            pass


async def by_stream(made: Agent[None, Any]) -> None:
    async with made.run_stream("Fix it") as run:
        async for _ in run.stream_text():
            pass


async def by_events(made: Agent[None, Any]) -> None:
    async def hear(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    await made.run("Fix it", event_stream_handler=hear)


@pytest.mark.parametrize("way", [by_run, by_iter, by_stream, by_events])
def test_each_way_to_run_is_stopped(tmp_path: Path, way: Callable[[Agent[None, Any]], Any]) -> None:
    made = agent(Script(tries(20)), Says(ZERO), LokiCapability(monitor(tmp_path)))
    with pytest.raises(loki.AgentStuck):
        asyncio.run(way(made))


@pytest.mark.parametrize(
    ("answer", "is_last"),
    [
        (ModelRetry("ZeroDivisionError: division by zero in stats.py"), False),
        (ToolFailed("ZeroDivisionError: division by zero in stats.py"), False),
        ({"returncode": 1, "stdout": ZERO}, False),
        (ToolReturn({"exit_code": 1, "output": ZERO}, content="and a picture"), False),
        (ZeroDivisionError("division by zero"), True),
    ],
)
def test_each_way_to_fail_is_recognized(tmp_path: Path, answer: Any, is_last: bool) -> None:
    script = Script([*tries(2), "I do not know"])
    watched = monitor(tmp_path)
    made = agent(script, Says(answer), LokiCapability(watched, scope="project"))
    if is_last:  # pydantic-ai ends a run at any other exception
        for _ in range(2):
            script.sent.clear()
            with pytest.raises(ZeroDivisionError):
                ended(made)
        script.sent.clear()
        with pytest.raises(ZeroDivisionError):
            ended(made)
        assert "led nowhere" in told(script.sent[-1])[0]
        return
    ended(made)
    assert any("came back" in text for text in told(script.sent[-1]))
    assert "ZeroDivisionError" in watched.instructions()


def test_retries_that_are_spent_are_the_tools_failure(tmp_path: Path) -> None:
    watched = monitor(tmp_path)
    made: Agent[None, str] = Agent(
        Script([[CHECK]]).model, capabilities=[LokiCapability(watched)], retries=0
    )

    @made.tool_plain
    def run_tests() -> str:
        raise ModelRetry("ZeroDivisionError: division by zero in stats.py")

    with pytest.raises(UnexpectedModelBehavior):
        ended(made)
    log = (tmp_path / ".loki/logs/tool-calls.jsonl").read_text("utf-8")
    assert "division by zero" in log
    assert "exceeded max retries" not in log


def test_arguments_that_do_not_fit_are_the_calls_failure(tmp_path: Path) -> None:
    wrong: Call = ("write_file", {"path": "stats.py"})
    once = agent(Script([[wrong], [CHECK], "I do not know"]), Says(PASSED))
    watched = agent(
        Script([[wrong], [CHECK], "I do not know"]), Says(PASSED), LokiCapability(tmp_path)
    )
    assert plain(ended(once).all_messages()) == plain(ended(watched).all_messages())

    script = Script([*[[wrong]] * 15, "I do not know"])
    capability = LokiCapability(monitor(tmp_path))
    assert ended(agent(script, Says(PASSED), capability, retries=30)).output == "I do not know"
    named = ["was not accepted" in text for text in told(script.sent[-1])]
    assert named == [False] + [True] * 14, "named from the second time, never stopped"


def test_a_later_run_begins_with_what_an_earlier_one_learned(tmp_path: Path) -> None:
    def watched() -> LokiCapability:
        return LokiCapability(monitor(tmp_path), scope="project")

    with pytest.raises(loki.AgentStuck):
        ended(agent(Script(tries(20)), Says(ZERO), watched()))
    script = Script(["Let me think"])
    ended(agent(script, Says(ZERO), watched()))
    first = script.sent[0][-1]
    assert isinstance(first, ModelRequest)
    assert [type(part) for part in first.parts] == [UserPromptPart, UserPromptPart]
    assert "write_file stats.py" in told([first])[0]


def test_calls_in_parallel_keep_their_results(tmp_path: Path) -> None:
    calls = [edit(), CHECK, ("write_file", {"path": "b.py", "content": ""})]
    script = Script([calls, calls, "I do not know"])
    result = ended(agent(script, Says(ZERO), LokiCapability(monitor(tmp_path))))
    returns = [
        part
        for one in result.all_messages()
        for part in one.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert [part.tool_call_id for part in returns] == [
        f"{n}-{i}" for n in (1, 2) for i in (0, 1, 2)
    ]
    assert all(str(part.content).startswith((ZERO, "wrote")) for part in returns)


def test_a_service_that_is_down_is_left_alone(tmp_path: Path) -> None:
    fetch = Says("Error: connect ECONNREFUSED 203.0.113.7:443")
    call: list[Call] = [("fetch_page", {"url": "https://docs.example.com/a"})]
    script = Script([call] * 6 + ["I do not know"])
    made = Agent(script.model, capabilities=[LokiCapability(monitor(tmp_path))])

    @made.tool_plain
    def fetch_page(url: str) -> Any:
        return fetch()

    ended(made, "Read the page")
    assert fetch.calls == 3
    assert "Not called" in told(script.sent[-1])[-1]
    assert "docs.example.com" in told(script.sent[-1])[-1]


def test_a_claim_without_a_check_is_refused_once(tmp_path: Path) -> None:
    script = Script([[CHECK], [edit()], "All tests pass now.", "All tests pass now."])
    result = ended(agent(script, Says(ZERO), LokiCapability(monitor(tmp_path))))
    assert result.output == "All tests pass now."
    assert len(script.sent) == 4
    assert "files were changed after the last run of tests" in told(script.sent[-1])[-1]


def test_a_claim_is_let_pass_where_the_agent_may_not_answer_again(tmp_path: Path) -> None:
    script = Script([[CHECK], [edit()], "All tests pass now."])
    made = agent(script, Says(ZERO), LokiCapability(monitor(tmp_path)), retries={"output": 0})
    assert ended(made).output == "All tests pass now."


def test_calls_that_wait_for_a_person_are_no_failures(tmp_path: Path) -> None:
    script = Script([[CHECK], "later"])
    made = agent(
        script,
        Says(ApprovalRequired()),
        LokiCapability(monitor(tmp_path)),
        output_type=[str, DeferredToolRequests],
    )
    assert isinstance(ended(made).output, DeferredToolRequests)
    assert not (tmp_path / ".loki/logs/tool-calls.jsonl").exists()


def test_pydantic_ais_own_test_model_runs(tmp_path: Path) -> None:
    made = Agent(TestModel(), capabilities=[LokiCapability(tmp_path)])

    @made.tool_plain
    def read_file(path: str) -> str:
        return "text"

    assert "read_file" in ended(made, "Hello").output
