"""The recovery of capacity: exact figures, exact times, and an obvious reference for the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.decision import recovery
from loki.decision.recovery import (
    Changed,
    Event,
    Failed,
    Recovery,
    Tick,
    next_change,
    step,
)

OPENED = Changed("api/claude", "OPEN")
PROBED = Changed("api/claude", "HALF_OPEN")
CLOSED = Changed("api/claude", "CLOSED")


def play(*story: tuple[float, Event], full: int = 5) -> Recovery:
    """The state after a story of (now, event)."""
    state = Recovery(full)
    for now, event in story:
        state = step(state, event, now)
    return state


def capacities(full: int, *story: tuple[float, Event]) -> list[int]:
    state, found = Recovery(full), []
    for now, event in story:
        state = step(state, event, now)
        found.append(state.capacity)
    return found


def test_the_way_down_and_up_of_the_documents() -> None:
    """5 → 2 while OPEN, the probe alone, 3 at once when CLOSED, 4 after 60 s, 5 after 120 s."""
    down: tuple[tuple[float, Event], ...] = ((0, OPENED), (300, PROBED))
    up = ((320, CLOSED), (379.999, Tick()), (380, Tick()), (440, Tick()))
    assert capacities(5, *down, *up) == [2, 1, 3, 3, 4, 5]
    assert play(*down).is_restricted
    assert not play(*down, *up[:1]).is_restricted
    assert next_change(play(*down, *up)) is None


def test_a_failure_on_the_way_begins_growth_anew() -> None:
    """At 75 % a failure takes it to 50 %, and 60 s are counted from there; a trip takes it to 2."""
    failed = Failed("api/claude")
    growing = ((0, OPENED), (300, PROBED), (320, CLOSED), (390, Tick()), (400, failed))
    assert capacities(5, *growing, (459, Tick()), (460, Tick()), (520, Tick())) == [
        *(2, 1, 3, 4, 3),
        *(3, 4, 5),
    ]
    assert capacities(5, *growing, (410, OPENED))[-1] == 2


def test_a_failure_before_or_after_growth_changes_nothing() -> None:
    """While it is full, or broken, the circuit alone counts its failures."""
    failed = Failed("api/claude")
    assert capacities(5, (0, failed), (1, OPENED), (2, failed), (3, PROBED), (4, failed)) == [
        *(5, 2, 2, 1, 1)
    ]
    assert capacities(5, (0, OPENED), (1, CLOSED), (121, failed)) == [2, 3, 5]


def test_of_several_circuits_the_most_severe_counts() -> None:
    """A probe of one holds back all; growth begins when the last is closed."""
    other = {state: Changed("api/openai", state) for state in ("OPEN", "HALF_OPEN", "CLOSED")}
    story = ((0, OPENED), (10, other["OPEN"]), (300, PROBED), (310, CLOSED), (320, other["CLOSED"]))
    assert capacities(5, *story) == [2, 2, 1, 2, 3]
    assert play(*story[:-1]).is_restricted
    assert play(*story).growing_since == 320


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        (1, [1, 1, 1, 1, 1]),
        (2, [1, 1, 1, 2, 2]),
        (3, [1, 1, 2, 3, 3]),
        (4, [1, 1, 2, 3, 4]),
        (5, [2, 1, 3, 4, 5]),
        (8, [3, 1, 4, 6, 8]),
        (10, [4, 1, 5, 8, 10]),
        (100, [40, 1, 50, 75, 100]),
    ],
)
def test_other_capacities(full: int, expected: list[int]) -> None:
    """40 % rounded down but never nothing; 50 % and 75 % rounded up."""
    story = ((0.0, OPENED), (300.0, PROBED), (320.0, CLOSED), (380.0, Tick()), (440.0, Tick()))
    assert capacities(full, *story) == expected


def test_who_gets_a_slot() -> None:
    """OPEN: urgent work. Cooldown over: and who may ask it. HALF_OPEN: its probe. Then anybody."""

    def admitted(*story: tuple[float, Event]) -> list[bool]:
        state = play(*story)
        return [
            state.admits(urgent=urgent, circuit=circuit)
            for urgent in (True, False)
            for circuit in (None, "api/claude", "api/openai")
        ]

    assert admitted((0, Tick())) == [True] * 6
    assert admitted((0, OPENED), (299, Tick())) == [True, True, True, False, False, False]
    assert admitted((0, OPENED), (300, Tick())) == [True, True, True, True, True, False]
    assert admitted((0, OPENED), (300, PROBED)) == [True, True, False, True, True, False]
    assert admitted((0, OPENED), (300, PROBED), (320, CLOSED)) == [True] * 6


@pytest.mark.parametrize("last", [(300.0, Tick()), (300.0, PROBED)])
def test_a_circuit_that_nobody_asks_any_more_holds_nobody(last: tuple[float, Event]) -> None:
    """600 s after it may be asked, others go on at reduced capacity."""
    state = play((0, OPENED), last, (899.9, Tick()))
    assert not state.admits(urgent=False, circuit="api/openai")
    assert next_change(state) == 900
    state = step(state, Tick(), 900)
    assert state.capacity == 2
    assert not state.is_restricted
    assert state.admits(urgent=False, circuit="api/openai")


def test_a_circuit_that_a_person_keeps_open_stays_open() -> None:
    """Without an end of its cooldown no time changes anything."""
    state = play((0, Changed("api/claude", "OPEN", math.inf)), (1e9, Tick()))
    assert state.capacity == 2
    assert not state.admits(urgent=False, circuit=None)
    assert next_change(state) is None


def test_closing_what_was_not_broken_is_nothing() -> None:
    """A circuit that is CLOSED at first sight has not recovered."""
    assert play((0, CLOSED)) == Recovery(5, now=0)


def test_a_log_line_stays_one_line() -> None:
    """Whatever a circuit is called."""
    moment = datetime(2026, 4, 4, tzinfo=timezone.utc)
    line = recovery.recovery_line("a\nb", moment)
    assert line == "2026-04-04T00:00:00.000Z Circuit recovered: a b"


def test_a_capacity_of_nothing_is_refused() -> None:
    """At least one."""
    with pytest.raises(ValueError, match="expected 1 or more"):
        Recovery(0)


EVENTS = st.one_of(
    st.builds(
        Changed,
        st.sampled_from("abc"),
        st.sampled_from(["CLOSED", "OPEN", "HALF_OPEN"]),
        st.sampled_from([0.0, 10.0, 300.0, math.inf]),
    ),
    st.builds(Failed, st.sampled_from("abc")),
    st.just(Tick()),
)
STORIES = st.lists(st.tuples(st.sampled_from([0, 0.5, 9, 59, 60, 61, 600]), EVENTS), max_size=30)


def reference(full: int, story: Sequence[tuple[float, Event]]) -> int:
    """Slots after a story of (moment, event), by the rules as a person would tell them."""
    last: dict[str, tuple[str, float]] = {}
    growth: float | None = None
    now = 0.0
    for now, event in story:
        if isinstance(event, Failed) and growth is not None and now < growth + 120:
            growth = now
        if isinstance(event, Changed):
            broken = {name for name, (state, _) in last.items() if state != "CLOSED"}
            last[event.name] = (event.state, now)
            if event.state != "CLOSED":
                growth = None
            elif broken == {event.name}:
                growth = now
    states = [(state, since) for state, since in last.values() if state != "CLOSED"]
    if any(state == "HALF_OPEN" and now < since + 600 for state, since in states):
        return 1
    if states:
        return max(1, math.floor(full * 2 / 5))
    share = 100 if growth is None else min(100, 50 + 25 * math.floor((now - growth) / 60))
    return math.ceil(full * share / 100)


@given(story=STORIES, full=st.integers(1, 40))
def test_any_story_gives_what_the_rules_say(story: list[tuple[float, Event]], full: int) -> None:
    """Compared with the reference after every event."""
    state, now, past = Recovery(full), 0.0, []
    for wait, event in story:
        now += wait
        past.append((now, event))
        state = step(state, event, now)
        assert state.capacity == reference(full, past)


@given(story=STORIES, full=st.integers(1, 40))
def test_time_alone_only_gives_back(story: list[tuple[float, Event]], full: int) -> None:
    """When nothing fails capacity never falls, changes only when announced, and ends."""
    state, now = Recovery(full), 0.0
    for wait, event in story:
        now += wait
        state = step(state, event, now)
    for _ in range(20):
        moment = next_change(state)
        if moment is None:
            break
        early = step(state, Tick(), math.nextafter(moment, -math.inf))
        assert early.capacity == state.capacity
        assert all(
            early.admits(urgent=urgent, circuit=circuit)
            == state.admits(urgent=urgent, circuit=circuit)
            for urgent in (True, False)
            for circuit in (None, "a", "b", "c")
        )
        later = step(state, Tick(), moment)
        assert later.capacity >= state.capacity
        state = later
    assert next_change(state) is None
