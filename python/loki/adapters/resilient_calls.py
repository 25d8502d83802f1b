"""Several models of one framework as one: what `loki.ResilientLLM` is, for calls of others' clients.

Each framework's own class stands on it: ``ResilientModel`` or ``ResilientChatModel`` of its adapter. Under
test: ``tests/system/frameworks/adapters/test_resilient_models.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

from loki.adapters.monitor.breaker_call import (
    Answered,
    Heard,
    Judge,
    NoOutage,
    Question,
    begun,
    unwrapped,
)
from loki.agents.backend import BLOCKING, EVENT_LOOP, Backend, run_through
from loki.agents.fallback_chain import ChainRun, Endpoint
from loki.agents.model_call import normalized
from loki.agents.resilient_llm import ResilientLLM

T = TypeVar("T")


@dataclass
class _Named:
    """Who stands for a framework's model where only its names count."""

    provider: str
    model: str

    def __post_init__(self) -> None:
        self.breaker = f"api/{self.provider}/{self.model}"

    def complete(self, _request: object) -> Any:
        raise NotImplementedError


class ResilientCalls:
    """Asks one model after the other, as `loki.ResilientLLM` does.

    Args:
        names: provider and model of each, the preferred one first.
        how: as `loki.ResilientLLM` takes it.

    Raises:
        UsageError: there is no model, or one is named twice.
    """

    def __init__(self, names: Sequence[tuple[str, str]], **how: Any) -> None:
        self._llm = ResilientLLM(*(_Named(*one) for one in names), **how)

    def ask(self, calls: Sequence[Callable[[], T]]) -> T:
        """The first answer.

        Args:
            calls: how each of the models is asked, in their order.

        Raises:
            BreakerOpen: no model can be asked before a time.
            Exception: what the last one raised, where none answered; what is no error of a call, such
                as a bug in a model's own code, at once.
        """
        heard = Heard()
        run = self._run(calls, heard.asking, BLOCKING)
        return cast(T, unwrapped(run_through(heard.outcome(run))))

    async def aask(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> T:
        """The same without blocking the event loop."""
        heard = Heard()
        run = self._run(calls, heard.aasking, EVENT_LOOP)
        return cast(T, unwrapped(await heard.outcome(run)))

    def stream(self, calls: Sequence[Callable[[], Iterator[T]]]) -> Iterator[T]:
        """The pieces of the first answer; what breaks after its first piece is not asked again."""

        def begin(call: Callable[[], Iterator[T]]) -> Iterator[T]:
            pieces = call()
            return chain([first for first in [next(pieces, None)] if first is not None], pieces)

        return self.ask([partial(begin, call) for call in calls])

    async def astream(
        self,
        calls: Sequence[Callable[[], AsyncIterator[T]]],
        is_silent: Callable[[T], bool] = lambda _: False,
    ) -> AsyncIterator[T]:
        """The same without blocking; ``is_silent``: pieces before which nothing was said yet."""
        first, pieces = await self.aask([partial(begun, call, is_silent) for call in calls])
        for piece in first:
            yield piece
        async for piece in pieces:
            yield piece

    def _run(
        self,
        calls: Sequence[Any],
        asking: Callable[[Any, Judge], Callable[[Question], Any]],
        backend: Backend,
    ) -> ChainRun[Answered]:
        members: list[Endpoint] = [
            Endpoint(
                asking(call, partial(self._judged, llm.breaker)),
                llm.provider,
                llm.model,
                llm.breaker,
            )
            for llm, call in zip(self._llm.llms, calls, strict=True)
        ]
        ways = self._llm.ways
        return ChainRun(members, Question(), ways, wait=ways.wait, backend=backend)

    def _judged(self, name: str, error: Exception) -> Exception:
        return normalized(error, name, self._llm.ways.clock.now()) or NoOutage(error)
