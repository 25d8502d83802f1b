"""Where texts stand in conversations, and which conversations are to be stopped."""

from __future__ import annotations

import pytest

import loki
from loki.adapters.conversation import KEPT, Conversations
from loki.decision.monitor import Reaction


def test_a_text_keeps_its_place() -> None:
    kept = Conversations()
    assert [kept.place("run", "sign", end) for end in (1, 3, 5)] == [1, 1, 1]
    assert kept.place("run", "another sign", 5) == 5
    assert kept.place("another run", "sign", 3) == 3


def test_of_a_history_that_was_cut_it_is_the_end() -> None:
    kept = Conversations()
    assert kept.place("run", "sign", 9) == 9
    assert kept.place("run", "sign", 4) == 4


def test_only_so_many_are_kept() -> None:
    kept = Conversations()
    for number in range(KEPT + 1):
        kept.place(str(number), "sign", 1)
    assert kept.place("0", "sign", 5) == 5
    assert kept.place(str(KEPT), "sign", 5) == 1


def test_a_stop_waits_for_the_request_with_its_result() -> None:
    kept = Conversations()
    kept.hold("call-1", Reaction("stop", "stuck", "repeat", None, 4))
    kept.hold("call-2", Reaction("nudge", "try another way"))
    kept.raise_held(["call-2", "call-3"])
    with pytest.raises(loki.AgentStuck, match="stuck"):
        kept.raise_held(["call-3", "call-1"])
    kept.raise_held(["call-1"])  # said once: whoever goes on may
