"""Slots for threads and asyncio: never too many, nobody forgotten, nobody overtaken."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.base.error import UsageError
from loki.decision.limiter import Limiter, Slot
from loki.decision.recovery import Changed
from loki.testing import ManualClock
from support import virtual

OPENED = Changed("api/claude", "OPEN")
PROBED = Changed("api/claude", "HALF_OPEN")
CLOSED = Changed("api/claude", "CLOSED")


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def hold(limiter: Limiter, count: int) -> ExitStack:
    stack = ExitStack()
    for _ in range(count):
        stack.enter_context(limiter.slot())
    return stack


def test_as_many_as_there_are_then_in_order() -> None:
    """Five go at once, the rest in the order in which they came."""
    clock, limiter = ManualClock(), Limiter(5)
    order: list[int] = []

    async def work(number: int) -> None:
        async with limiter.slot():
            order.append(number)
            assert limiter.in_use <= 5
            await asyncio.sleep(1)

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(20)))

    virtual.run(clock, main())
    assert order == list(range(20))
    assert clock.monotonic() == pytest.approx(4)
    assert (limiter.in_use, limiter.waiting) == (0, 0)


def test_an_open_circuit_holds_what_can_wait() -> None:
    """Urgent work passes by work that is not, which keeps its place and goes when it is closed."""
    limiter, order = Limiter(5), []

    async def work(name: str, urgent: bool) -> None:
        async with limiter.slot(urgent=urgent):
            order.append(name)

    async def main() -> None:
        limiter.report(OPENED)
        tasks = [asyncio.ensure_future(work(n, n.isupper())) for n in "abCdE"]
        await settle()
        assert order == ["C", "E"]
        limiter.report(CLOSED)
        await settle()
        assert order == ["C", "E", "a", "b", "d"]
        await asyncio.gather(*tasks)

    virtual.run(ManualClock(), main())


def test_capacity_that_grows_wakes_those_who_wait_at_the_exact_moment() -> None:
    """Slots are never given back here: the third to fifth go out as capacity grows, to the second."""
    clock = ManualClock()
    limiter = Limiter(5, clock=clock)
    entered: list[float] = []

    async def work(stack: list[Slot]) -> None:
        slot = limiter.slot()
        await slot.__aenter__()
        stack.append(slot)
        entered.append(clock.monotonic())

    async def main() -> None:
        limiter.report(OPENED)
        tasks = [asyncio.ensure_future(work([])) for _ in range(5)]
        await asyncio.sleep(100)
        limiter.report(PROBED)
        await asyncio.sleep(20)
        limiter.report(CLOSED)
        await asyncio.gather(*tasks)

    virtual.run(clock, main())
    # The first is let out to probe when the circuit is half open.
    assert entered == [100, 120, 120, 180, 240]


def test_a_cooldown_that_ends_lets_somebody_out_to_ask() -> None:
    """Though all work can wait: else nobody would ever close the circuit."""
    clock = ManualClock()
    limiter = Limiter(5, clock=clock)
    limiter.report(OPENED)
    with limiter.slot(circuit="api/claude"):
        assert clock.monotonic() == 300
    assert clock.waits == [300]


def test_only_the_probe_goes_out() -> None:
    """While a circuit is half open, work that names another waits, and one slot is all."""
    limiter, order = Limiter(5), []

    async def work(circuit: str | None) -> None:
        async with limiter.slot(urgent=True, circuit=circuit):
            order.append(circuit)
            await settle()

    async def main() -> None:
        limiter.report(PROBED)
        names = ["api/openai", "api/claude", None]
        tasks = [asyncio.ensure_future(work(name)) for name in names]
        await asyncio.sleep(0)
        assert (order, limiter.in_use) == (["api/claude"], 1)
        await settle()
        await settle()
        assert order == ["api/claude", None]
        limiter.report(CLOSED)
        await asyncio.gather(*tasks)

    virtual.run(ManualClock(), main())
    assert order[-1] == "api/openai"


def test_slots_that_are_out_stay_out() -> None:
    """Five are out when a circuit opens: nothing is taken back, and nothing goes out until one is left."""
    limiter = Limiter(5)
    done = threading.Event()

    def work() -> None:
        with limiter.slot(urgent=True):
            done.set()

    with hold(limiter, 1):
        with hold(limiter, 4):
            limiter.report(OPENED)
            assert (limiter.capacity, limiter.in_use) == (2, 5)
            thread = threading.Thread(target=work)
            thread.start()
            while not limiter.waiting:
                pass
            assert not done.is_set()
        thread.join(60)
        assert done.is_set()


@pytest.mark.parametrize("moment", ["waiting", "granted", "inside"])
def test_a_cancelled_task_leaves_no_trace(moment: str) -> None:
    """Whether it waits, was just granted a slot, or works: its slot goes to the next."""
    limiter = Limiter(1)

    async def work() -> None:
        async with limiter.slot():
            await asyncio.Event().wait()

    async def main() -> None:
        first = limiter.slot()
        if moment != "inside":
            await first.__aenter__()
        task = asyncio.ensure_future(work())
        await settle()
        if moment == "granted":
            await first.__aexit__()  # the task is granted the slot, and has not yet run
            assert limiter.in_use == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if moment == "waiting":
            await first.__aexit__()
        assert (limiter.in_use, limiter.waiting) == (0, 0)

    virtual.run(ManualClock(), main())


def test_what_is_raised_inside_gives_the_slot_back() -> None:
    """An error passes through."""
    limiter = Limiter(1)
    for _ in range(3):
        with pytest.raises(KeyError), limiter.slot():
            raise KeyError
    assert limiter.in_use == 0


def test_a_wait_that_is_interrupted_leaves_the_line() -> None:
    """As by Ctrl-C."""

    class Interrupted(ManualClock):
        def wait(self, *_: object) -> None:
            raise KeyboardInterrupt

    limiter = Limiter(5, clock=Interrupted())
    limiter.report(OPENED)
    with pytest.raises(KeyboardInterrupt), limiter.slot():
        pass
    assert (limiter.in_use, limiter.waiting) == (0, 0)


def test_a_slot_is_for_one_work() -> None:
    """Entered twice at once it is misuse; one after the other is not."""
    limiter = Limiter(5)
    slot = limiter.slot()
    with slot, pytest.raises(UsageError, match="second time"):
        slot.__enter__()
    with slot:
        assert limiter.in_use == 1


class Count:
    """How many are inside, at most were, and have been."""

    def __init__(self) -> None:
        self.inside = self.most = self.entered = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.inside, self.entered = self.inside + 1, self.entered + 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


def in_threads(limiter: Limiter, count: Count, seed: int) -> None:
    """Works 200 times, and breaks a circuit for a moment now and then."""
    chance = random.Random(seed)
    for _ in range(200):
        with limiter.slot(urgent=chance.random() < 0.5, circuit=chance.choice("ab")), count:
            pass
        if chance.random() < 0.1:
            limiter.report(Changed("a", chance.choice(["OPEN", "HALF_OPEN"])))
            limiter.report(Changed("a", "CLOSED"))


def in_tasks(limiter: Limiter, count: Count, seed: int) -> None:
    """Eight tasks work 100 times each; many give up waiting."""

    async def one(urgent: bool) -> None:
        async with limiter.slot(urgent=urgent):
            with count:
                await asyncio.sleep(0)

    async def task(chance: random.Random) -> None:
        for _ in range(100):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(one(chance.random() < 0.5), chance.choice([0.0005, 60]))

    async def main() -> None:
        await asyncio.gather(*(task(random.Random(seed + n)) for n in range(8)))

    asyncio.run(main())


def test_threads_and_tasks_share_a_limiter() -> None:
    """Threads and two event loops at once, circuits that break: never too many, all get through."""
    limiter, count = Limiter(4), Count()
    threads = [
        threading.Thread(target=work, args=(limiter, count, seed), daemon=True)
        for seed, work in enumerate((in_threads, in_threads, in_threads, in_tasks, in_tasks))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert (limiter.in_use, limiter.waiting, count.inside) == (0, 0, 0)
    assert count.most <= 4
    assert count.entered >= 600


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.booleans(), st.sampled_from([None, "a", "b"])),
        st.tuples(st.just("leave"), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.sampled_from([1, 59, 60, 61, 300, 600])),
        st.tuples(
            st.just("report"),
            st.sampled_from("ab"),
            st.sampled_from(["OPEN", "HALF_OPEN", "CLOSED"]),
        ),
    ),
    max_size=40,
)


@given(steps=STEPS, full=st.integers(1, 6))
def test_any_sequence_keeps_the_promises(steps: list[tuple[Any, ...]], full: int) -> None:
    """No slot goes out over capacity, and nobody waits beside a free slot that he may have."""
    clock = ManualClock()
    limiter = Limiter(full, clock=clock)
    virtual.run(clock, _play(clock, limiter, steps))


async def _play(clock: ManualClock, limiter: Limiter, steps: list[tuple[Any, ...]]) -> None:
    leave: dict[asyncio.Task[None], asyncio.Event] = {}
    inside: list[asyncio.Task[None]] = []

    async def work(end: asyncio.Event, urgent: bool, circuit: str | None) -> None:
        me = asyncio.current_task()
        assert me
        async with limiter.slot(urgent=urgent, circuit=circuit):
            inside.append(me)
            try:
                await end.wait()
            finally:
                inside.remove(me)

    for kind, *arguments in steps:
        before = len(inside)
        waited = [task for task in leave if not task.done() and task not in inside]
        if kind == "enter":
            end = asyncio.Event()
            leave[asyncio.ensure_future(work(end, *arguments))] = end
        elif kind == "leave" and inside:
            leave[inside[arguments[0] % len(inside)]].set()
        elif kind == "cancel" and waited:
            waited[arguments[0] % len(waited)].cancel()
        elif kind == "wait":
            clock.advance(arguments[0])
            limiter.tick()
        elif kind == "report":
            limiter.report(Changed(*arguments))
        await settle()
        assert limiter.in_use == len(inside)
        assert len(inside) <= max(before, limiter.capacity)
        waiting = [task for task in leave if not task.done() and task not in inside]
        assert limiter.waiting == len(waiting)
        assert len(inside) >= limiter.capacity or not any(
            limiter._state.admits(urgent=ticket.urgent, circuit=ticket.circuit)
            for ticket in limiter._line
        )
    for task in leave:
        task.cancel()
    await asyncio.gather(*leave, return_exceptions=True)
    assert (limiter.in_use, limiter.waiting) == (0, 0)
