"""What machines that are tables have in common: a row, looking one up, and drawing them all.

A machine is a table from (phase, event) to a `Row`; a step of it is pure: (state, event, now) → (state,
effects). What is drawn stands in ``docs/design`` (``python -m tools.diagrams``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Generic, TypeVar

from loki.base.error import IllegalTransition

_State = TypeVar("_State")
_Effect = TypeVar("_Effect")
_Phase = TypeVar("_Phase", bound=Enum)


@dataclass(frozen=True, slots=True)
class Row(Generic[_Phase]):
    """What follows of an event in a phase.

    Attributes:
        does: gives the next state, and what is to be done.
        leads_to: the phases that the next state may be in.
    """

    does: Callable[[Any, Any, datetime], Any]
    leads_to: tuple[_Phase, ...]


Table = Mapping[tuple[_Phase, type[Any]], Row[_Phase]]


def row(table: Table[_Phase], phase: _Phase, event: object) -> Row[_Phase]:
    """The row of a table for an event.

    Raises:
        IllegalTransition: this phase does not expect this event.
    """
    found = table.get((phase, type(event)))
    if found is None:
        raise IllegalTransition(f"{type(event).__name__} in phase {phase.value}")
    return found


def diagram(table: Table[_Phase], beside: Iterable[type[Any]] = ()) -> str:
    """A table as a state diagram of Mermaid.

    Args:
        table: the machine.
        beside: events that are expected nearly everywhere, and would hide the rest.
    """
    arrows: dict[tuple[_Phase, _Phase], list[str]] = defaultdict(list)
    for (phase, event), one in table.items():
        for follows in one.leads_to if event not in set(beside) else ():
            arrows[phase, follows].append(event.__name__)
    lines = [
        f"    {phase.name} --> {follows.name}: {', '.join(events)}"
        for (phase, follows), events in arrows.items()
    ]
    return "\n".join(["stateDiagram-v2", *lines]) + "\n"


def prepend(
    effects: Iterable[_Effect], step: tuple[_State, tuple[_Effect, ...]]
) -> tuple[_State, tuple[_Effect, ...]]:
    """A step of a machine, with effects that come before its own."""
    state, own = step
    return state, (*effects, *own)


# --- What the closed loop and pipelines both know -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """The work begins, or goes on where it was interrupted."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait; answered by `Waited`."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Waited:
    """The wait is over."""
