"""Outages in simulated time: callers one after the other, of a model that fails while it is down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loki.action.llm import Answer, Message, Request
from loki.agents.resilient import ResilientLLM
from loki.base.error import AgentError, BreakerOpen, LLMError
from loki.testing import ManualClock

LENGTHS = range(60, 241, 7)
"""Seconds that outages last."""


class Model:
    """A model that is down from ``begins`` on for ``lasts`` seconds.

    Args:
        clock: where time comes from.
        begins, lasts: seconds.
        tells: whether its errors say when it is back.
    """

    provider, model, breaker = "example", "m", "api/example/m"

    def __init__(
        self, clock: ManualClock, begins: float, lasts: float, *, tells: bool = False
    ) -> None:
        self._clock, self._tells = clock, tells
        self._begins = clock.monotonic() + begins
        self.ends = self._begins + lasts
        self.dead = 0
        self.back: float | None = None

    def complete(self, _request: Request) -> Answer:
        """An answer, a fifth of a second later, or the error of an overloaded service."""
        now = self._clock.monotonic()
        if self._begins <= now < self.ends:
            self.dead += 1
            raise LLMError(
                "503 overloaded", "overloaded", retry_after=self.ends - now if self._tells else None
            )
        if now >= self.ends and self.back is None:
            self.back = now - self.ends
        self._clock.advance(0.2)
        return Answer("yes")


def outage(
    lasts: float, calls: int = 50, spacing: float = 3.6, wait: float = 300.0, *, tells: bool = False
) -> dict[str, Any]:
    """What becomes of calls that are made one after the other, every ``spacing`` seconds where it can be."""
    clock = ManualClock()
    model = Model(clock, 5.0, lasts, tells=tells)
    llm, lost = ResilientLLM(model, clock=clock, wait=wait), 0
    began = clock.monotonic()
    for number in range(calls):
        clock.advance(max(0.0, began + number * spacing - clock.monotonic()))
        try:
            llm.complete(Request((Message("user", "?"),)))
        except (AgentError, BreakerOpen):
            lost += 1
    return {"lasts": lasts, "lost": lost, "dead": model.dead, "back": model.back}


def simulated() -> Iterator[dict[str, Any]]:
    """One row for each length."""
    for lasts in LENGTHS:
        yield outage(lasts)
