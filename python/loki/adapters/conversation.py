"""What adapters keep of conversations: where a text stands in them, and which are to be stopped.

Under test: ``tests/py/adapters/test_conversation.py``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from loki.decision.monitor import Reaction

_T = TypeVar("_T")

KEPT = 512
"""Conversations and stops that are kept; who comes back later is one that is new. Chosen."""


class Conversations:
    """Places of texts in conversations, and stops that wait for the next request.

    A text that loki adds to requests is no part of a conversation's messages. It goes to the end of
    the first request that has it and keeps that place in later ones: what stands before it stays
    byte for byte what the service has seen, so that its prompt cache holds.

    A stop waits for the next request to the model, so that every tool call that was made has its
    result in the messages: a conversation that ends in the middle of calls cannot be gone on with.

    Thread-safe: agents run tools and conversations in parallel.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._stops: OrderedDict[str, Reaction] = OrderedDict()
        self._lock = Lock()

    def place(self, conversation: str, text: str, end: int) -> int:
        """Where a text stands: the number of messages before it.

        Args:
            conversation: what tells it from others, its run's id for instance.
            text: what is added.
            end: messages that the conversation has now.

        Example:
            >>> kept = Conversations()
            >>> [kept.place("run", "a sign", end) for end in (3, 5, 7)], kept.place("run", "two", 7)
            ([3, 3, 3], 7)
        """
        with self._lock:
            at = min(end, self._places.setdefault((conversation, text), end))
            _keep(self._places, (conversation, text))
            return at

    def hold(self, call: str, reaction: Reaction) -> None:
        """Keep a stop for the request that has the result of the call with that id; no other reaction."""
        if reaction.kind == "stop":
            with self._lock:
                self._stops[call] = reaction
                _keep(self._stops, call)

    def raise_held(self, calls: Iterable[str]) -> None:
        """Stop, if one of these calls was a reason to.

        Args:
            calls: ids of the calls whose results are in the request.

        Raises:
            AgentStuck: it was.
        """
        with self._lock:
            held = [self._stops.pop(call) for call in calls if call in self._stops]
        for reaction in held:
            reaction.raise_if_stop()


def _keep(kept: OrderedDict[_T, Any], key: _T) -> None:
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)
