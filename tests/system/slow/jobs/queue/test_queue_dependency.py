"""What waits for what, beside the slow and obvious way: what takes its time."""

from __future__ import annotations

from loki.jobs.queue.queued_task import cycle


def test_a_long_chain_is_no_ring() -> None:
    graph = {str(n): [str(n + 1)] for n in range(50_000)}
    assert list(cycle(graph, ["0"])) == []
    ring = cycle({**graph, "50000": ["0"]}, ["7"])
    assert len(ring) == 50_002
