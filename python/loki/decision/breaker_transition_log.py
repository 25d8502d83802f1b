"""What is kept of the transitions of circuit breakers: a line for each, and one for each recovery.

``logs/breaker-transitions.jsonl`` has one JSON object a line: ``at`` (ISO 8601 UTC), ``breaker``,
``before``, ``after`` and, where a failure tripped it, ``error``. Each process writes those that it
makes, so that none stands there twice. One that cannot be kept is lost: how a breaker stands is in the
breakers' own file.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from loki.base import atomic_file
from loki.base.error import StoreError
from loki.base.log import logger
from loki.base.time import isoformat
from loki.decision.breaker_snapshot import CircuitState
from loki.decision.recovery import recovery_line

TRANSITIONS = "breaker-transitions.jsonl"
RECOVERIES = "circuit-recovery.log"


class TransitionLog:
    """The two logs of a file of breakers.

    Args:
        path: the file of breakers; in a folder ``state`` both logs are in ``logs`` beside that.
        recoveries: where recoveries go instead; None: beside it.
    """

    def __init__(
        self, path: str | os.PathLike[str], recoveries: str | os.PathLike[str] | None = None
    ) -> None:
        folder = Path(path).parent
        logs = folder.parent / "logs" if folder.name == "state" else None
        self._transitions = logs and logs / TRANSITIONS
        self._recoveries = recoveries or (logs and logs / RECOVERIES)

    def keep(
        self, name: str, before: CircuitState, after: CircuitState, at: datetime, error: str = ""
    ) -> None:
        """Keep a transition; called after a file was written, never on the way of a call let through.

        Args:
            name: the breaker's.
            before, after: the state that it left, and entered.
            at: when, in UTC.
            error: of the failure that tripped it, without secrets; "" where none did.
        """
        record = {"at": isoformat(at), "breaker": name, "before": before, "after": after}
        line = json.dumps({**record, "error": error} if error else record, ensure_ascii=False)
        with suppress(StoreError):  # the breakers' own file is on the same disk: that was told
            _append(self._transitions, line)
        if after == "CLOSED":
            try:
                _append(self._recoveries, recovery_line(name, at))
            except StoreError as problem:
                logger.warning("Could not persist: %s. Going on; %s recovered.", problem, name)


def _append(path: str | os.PathLike[str] | None, line: str) -> None:
    if path is not None:
        atomic_file.append_line(path, line.encode("utf-8", "replace"))
