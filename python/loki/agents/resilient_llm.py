"""A model that survives what its service does: it is asked again, and others in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loki.action.agent_protocol import LLM, Answer, Request
from loki.agents.backend import BLOCKING, EVENT_LOOP, Backend, run_through
from loki.agents.fallback_chain import (
    RETRIES,
    WAIT,
    ChainOptions,
    ChainRun,
    Circuits,
    Endpoint,
    LocalBreakers,
)
from loki.base.error import UsageError
from loki.base.time import Clock, Duration, SystemClock, argument_seconds
from loki.decision.backoff import Backoff
from loki.decision.breaker import call_arguments
from loki.decision.budget import Budget, Meter
from loki.decision.price import Price, Prices
from loki.memory.call_log import Calls


class ResilientLLM:
    """A `loki.LLM` made of one or more: the first is preferred, the others stand in for it.

    Each call passes the circuit breaker of its model and tells it how it went. Where asking again can
    help, it is asked again after a wait, longer each time, or as long as its service asks. Where it
    cannot, or the breaker opens, the next one is asked; where none is left, ``wait`` says how long
    until one may be asked again. Once the preferred one's cooldown is over, the first request is its
    probe. Every model that was asked leaves a record in ``calls``. It waits and
    retries by itself, so nobody else should: the models' own retries are off. Safe to share between
    threads and tasks.

    Args:
        llms: the models, the preferred one first.
        breakers: circuit breakers by name, such as `loki.Workspace.breakers`; None: in memory, of its
            own.
        clock: where time comes from.
        backoff: waits between retries; 5 s, 10 s, 20 s, … up to 300 s by default.
        retries: of one request to one model, at most.
        prices: what models cost, in place of the built-in table's prices, by their names.
        calls: where the records of calls go; None: to the log only.
        budget: what all calls together may take, ``attempts`` being calls; at 80 % it warns, and once
            it is spent nothing more is asked.
        parallel: calls to one model at a time; fewer while it recovers from an outage. None: as many
            as like.
        wait: how long a request waits, all pauses together, where no model may be asked before a time;
            0: not at all.
        breaker: arguments of `loki.Breaker` for breakers in memory, beside those for calls of models
            (`loki.decision.breaker.CALLS`).
        ways: all of this from one who shares it, in place of the arguments before.

    Raises:
        UsageError: there is no model, or one is named twice.

    Example:
        >>> from loki.action.agent_protocol import Message
        >>> from loki.base.error import LLMError
        >>> class Model:
        ...     provider = "example"
        ...     def __init__(self, model, answer):
        ...         self.model, self.breaker, self.answer = model, f"api/example/{model}", answer
        ...     def complete(self, request):
        ...         if self.answer is None:
        ...             raise LLMError("your credit is used up", "quota")
        ...         return Answer(self.answer)
        >>> llm = ResilientLLM(Model("large", None), Model("small", "Hello!"))
        >>> llm.complete(Request((Message("user", "Say hello"),))).text
        'Hello!'
    """

    is_resilient = True

    def __init__(
        self,
        *llms: LLM,
        breakers: Circuits | None = None,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        retries: int = RETRIES,
        prices: Mapping[str, Price] | Prices | None = None,
        calls: Calls | None = None,
        budget: Budget | None = None,
        parallel: int | None = None,
        wait: Duration = WAIT,
        breaker: Mapping[str, Any] | None = None,
        ways: ChainOptions | None = None,
    ) -> None:
        names = [llm.breaker for llm in llms]
        if not llms or len(set(names)) < len(names):
            raise UsageError(
                f"found the models {', '.join(names) or '(none)'}: expected one or more, each of them "
                "once (breaker= gives one a name of its own)"
            )
        if breakers is not None and breaker is not None:
            raise UsageError("both breakers and their arguments are given: expected one of them")
        if retries < 0:
            raise UsageError(f"retries is {retries}: expected 0 or more")
        self.llms = llms
        self.provider, self.model, self.breaker = llms[0].provider, llms[0].model, llms[0].breaker
        time = clock or SystemClock()
        self.ways = ways or ChainOptions(
            breakers or LocalBreakers(time, **call_arguments(breaker)),
            time,
            backoff or Backoff("5s", cap="5m"),
            retries,
            prices if isinstance(prices, Prices) else Prices(prices),
            calls or Calls(),
            Meter(budget, time) if budget else None,
            parallel=parallel,
            wait=argument_seconds("wait", wait),
        )
        self._members = [
            Endpoint(
                llm.complete,
                llm.provider,
                llm.model,
                llm.breaker,
                acall=getattr(llm, "acomplete", None),
            )
            for llm in llms
        ]

    def complete(self, request: Request) -> Answer:
        """The answer; ``usage`` and ``cost`` are those of all calls that it took.

        Raises:
            BreakerOpen: no model can be asked before a time.
            LLMError: none answered (``gave_up``), the budget is spent or the run was stopped.
        """
        return run_through(self._ask(request, BLOCKING))

    async def acomplete(self, request: Request) -> Answer:
        """The same without blocking the event loop."""
        return await self._ask(request, EVENT_LOOP)

    async def _ask(self, request: Request, backend: Backend) -> Answer:
        ways = self.ways
        run: ChainRun[Answer] = ChainRun(
            self._members, request, ways, request.task, ways.wait, backend
        )
        answer = await run.ask()
        return replace(answer, usage=run.usage, cost=run.cost, work=run.work)

    def __repr__(self) -> str:
        return f"<ResilientLLM: {' -> '.join(f'{one.provider}/{one.model}' for one in self.llms)}>"
