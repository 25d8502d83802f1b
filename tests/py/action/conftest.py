"""No step of a machine may lead where its table does not say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from loki.action.loop import loop
from loki.action.pipelines import pipeline_machine
from loki.base.machine import Row


@pytest.fixture(autouse=True)
def held_to_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a test, held against what the table says of it."""

    def held(row: Row[Any]) -> Callable[[Any, Any, datetime], Any]:
        def does(state: Any, event: Any, now: datetime) -> Any:
            after, effects = row.does(state, event, now)
            assert after.phase in row.leads_to, (state.phase, type(event), after.phase)
            return after, effects

        return does

    for machine in (loop, pipeline_machine):
        rows = {key: Row(held(row), row.leads_to) for key, row in machine.TABLE.items()}
        monkeypatch.setattr(machine, "TABLE", rows)
