"""What the breaker of a tool is told: what the call reached was down, or is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loki.decision.monitor.monitor_state import Failed, Passed
from loki.decision.monitor.tool_command import Effect

if TYPE_CHECKING:
    from loki.agents.fallback_chain import Circuit


def tell(breaker: Circuit, event: Passed | Failed, output: object) -> None:
    """Tell a breaker of a call, where that was an outage, or one may be over.

    Args:
        breaker: of what the call reached.
        event: what came of it.
        output: what it gave, or what it raised.
    """
    is_outage = _is_outage(event, output)
    permit = breaker.try_acquire()
    if permit is None:
        return
    is_probe = getattr(permit, "is_probe", False)
    if is_outage:
        permit.failure(str(event.failure) if isinstance(event, Failed) else "")
    elif isinstance(event, Passed) and not (is_probe and event.call.effect is Effect.READ):
        permit.success()  # what only reads may not have reached anything: it closes nothing
    else:
        permit.ignore()


def _is_outage(event: Passed | Failed, output: object) -> bool:
    """Whether what it reached is down; a bug in the tool's own code is not, whatever its text says."""
    match = event.failure.match if isinstance(event, Failed) else None
    if match is None or not match.is_infrastructure:
        return False
    if not isinstance(output, Exception):
        return True
    from loki.action.loop.agent_call import is_outage  # only where a tool has raised

    return is_outage(output)
