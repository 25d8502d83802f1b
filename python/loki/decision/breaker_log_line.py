"""The log line of a circuit breaker that changed its state: for people, and for telemetry."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from loki.base.log import logger, quoted, write

if TYPE_CHECKING:
    from loki.decision.breaker_snapshot import Transition


def listens() -> bool:
    """Whether anybody reads log lines: else nobody needs to look for what other processes did."""
    return logger.isEnabledFor(logging.INFO)


def tell(transition: Transition) -> None:
    """Write ``[closed-loop] breaker=… state=… was=…``, and the same as data.

    Args:
        transition: what happened.
    """
    name, state, was = transition.name, str(transition.after), str(transition.before)
    write(
        f"breaker={quoted(name)} state={state} was={was}",
        {"breaker": name, "state": state, "was": was},
    )
