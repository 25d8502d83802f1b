"""The seam to agents for text alone: a question in, words out; nothing in the project changes."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

ANSWER_TOKENS = 2_000
"""Tokens of an answer in words, thinking included. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent is asked to say something about; ``str(question)`` is the whole text.

    Attributes:
        text: Markdown.
        task_id: what it is about.
        root: the project's folder, absolute; only loki writes it.
        attempt: which attempt it is about, or which question, 1 or more.
        cancelled: set when whoever asks is being stopped; long work should look at it.
        instructions: what a model is told before, the same for all questions of a kind.
        max_tokens: of the answer, where a model gives it.
        sees_project: whether a program works in a copy of the project, which is thrown away with
            all that it did there; else it works in an empty folder.
        environment: variables that a program gets besides.
        retries: how often it is asked again where its service is out; None: as always.
    """

    text: str
    task_id: str
    root: Path
    attempt: int = 1
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    instructions: str = ""
    max_tokens: int = ANSWER_TOKENS
    sees_project: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    retries: int | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent answered in words.

    Attributes:
        text: its answer, or all that it printed; nothing in it is masked.
        model: name of the model, where there is one.
        tokens, cost: what it took, cost in US dollars, where known.
        changed: paths that it changed in its copy of the project; none of it came to the project.
    """

    text: str
    model: str = ""
    tokens: int | None = None
    cost: float | None = None
    changed: tuple[str, ...] = ()


@runtime_checkable
class Answering(Protocol):
    """An agent that can be asked for text alone; ``ask`` may be ``async``."""

    name: str

    def ask(self, question: Question) -> Said | Awaitable[Said]:
        """What it says; raises `loki.AgentError` where it could not answer."""
