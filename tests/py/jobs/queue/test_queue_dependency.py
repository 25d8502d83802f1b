"""What waits for what, beside the slow and obvious way."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from loki.jobs.queue.queued_task import OpenDependency, QueuedTask, cycle, waits_for

NAMES = st.sampled_from("abcdef")
GRAPHS = st.dictionaries(NAMES, st.lists(NAMES, max_size=3))


def reached(graph: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    for _ in range(len(graph) + 1):
        found |= {to for name in (start, *found) for to in graph.get(name, ())}
    return found


@given(graph=GRAPHS, starts=st.lists(NAMES, max_size=4))
def test_a_ring_is_found_where_a_task_can_reach_itself(
    graph: dict[str, list[str]], starts: list[str]
) -> None:
    ring = list(cycle(graph, starts))
    near = {name for start in starts for name in (start, *reached(graph, start))}
    assert bool(ring) == any(name in reached(graph, name) for name in near)
    assert all(to in graph[name] for name, to in pairwise(ring))
    assert not ring or (ring[0] == ring[-1] and len(set(ring)) == len(ring) - 1)


def test_only_what_is_completed_is_not_waited_for() -> None:
    lists = {"a": "completed", "b": "failed", "c": "pending"}
    task = QueuedTask("t", "T", dependencies=("a", "b", "c", "d"))
    waiting = waits_for(task, lists.get)  # type: ignore[arg-type]
    assert waiting == (
        OpenDependency("b", "failed"),
        OpenDependency("c", "pending"),
        OpenDependency("d", None),
    )
    assert [one.is_stuck for one in waiting] == [True, False, True]
