"""What a model gave does not fit: arguments that a tool does not take, answers in another form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_ai import Agent, ModelRetry, PromptedOutput, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from loki.adapters.pydantic_ai import LokiCapability
from support.framework_agents import monitor
from support.openai_agents import kept_in

NOT_ACCEPTED = "was not accepted, {} times for the same reason: `{}`"
NO_NUMBER = (
    "ValidationError: total: Input should be a valid number, unable to parse string as a number"
)


class Bill(BaseModel):
    total: float


class Model:
    """A model that gives this and that in turn, the last for ever; what it was told at last."""

    def __init__(self, *given: Any) -> None:
        self.given, self.sent = given, list[list[ModelMessage]]()

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.sent.append(messages)
        given = self.given[min(len(self.sent), len(self.given)) - 1]
        if isinstance(given, str):
            return ModelResponse([TextPart(given)])
        names = [tool.name for tool in (info.output_tools or info.function_tools)]
        return ModelResponse([ToolCallPart(names[0], given)])

    @property
    def told(self) -> list[str]:
        """What loki added, request by request."""
        texts = [str(part) for one in self.sent[-1] for part in one.parts if one.kind == "request"]
        return [text for text in texts if "not accepted" in text]


def tool(model: Any, **more: Any) -> Agent[None, Any]:
    made: Agent[None, Any] = Agent(model, retries=20, **more)

    @made.tool_plain
    def save_bill(name: str, total: float) -> str:
        return "saved"

    return made


def form(model: Any, **more: Any) -> Agent[None, Any]:
    return Agent(model, output_type=Bill, retries=20, **more)


def prompted(model: Any, **more: Any) -> Agent[None, Any]:
    return Agent(model, output_type=PromptedOutput(Bill), retries=20, **more)


def validated(model: Any, **more: Any) -> Agent[None, Any]:
    made: Agent[None, Any] = Agent(model, retries=20, **more)

    @made.output_validator
    def polite(said: str) -> str:
        if "please" not in said:
            raise ModelRetry("Say please.")
        return said

    return made


Make = Callable[..., "Agent[None, Any]"]
CASES: list[tuple[Make, list[Any], str, str]] = [
    (tool, [{"name": n, "total": "x"} for n in "abcdef"], "save_bill", NO_NUMBER),
    (form, [{"total": "x"}, {"total": "y"}], "final_result", NO_NUMBER),
    (prompted, ['{"total": "x"}', '{"total": "y"}'], "your answer", NO_NUMBER),
    (validated, ["Go", "Run"], "your answer", "Say please."),
]
EACH = pytest.mark.parametrize(("make", "given", "name", "reason"), CASES)


def run(made: Agent[None, Any]) -> Any:
    return asyncio.run(made.run("Do it")).output


@EACH
def test_the_same_reason_is_named_from_the_second_time_and_never_stopped(
    tmp_path: Path, make: Make, given: list[Any], name: str, reason: str
) -> None:
    model = Model(*given * 9)
    with pytest.raises(UnexpectedModelBehavior):  # pydantic-ai's own end, after 20 retries
        run(make(FunctionModel(model), capabilities=[LokiCapability(monitor(tmp_path))]))
    assert len(model.sent) == 21
    assert len(model.told) == 19
    assert all(
        f"`{name}` {NOT_ACCEPTED.format(n, reason)}" in told for n, told in enumerate(model.told, 2)
    )
    assert [one.tool for one in kept_in(tmp_path)] == [name] * 21


@EACH
def test_what_is_accepted_now_and_then_is_no_loop(
    tmp_path: Path, make: Make, given: list[Any], name: str, reason: str
) -> None:
    """Each run slips once, and mends it; so does a tool's caller, again and again."""
    del name, reason
    fits: Any = (
        "please" if make is validated else '{"total": 1}' if make is prompted else {"total": 1}
    )
    steps = [given[0], fits]
    if make is tool:
        steps = [given[0], {"name": "a", "total": 1}] * 6 + ["Saved"]
    capability = LokiCapability(monitor(tmp_path))
    for _ in range(5):
        model = Model(*steps)
        run(make(FunctionModel(model), capabilities=[capability]))
        assert model.told == []


def test_reasons_that_differ_are_progress(tmp_path: Path) -> None:
    model = Model(
        {}, {"name": "a"}, {"name": "a", "total": "x"}, {"name": "a", "total": 1}, "Saved"
    )
    made = tool(FunctionModel(model), capabilities=[LokiCapability(monitor(tmp_path))])
    assert run(made) == "Saved"
    assert model.told == []


def test_retries_that_are_spent_say_what_they_said_before(tmp_path: Path) -> None:
    made: Agent[None, Bill] = Agent(
        FunctionModel(Model({"total": "x"})),
        output_type=Bill,
        capabilities=[LokiCapability(monitor(tmp_path))],
    )
    with pytest.raises(UnexpectedModelBehavior, match="maximum output retries") as spent:
        run(made)
    cause: Any = spent.value.__cause__
    while cause is not None and not isinstance(cause, ValidationError):
        cause = cause.__cause__
    assert isinstance(cause, ValidationError)
    assert [str(one.failure) for one in kept_in(tmp_path)] == [NO_NUMBER] * 2


def test_a_form_that_streams_is_heard_of_once_it_is_whole(tmp_path: Path) -> None:
    async def stream(_: list[ModelMessage], info: AgentInfo) -> Any:
        yield {0: DeltaToolCall(info.output_tools[0].name, '{"to')}
        for piece in ('tal": ', "1}"):
            yield {0: DeltaToolCall(json_args=piece)}

    async def go() -> Any:
        made: Agent[None, Bill] = Agent(
            FunctionModel(stream_function=stream),
            output_type=Bill,
            capabilities=[LokiCapability(monitor(tmp_path))],
        )
        async with made.run_stream("Do it") as running:
            return [one async for one in running.stream_output(debounce_by=None)][-1]

    assert asyncio.run(go()) == Bill(total=1)
    assert kept_in(tmp_path) == []
