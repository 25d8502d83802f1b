"""The fallback chain's machine, transition by transition."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.decision.backoff import Backoff
from loki.decision.fallback_policy import (
    LESS_HELPS,
    TABLE,
    Answered,
    Begin,
    Call,
    Cancelled,
    Chain,
    Denied,
    Effect,
    Event,
    Failed,
    IllegalTransition,
    Irreducible,
    Phase,
    Reduce,
    Reduced,
    Refused,
    Spent,
    Wait,
    Waited,
    step,
)

PLAIN = Backoff("5s", cap="5m", jitter=0)
EVENTS = (Begin, Answered, Refused, Failed, Waited, Denied, Reduced, Irreducible, Spent, Cancelled)
OUTAGE = Failed(kind="server")
NO_KEY = Failed(retryable=False, kind="authentication")
TOO_LONG = Failed(retryable=False, kind="too_long")


def through(
    *events: Event, members: int = 2, retries: int = 5
) -> tuple[Chain, list[Effect | None]]:
    """The chain after events, and every effect on the way."""
    chain = Chain(members, PLAIN, retries)
    effects: list[Effect | None] = []
    for event in (Begin(), *events):
        chain, effect = step(chain, event)
        effects.append(effect)
    return chain, effects


@pytest.mark.parametrize(
    ("events", "effect"),
    [
        ([], Call(0)),
        ([Answered()], None),
        ([Refused(300)], Call(1)),
        ([OUTAGE], Wait(0, 5)),
        ([OUTAGE, Waited()], Call(0)),
        ([OUTAGE, Denied()], Call(1)),
        ([Failed(refused=Refused(300))], Call(1)),
        ([Failed(retry_after=301)], Call(1)),
        ([Failed(retry_after=300)], Wait(0, 300)),
        ([Failed(left=4)], Call(1)),
        ([Failed(final=True)], Call(1)),
        ([NO_KEY], Call(1)),
        ([NO_KEY, NO_KEY], None),
        ([TOO_LONG, NO_KEY], Reduce()),
        ([TOO_LONG, NO_KEY, Reduced()], Call(0)),
        ([NO_KEY, TOO_LONG, Reduced()], Call(1)),
        ([TOO_LONG, NO_KEY, Irreducible()], None),
        ([TOO_LONG, NO_KEY, Reduced(), Failed(kind="timeout")], Reduce()),
        ([TOO_LONG, NO_KEY, Reduced(), Failed(kind="timeout"), Reduced()], Call(0)),
        ([TOO_LONG, NO_KEY, Reduced(), TOO_LONG, Reduced(), TOO_LONG], None),
        ([TOO_LONG, TOO_LONG, Reduced(), NO_KEY], Call(1)),
        ([Spent()], None),
        ([Cancelled()], None),
        ([OUTAGE, Cancelled()], None),
        ([Refused(300), Refused(10)], None),
    ],
)
def test_the_table(events: list[Event], effect: object) -> None:
    assert through(*events)[1][-1] == effect


@pytest.mark.parametrize(
    ("events", "ending"),
    [
        ([Answered()], "answered"),
        ([Refused(300), Refused(10)], "refused"),
        ([Refused(None), Refused(None)], "refused"),
        ([Refused(None), NO_KEY], "failed"),
        ([Refused(300), NO_KEY], "refused"),
        ([Failed(retry_after=3600), NO_KEY], "refused"),
        ([Failed(left=4), NO_KEY], "refused"),
        ([NO_KEY, NO_KEY], "failed"),
        ([TOO_LONG, NO_KEY, Irreducible()], "failed"),
        ([Spent()], "spent"),
        ([Cancelled()], "cancelled"),
    ],
)
def test_endings(events: list[Event], ending: str) -> None:
    assert through(*events)[0].ending == ending


def test_waits_grow_and_end_after_five_retries() -> None:
    _, effects = through(*[OUTAGE, Waited()] * 5, OUTAGE)
    waits = [effect.seconds for effect in effects if isinstance(effect, Wait)]
    assert waits == [5, 10, 20, 40, 80]
    assert effects[-1] == Call(1)


def test_the_next_one_has_retries_of_its_own() -> None:
    _, effects = through(NO_KEY, *[OUTAGE, Waited()] * 5, OUTAGE, members=3)
    assert [e.seconds for e in effects if isinstance(e, Wait)] == [5, 10, 20, 40, 80]
    assert effects[-1] == Call(2)


def test_the_hint_is_obeyed_where_it_is_longer() -> None:
    assert through(Failed(retry_after=42))[1][-1] == Wait(0, 42)
    assert through(Failed(retry_after=1))[1][-1] == Wait(0, 5)


def test_less_work_is_never_retried() -> None:
    _, effects = through(TOO_LONG, Reduced(), Failed(kind="timeout"), members=1)
    assert effects[-1] == Reduce()
    assert not [effect for effect in effects if isinstance(effect, Wait)]


def test_who_is_refused_is_not_asked_for_less() -> None:
    chain, effects = through(Failed(kind="timeout", refused=Refused(300)), TOO_LONG, Reduced())
    assert effects[-1] == Call(1)
    assert chain.retry_after == 300


def test_no_other_event_is_expected() -> None:
    for phase, kind in itertools.product(Phase, EVENTS):
        if (phase, kind) not in TABLE:
            with pytest.raises(IllegalTransition):
                step(Chain(2, phase=phase), kind())


FAILURES = st.builds(
    Failed,
    retryable=st.booleans(),
    kind=st.sampled_from([*LESS_HELPS, "server", "connection", "authentication"]),
    retry_after=st.none() | st.floats(0, 1000),
    refused=st.none() | st.just(Refused(300)),
    final=st.booleans(),
    left=st.none() | st.floats(0, 1000),
)


@given(st.data(), st.integers(1, 4), st.integers(0, 5))
def test_it_ends_within_its_bounds(data: st.DataObject, members: int, retries: int) -> None:
    """Whatever happens: a bounded number of calls, and none to who is refused."""
    chain = Chain(members, PLAIN, retries)
    chain, effect = step(chain, Begin())
    calls = dict.fromkeys(range(members), 0)
    refused: set[int] = set()
    while effect is not None:
        event: Event
        if isinstance(effect, Call):
            assert effect.member not in refused
            calls[effect.member] += 1
            event = data.draw(FAILURES | st.builds(Refused, st.none() | st.floats(0, 300)))
            if isinstance(event, Refused) or event.refused is not None:
                refused.add(effect.member)
        elif isinstance(effect, Wait):
            assert effect.seconds <= 300
            event = data.draw(st.sampled_from([Waited(), Denied()]))
        else:
            event = data.draw(st.sampled_from([Reduced(), Irreducible()]))
        chain, effect = step(chain, event)
    assert chain.phase is Phase.DONE
    assert max(calls.values()) <= 1 + retries + 2
    assert chain.ending in {"refused", "failed"}
