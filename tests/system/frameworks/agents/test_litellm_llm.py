"""Models by litellm, which goes beside few releases of the official clients: in an environment of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import loki
from loki.agents.providers import llm_of
from loki.testing import LLMContract
from support.llm_service import LLMService, Received, Said, failed
from support.paths import ROOT

PYTHON = ROOT / "build" / "litellm" / "bin" / "python"
NOWHERE = "http://127.0.0.1:9/v1"  # the discard service, which nobody runs any more


def adds(request: Received) -> Said:
    return Said(arguments={"sum": 4}) if request.body.get("tools") else Said("The sum is 4.")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LLMService(adds) as service:
        yield f"{service.url}/v1"


if find_spec("litellm"):

    class TestContract(LLMContract):
        url = ""

        @pytest.fixture(autouse=True)
        def _at(self, url: str) -> None:
            self.url = url

        def llm(self) -> loki.LLM:
            return loki.LiteLLM("openai/gpt-test", base_url=self.url, api_key="k")

        def unreachable(self) -> loki.LLM:
            return loki.LiteLLM("openai/gpt-test", base_url=NOWHERE, api_key="k")

    def test_what_goes_with_a_request() -> None:
        with LLMService(lambda _: Said("Hi", input=7, output=2)) as service:
            name = "litellm:openai/gpt-test"
            llm = llm_of(name, base_url=f"{service.url}/v1", temperature=0.2, effort="low",
                         headers={"X-Team": "core"})  # fmt: skip
            answer = llm.complete(loki.Request((loki.Message("user", "Hello"),), "Be terse."))
        assert isinstance(answer, loki.Answer)
        assert (answer.text, answer.usage.input, answer.usage.output) == ("Hi", 7, 2)
        (asked,) = service.received
        assert asked.headers["x-team"] == "core"
        assert (asked.body["temperature"], asked.body["model"]) == (0.2, "gpt-test")
        assert llm.breaker == f"api/openai@{service.url.removeprefix('http://')}/gpt-test"

    @pytest.mark.parametrize(
        ("status", "type_", "kind"),
        [
            (429, "rate_limit_error", "rate_limit"),
            (503, "overloaded_error", "overloaded"),
            (401, "authentication_error", "authentication"),
            (400, "invalid_request_error", "bad_request"),
        ],
    )
    def test_one_call_and_what_its_error_means(status: int, type_: str, kind: str) -> None:
        with LLMService([failed(status, type_)] * 3) as service:
            llm = loki.LiteLLM("openai/gpt-test", base_url=f"{service.url}/v1", api_key="k")
            with pytest.raises(loki.LLMError) as caught:
                llm.complete(loki.Request((loki.Message("user", "Hello"),)))
        assert caught.value.kind == kind
        assert len(service.received) == 1, "loki is the one who asks again"

    def test_an_unknown_model_is_named() -> None:
        with pytest.raises(loki.UsageError, match="litellm has no model 'nowhere-x'"):
            loki.LiteLLM("nowhere-x")

else:

    def test_without_it_the_extra_is_named() -> None:
        with pytest.raises(loki.UsageError, match=r"pip install 'loki-core\[litellm\]'"):
            llm_of("litellm:groq/llama-3.3-70b-versatile")

    @pytest.mark.skipif(not PYTHON.exists(), reason="litellm is not installed: make litellm")
    def test_in_an_environment_of_its_own() -> None:
        environment = {**os.environ, "OPENAI_API_KEY": "k"}
        words = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        words += ["-W", "ignore::DeprecationWarning", str(Path(__file__))]  # of its own making
        ran = subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "passed" in ran.stdout
