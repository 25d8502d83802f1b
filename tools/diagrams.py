"""Draw the machines that are tables into the pages that tell of them: ``python -m tools.diagrams``."""

from __future__ import annotations

from pathlib import Path

from loki.action.loop import loop
from loki.action.loop.loop_events import Interrupted, ReviewNeeded
from loki.action.pipelines import pipeline_machine, pipeline_state
from loki.base.machine import diagram

DESIGN = Path(__file__).parents[1] / "docs/design"
_OF_PEOPLE = (pipeline_state.Interrupted, pipeline_state.Resumed, pipeline_state.Redo)
DIAGRAMS = {
    "loop.md": diagram(loop.TABLE, (Interrupted, ReviewNeeded)),
    "pipeline.md": diagram(pipeline_machine.TABLE, _OF_PEOPLE),
}
"""By page; what is expected nearly everywhere is left out."""

BEGIN, END = "```mermaid\n", "```\n"


def drawn(page: str, diagram: str) -> str:
    """A page with its diagram anew.

    Args:
        page: its text.
        diagram: what is drawn.
    """
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + diagram + END + after


if __name__ == "__main__":
    for name, text in DIAGRAMS.items():
        path = DESIGN / name
        path.write_text(drawn(path.read_text("utf-8"), text), "utf-8")
