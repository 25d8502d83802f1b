"""Machines that are tables: looking rows up, and drawing them."""

from __future__ import annotations

from enum import Enum

import pytest

from loki.base.error import IllegalTransition
from loki.base.machine import Begin, Row, Table, Wait, Waited, diagram, row
from tools.diagrams import DESIGN, DIAGRAMS, drawn


class Light(Enum):
    RED = "red"
    GREEN = "green"


TABLE: Table[Light] = {
    (Light.RED, Begin): Row(lambda *_: (Light.GREEN, ()), (Light.GREEN,)),
    (Light.RED, Waited): Row(lambda *_: (Light.GREEN, ()), (Light.GREEN, Light.RED)),
    (Light.GREEN, Waited): Row(lambda *_: (Light.RED, ()), (Light.RED,)),
}


def test_a_row_is_found_by_phase_and_event() -> None:
    assert row(TABLE, Light.RED, Begin()) is TABLE[Light.RED, Begin]
    with pytest.raises(IllegalTransition, match="Wait in phase red"):
        row(TABLE, Light.RED, Wait(1.0, ""))


def test_a_table_is_drawn_with_an_arrow_for_each_pair_of_phases() -> None:
    assert diagram(TABLE).splitlines() == [
        "stateDiagram-v2",
        "    RED --> GREEN: Begin, Waited",
        "    RED --> RED: Waited",
        "    GREEN --> RED: Waited",
    ]
    assert diagram(TABLE, [Waited]).splitlines()[1:] == ["    RED --> GREEN: Begin"]


@pytest.mark.parametrize("name", DIAGRAMS)
def test_pages_draw_the_tables_as_they_are(name: str) -> None:
    page = (DESIGN / name).read_text("utf-8")
    assert drawn(page, DIAGRAMS[name]) == page, "python -m tools.diagrams"
