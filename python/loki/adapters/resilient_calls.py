"""Several models of one framework as one: what `loki.ResilientLLM` is, for calls of others' clients.

Each framework's own class stands on it: ``ResilientModel`` or ``ResilientChatModel`` of its adapter. Under
test: ``tests/system/frameworks/adapters/test_resilient_models.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from loki.adapters.monitor.breaker_call import NoOutage, Way, begun
from loki.agents.fallback_chain import ChainOptions
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
        llm = ResilientLLM(*(_Named(*one) for one in names), **how)
        self._way = Way(llm.ways, tuple(one.breaker for one in llm.llms), judged=_judged)

    def ask(self, calls: Sequence[Callable[[], T]]) -> T:
        """The first answer.

        Args:
            calls: how each of the models is asked, in their order.

        Raises:
            BreakerOpen: no model can be asked before a time.
            Exception: what the last one raised, where none answered; what is no error of a call, such
                as a bug in a model's own code, at once.
        """
        return self._way.call(*calls)

    async def aask(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> T:
        """The same without blocking the event loop."""
        return await self._way.acall(*calls)

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


def _judged(error: Exception, name: str, ways: ChainOptions) -> Exception:
    """What became of a call, be it an outage or not: the next model may do better."""
    return normalized(error, name, ways.clock.now()) or NoOutage(error)
