"""Outages in simulated time: callers one after the other, of a model that fails while it is down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loki.action.agent_protocol import Answer, Message, Request
from loki.agents.resilient_llm import ResilientLLM
from loki.base.error import AgentError, BreakerOpen, LLMError
from loki.decision.breaker import CALLS
from loki.testing import ManualClock

LENGTHS = range(60, 241)
"""Seconds that outages last."""

SHORT = range(2, 60)
"""The same of short ones."""


MINUTES = 120
"""Seconds of the outage that calls are counted in."""


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
    lasts: float,
    calls: int = 50,
    spacing: float = 3.6,
    wait: float = 300.0,
    *,
    tells: bool = False,
    **breaker: Any,
) -> dict[str, Any]:
    """What becomes of calls that are made one after the other, every ``spacing`` seconds where it can be.

    Args:
        lasts: seconds of the outage.
        calls, spacing, wait: how many, seconds between them, and for which one waits.
        tells: whether the service says when it is back.
        breaker: arguments of the breaker, beside those for calls.
    """
    clock = ManualClock()
    model = Model(clock, 5.0, lasts, tells=tells)
    llm, lost = ResilientLLM(model, clock=clock, wait=wait, breaker=breaker), 0
    began = clock.monotonic()
    for number in range(calls):
        clock.advance(max(0.0, began + number * spacing - clock.monotonic()))
        try:
            llm.complete(Request((Message("user", "?"),)))
        except (AgentError, BreakerOpen):
            lost += 1
    return {"lasts": lasts, "lost": lost, "dead": model.dead, "back": model.back}


PAUSES = (5.0, 6.0, 7.5, 8.0, 10.0, 15.0, 20.0)
"""Seconds of a breaker's longest pause that are tried."""


def trade() -> Iterator[dict[str, Any]]:
    """Calls to a service that is down for two minutes against the time until its recovery is seen.

    The lengths lie round two minutes, as whoever asks does not know when it ends. ``least`` is what no
    schedule of as many calls gets below: they cut the two minutes into as many parts, the longest of which
    is no shorter than all equal ones, and an end at any moment is seen half a part later on average.
    """
    for pause in PAUSES:
        settings = {"cooldown": min(pause, CALLS["cooldown"]), "cooldown_cap": pause}
        rows = [outage(lasts, **settings) for lasts in range(110, 131)]
        backs = [row["back"] for row in rows]
        dead = max(row["dead"] for row in rows if row["lasts"] <= MINUTES)
        yield {
            "pause": pause,
            "dead": dead,
            "mean": sum(backs) / len(backs),
            "most": max(backs),
            "least": (MINUTES / dead / 2, MINUTES / dead),
        }


def simulated(lengths: range = LENGTHS) -> Iterator[dict[str, Any]]:
    """One row for each length."""
    for lasts in lengths:
        yield outage(lasts)
