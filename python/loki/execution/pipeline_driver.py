"""Works on a run of a pipeline until it ends: the thin loops between a session and its stages."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from loki.action.pipelines.pipeline_outcome import PipelineOutcome
from loki.action.pipelines.pipeline_state import Event
from loki.execution.pipeline_session import PipelineSession, StageWork


def drive(session: PipelineSession, event: Event) -> PipelineOutcome:
    """The whole run, until it ends."""
    pending = session.answer(event)
    while isinstance(pending, StageWork):
        pending = session.answer(pending.run())
    return pending


async def adrive(session: PipelineSession, event: Event) -> PipelineOutcome:
    """The same without blocking the event loop; cancelling it interrupts the run."""
    with ThreadPoolExecutor(1, thread_name_prefix="loki-pipeline") as thread:
        pending = await _in(thread, session, event)
        while isinstance(pending, StageWork):
            try:
                event = await pending.arun()
            except asyncio.CancelledError:
                session.answer(session.interrupted())
                raise
            pending = await _in(thread, session, event)
        return pending


async def _in(
    thread: ThreadPoolExecutor, session: PipelineSession, event: Event
) -> StageWork | PipelineOutcome:
    future = asyncio.get_running_loop().run_in_executor(thread, session.answer, event)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        session.cancel()
        await asyncio.wait([future])
        raise
