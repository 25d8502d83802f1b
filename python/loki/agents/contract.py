"""What every model and every agent keeps to, as tests that others run on their own.

Subclass one in a test file and say what is to be tested; pytest runs the rest. `loki.testing` has
both names.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from loki.action.agent_protocol import LLM, Agent, Answer, Briefing, Message, Request, Tool
from loki.action.changes.tree import Tree
from loki.action.loop.agent_call import as_event, breaker_of, name_of, result_of
from loki.action.loop.loop_events import Answered
from loki.base.error import OUTAGES, AgentError, LLMError
from loki.base.tokens import TokenUsage

TOOL = Tool(
    "report_sum",
    "Report the sum of two numbers.",
    {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    },
)
ENDINGS = {"end", "tool", "length", "refused"}


class LLMContract:
    """What a `loki.LLM` keeps to.

    Example:
        >>> from loki.testing import ScriptedLLM
        >>> class TestMine(LLMContract):
        ...     def llm(self):
        ...         return ScriptedLLM(lambda r: {"sum": 4} if r.tool else "The sum is 4.")
        >>> TestMine().test_it_calls_the_tool()
    """

    def llm(self) -> LLM:
        """The model; it answers a question about 2 + 2, and calls the tool that it is given."""
        raise NotImplementedError

    def unreachable(self) -> LLM | None:
        """The same model at a service that is not there; None: that is not tried."""
        return None

    def test_it_says_who_it_is(self) -> None:
        """Names for records, and for the circuit breaker."""
        llm = self.llm()
        for name in ("provider", "model", "breaker"):
            value = getattr(llm, name, None)
            assert isinstance(value, str), f"{name} is {value!r}: expected text"
            assert value, f"{name} is empty"

    def test_it_answers(self) -> None:
        """With text, figures that can be, and without a call that nobody asked for."""
        answer = ask(self.llm(), question())
        assert answer.text.strip(), "the answer has no text"
        assert answer.arguments is None, "a tool was called though none was offered"
        assert answer.ending in ENDINGS, f"ending is {answer.ending!r}"
        assert isinstance(answer.usage, TokenUsage)
        assert min(answer.usage.input, answer.usage.output) >= 0
        assert answer.usage.cache_read + answer.usage.cache_write <= answer.usage.input, (
            "tokens of the cache are a part of the input"
        )
        assert answer.cost is None or answer.cost >= 0

    def test_it_calls_the_tool(self) -> None:
        """The arguments come as JSON text."""
        answer = ask(self.llm(), question(tool=TOOL))
        assert isinstance(answer.arguments, str), "the tool was not called"
        said = json.loads(answer.arguments)
        assert isinstance(said, dict), f"the arguments are {said!r}: expected an object"

    def test_it_tells_what_it_says_as_it_comes(self) -> None:
        """All of the text goes through ``on_text``, in one piece or in many."""
        pieces: list[str] = []
        answer = ask(self.llm(), question(on_text=pieces.append))
        assert "".join(pieces) == answer.text

    def test_what_on_text_raises_ends_the_call(self) -> None:
        """It is the caller's, and comes back as it is."""

        class Full(Exception):
            pass

        def stop(_piece: str) -> None:
            raise Full

        assert isinstance(_raised(self.llm(), question(on_text=stop)), Full)

    def test_a_call_that_is_cancelled_ends(self) -> None:
        """With the error that says so, which nobody retries."""
        cancelled = threading.Event()
        cancelled.set()
        error = _raised(self.llm(), question(cancelled=cancelled))
        assert isinstance(error, LLMError), f"it raised {error!r}: expected loki.LLMError"
        assert (error.kind, error.retryable) == ("cancelled", False)

    def test_a_service_that_is_not_there_is_an_outage(self) -> None:
        """One error, of a kind that asking again can mend."""
        llm = self.unreachable()
        if llm is None:
            return
        error = _raised(llm, question())
        assert isinstance(error, LLMError), f"it raised {error!r}: expected loki.LLMError"
        assert error.kind in OUTAGES
        assert error.retryable
        assert (error.provider, error.model) == (llm.provider, llm.model)

    def test_threads_share_it(self) -> None:
        """Each gets an answer of its own."""
        llm = self.llm()
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: ask(llm, question()), range(4)))
        assert all(answer.text.strip() for answer in answers)


class AgentContract:
    """What a `loki.Agent` keeps to.

    Example:
        >>> from loki.testing import ScriptedAgent
        >>> class TestMine(AgentContract):
        ...     def agent(self):
        ...         return ScriptedAgent([{"hello.txt": "Hello"}])
        >>> TestMine().test_it_proposes_a_change()
    """

    def agent(self) -> Agent:
        """The agent; asked to write ``hello.txt``, it proposes that."""
        raise NotImplementedError

    def broken(self) -> Agent | None:
        """The same agent where it cannot answer; None: that is not tried."""
        return None

    def test_it_has_a_name(self) -> None:
        """For records, and for the circuit breaker."""
        agent = self.agent()
        assert name_of(agent)
        assert breaker_of(agent)

    def test_it_proposes_a_change(self) -> None:
        """A Change, a Proposal, or a mapping of paths to contents."""
        with tempfile.TemporaryDirectory() as folder:
            event = as_event(propose(self.agent(), Path(folder)), "agent")
        assert isinstance(event, Answered), getattr(event, "failure", event)
        assert "hello.txt" in event.proposal.change.paths

    def test_it_leaves_the_project_alone(self) -> None:
        """Only loki writes it, once the change has been validated."""
        with tempfile.TemporaryDirectory() as folder:
            before = Tree.scan(folder)
            propose(self.agent(), Path(folder))
            assert not before.difference(Tree.scan(folder)), "the agent wrote into the project"

    def test_one_that_cannot_answer_says_so(self) -> None:
        """By one family of errors."""
        agent = self.broken()
        if agent is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                propose(agent, Path(folder))
            except AgentError:
                return
        raise AssertionError("it answered: expected loki.AgentError")


def question(**more: Any) -> Request:
    """What models are asked; ``more`` as `loki.Request` takes it."""
    return Request((Message("user", "What is 2 + 2?"),), "You add numbers.", **more)


def ask(llm: LLM, request: Request) -> Answer:
    """A model's answer, also where it is asynchronous."""
    found: Answer = result_of(llm.complete(request))
    return found


def propose(agent: Agent, project: Path) -> Any:
    """What an agent proposes for an empty project, also where it is asynchronous."""
    text = "# Task\n\nWrite the file hello.txt; it says Hello."
    call: Callable[[Briefing], Any] = agent.propose
    return result_of(call(Briefing(text, "contract", 1, project)))


def _raised(llm: LLM, request: Request) -> BaseException:
    try:
        answer = ask(llm, request)
    except Exception as error:
        return error
    raise AssertionError(f"it answered {answer!r}: expected an error")
