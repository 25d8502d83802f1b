"""The contract that others test their models and agents by: it holds for ours, and it can fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loki
from loki.agents.contract import question
from loki.testing import AgentContract, LLMContract, ScriptedAgent, ScriptedLLM
from support.llm_service import LLMService, Received, Reply, Said, failed
from support.paths import ROOT

DOCUMENT = ROOT / "docs" / "models.md"
NOWHERE = "http://127.0.0.1:9"  # the discard service, which nobody runs any more
LINES = 30
"""Of the documented adapter, at most: it is promised to be small."""


def adds(request: Received) -> Said:
    return Said(arguments={"sum": 4}) if request.body.get("tools") else Said("The sum is 4.")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LLMService(adds) as service:
        yield service.url


class Here(LLMContract):
    """A contract for models that the service on this machine answers for."""

    url = ""

    @pytest.fixture(autouse=True)
    def _at(self, url: str) -> None:
        self.url = url


class TestAnthropic(Here):
    def llm(self) -> loki.LLM:
        return loki.AnthropicLLM("claude-test", base_url=self.url)

    def unreachable(self) -> loki.LLM:
        return loki.AnthropicLLM("claude-test", base_url=NOWHERE)


class TestOpenAI(Here):
    def llm(self) -> loki.LLM:
        return loki.OpenAILLM("gpt-test", base_url=f"{self.url}/v1", api="responses")

    def unreachable(self) -> loki.LLM:
        return loki.OpenAILLM("gpt-test", base_url=NOWHERE)


class TestScripted(LLMContract):
    def llm(self) -> loki.LLM:
        return ScriptedLLM(lambda request: {"sum": 4} if request.tool else "The sum is 4.")


class Asynchronous:
    """As a third party would write it over an asynchronous client."""

    provider, model, breaker = "other", "m", "api/other/m"

    async def complete(self, request: loki.Request) -> loki.Answer:
        await asyncio.sleep(0)
        return ScriptedLLM([{"sum": 4} if request.tool else "4"]).complete(request)


class TestAsynchronous(LLMContract):
    def llm(self) -> loki.LLM:
        return Asynchronous()


# --- the adapter that the documentation shows ---------------------------------------------------------


def documented() -> Any:
    (source,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    class_ = source[source.index("class ") :]
    assert sum(1 for line in class_.splitlines() if line.strip()) <= LINES
    names: dict[str, Any] = {}
    exec(compile(source, str(DOCUMENT), "exec"), names)
    return names["HouseLLM"]


class TestDocumented(Here):
    def llm(self) -> Any:
        return documented()(f"{self.url}/v1/chat/completions", "m")

    def unreachable(self) -> Any:
        return documented()(NOWHERE, "m")


def test_the_documented_adapter_tells_errors_and_works(
    tmp_path: Path,
) -> None:
    script: list[Reply] = [failed(429, headers={"retry-after": "3"}), Said(arguments={"edits": []})]
    with LLMService(script) as service:
        llm = documented()(f"{service.url}/v1/chat/completions", "m")
        with pytest.raises(loki.LLMError) as caught:
            llm.complete(question())
        assert (caught.value.kind, caught.value.retry_after) == ("rate_limit", 3.0)
        proposal = loki.ModelAgent(llm).propose(loki.Briefing("Nothing", "t", 1, tmp_path))
    assert isinstance(proposal, loki.Proposal)
    assert proposal.change.is_empty


# --- agents -------------------------------------------------------------------------------------------

HELLO = {"path": "hello.txt", "action": "write", "content": "Hello\n"}


class TestModelAgent(AgentContract):
    def agent(self) -> loki.Agent:
        return loki.ModelAgent(ScriptedLLM([{"edits": [HELLO]}]))

    def broken(self) -> loki.Agent:
        return loki.ModelAgent(ScriptedLLM([loki.LLMError("down", "server")]))


# --- it can fail --------------------------------------------------------------------------------------


class Bad:
    """Breaks every promise."""

    provider, model, breaker = "bad", "", "api/bad"

    def complete(self, request: loki.Request) -> loki.Answer:
        if request.tool is not None:
            return loki.Answer("4")
        if request.on_text is not None:
            return loki.Answer("4")  # and tells nobody
        return loki.Answer("", "4", usage=loki.TokenUsage(1, 1, 5))


class Wrong(LLMContract):
    def llm(self) -> loki.LLM:
        return Bad()

    def unreachable(self) -> loki.LLM:
        return Bad()


@pytest.mark.parametrize(
    "name",
    sorted(name for name in vars(LLMContract) if name.startswith("test")),
)
def test_a_bad_model_fails(name: str) -> None:
    with pytest.raises(AssertionError):
        getattr(Wrong(), name)()


class Scribbler(AgentContract):
    def agent(self) -> loki.Agent:
        class Writes(ScriptedAgent):
            def propose(self, briefing: loki.Briefing) -> loki.Proposal:
                (briefing.root / "scribble").write_text("x")
                return super().propose(briefing)

        return Writes([])

    def broken(self) -> loki.Agent:
        return ScriptedAgent([])


@pytest.mark.parametrize(
    "name",
    [
        "test_it_proposes_a_change",
        "test_it_leaves_the_project_alone",
        "test_one_that_cannot_answer_says_so",
    ],
)
def test_a_bad_agent_fails(name: str) -> None:
    with pytest.raises(AssertionError):
        getattr(Scribbler(), name)()
