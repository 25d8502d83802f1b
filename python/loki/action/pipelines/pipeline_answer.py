"""How a run of a pipeline that stands somewhere goes on: by itself, or by what a person says. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from loki.action.pipelines.pipeline_state import (
    OVER,
    WAITING_FOR_A_PERSON,
    Approved,
    Begin,
    Event,
    Phase,
    Rejected,
    Resumed,
    RunState,
)
from loki.base.error import UsageError
from loki.memory.intervention import intervention_text


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a run.

    Attributes:
        approve: let the stage begin that waits for approval; reject: end the run.
        by: who says so; note: why.
        context: what to tell the agent.
    """

    approve: bool
    reject: bool
    by: str
    note: str
    context: str

    def event(self, state: RunState) -> Event:
        """The event that it is for the machine.

        Raises:
            UsageError: the run waits for something else.
        """
        run, phase = state.run, state.phase
        if self.approve and self.reject:
            raise UsageError("found both approve and reject, expected one of them")
        if phase in OVER:
            raise UsageError(
                f"run {run} has ended: {state.status}; begin it again at a stage with `loki "
                "pipeline run FILE --from STAGE`, or begin another run"
            )
        if self.reject:
            if phase not in WAITING_FOR_A_PERSON:
                raise UsageError(f"run {run} waits for nobody: there is nothing to reject")
            return Rejected(self.by, self.note)
        if self.approve:
            if phase is not Phase.APPROVAL:
                raise UsageError(f"run {run} waits for no approval: expected no --approve")
            return Approved(self.by, self.note)
        if phase is Phase.APPROVAL and state.here.requires_approval:
            raise UsageError(
                f"stage {state.at} of run {run} waits for approval: expected --approve or --reject"
            )
        return Begin() if phase is Phase.NEW else Resumed(intervention_text(self.context))


def going_on(state: RunState) -> Event | None:
    """How a run goes on without anybody saying anything; None where a person must."""
    if state.phase is Phase.ESCALATED:
        return None
    return Begin() if state.phase is Phase.NEW else Resumed()
