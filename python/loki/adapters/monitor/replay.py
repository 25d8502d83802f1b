"""What a monitor would have said to runs that are over; see ``docs/monitor.md``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loki.adapters.monitor.monitor import Monitor
from loki.adapters.monitor.path_mapping import is_folder_there
from loki.adapters.monitor.recorded_run import Ends, Recorded, RecordedRun
from loki.base.secret import mask_secrets
from loki.decision.monitor.monitor_policy import Reaction
from loki.decision.monitor.value_text import any_repr
from loki.memory.quote import one_line

ABOUT = 4_000
"""Characters of a call or a message that are looked at for a line on it. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What the monitor would have said, and where.

    Attributes:
        place: as of the call, or of the words.
        kind: ``nudge``, ``refuse`` or ``stop``.
        reason: the rule.
        about: the call, or what was said.
        text: what the agent would have been told.
        is_last: it is about the last words of a turn.
        left: of a stop: calls that the turn still made.
    """

    place: int
    kind: str
    reason: str
    about: str
    text: str
    is_last: bool = False
    left: int = 0


def remarks(
    run: RecordedRun, project: str | os.PathLike[str], told: Callable[[float], None] | None = None
) -> Iterator[Remark]:
    """What a monitor would have said to a run. It is only watched: what is said does not change it, but
    that a turn is over where it would have been stopped.

    Args:
        run: the run.
        project: a folder for what the monitor keeps, one for each run.
        told: takes the seconds of processor time that each call took.
    """
    mapped = {run.folder: "."} if is_folder_there(run.folder) else {}
    monitor = Monitor(root=Path(project), mapped=mapped, agent=run.agent or "agent")
    turn, stopped = 0, None
    for one in run.events:
        if isinstance(one, Ends):
            turn += 1
            if stopped is not None:
                yield stopped
                stopped = None
                monitor.helped()  # a person has read it, and goes on
                continue
            said = monitor.ending(one.message, turn=str(turn))
        elif stopped is not None:
            stopped = replace(stopped, left=stopped.left + 1)
            continue
        else:
            began = time.process_time()
            # Breakers are not asked: what was called then was called.
            said = monitor.after(one.call, one.result, ok=one.ok, exit_code=one.exit_code)
            if told is not None:
                told(time.process_time() - began)
        if said.kind == "stop":
            stopped = _remark(one, said)
        elif said:
            yield _remark(one, said)
    if stopped is not None:
        yield stopped


def _remark(one: Recorded, said: Reaction) -> Remark:
    if isinstance(one, Ends):
        about = one.message
    else:
        about = one.call.line or f"{one.call.name} {any_repr(dict(one.call.arguments))}"
    short = one_line(mask_secrets(about[:ABOUT]), 160)
    return Remark(one.place, said.kind, said.reason, short, said.text, isinstance(one, Ends))
