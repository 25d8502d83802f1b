"""For tests of code that uses loki.

A clock that obeys, a store without files, an agent and a model that say what they are told, what
forbids calls to models, and the contracts that models and agents are tested by.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loki.agents.contract import AgentContract, LLMContract
from loki.agents.scripted import ScriptedAgent, ScriptedLLM
from loki.base.manual_clock import ManualClock
from loki.stores.memory_store import MemoryStore

__all__ = [
    "AgentContract",
    "LLMContract",
    "ManualClock",
    "MemoryStore",
    "ScriptedAgent",
    "ScriptedLLM",
    "no_model_calls",
]


@contextmanager
def no_model_calls() -> Iterator[None]:
    """Inside, no model is called over the wire: a call fails with a `loki.LLMError` instead.

    Holds for the whole process. In a ``conftest.py``, for all tests:

        @pytest.fixture(autouse=True)
        def no_calls():
            with loki.testing.no_model_calls():
                yield

    Example:
        >>> from loki.agents.model_call import allow_calls
        >>> with no_model_calls():
        ...     allow_calls(False)
        False
    """
    from loki.agents.model_call import allow_calls

    before = allow_calls(False)
    try:
        yield
    finally:
        allow_calls(before)
