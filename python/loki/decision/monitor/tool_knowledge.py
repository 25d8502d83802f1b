"""What tools and programs do, as ``tool-call.yml`` says; `loki.decision.monitor.tool_call` asks it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from loki.decision.monitor.shell_line import Words

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FILE = Path(__file__).with_name("tool-call.yml")


class Effect(str, Enum):
    """What a call of a tool does."""

    READ = "read"
    """It looks at something."""

    WRITE = "write"
    """It changes the project, or what the project stands on."""

    RUN = "run"
    """It runs something: a check, or a program."""

    OTHER = "other"
    """Something else, or nobody knows."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the file says; it says itself what each field means."""

    tools: Mapping[str, Effect]
    parts: Mapping[str, Effect]
    check_parts: frozenset[str]
    command_arguments: frozenset[str]
    path_arguments: frozenset[str]
    silent_arguments: frozenset[str]
    prose: frozenset[str]
    prose_names: frozenset[str]
    sources: frozenset[str]
    tells: Sequence[str]
    tells_alone: frozenset[str]
    words: Words
    looks: frozenset[str]
    looks_of: Mapping[str, Sequence[str]]
    asks: frozenset[str]
    asks_of: Mapping[str, Sequence[str]]
    waits: frozenset[str]
    edits: frozenset[str]
    edits_of: Mapping[str, Sequence[str]]
    waits_of: Mapping[str, Sequence[str]]
    waits_at: re.Pattern[str]
    unless: Mapping[str, Sequence[str]]
    checks: frozenset[str]
    checks_of: Mapping[str, Sequence[str]]
    check_words: frozenset[str]
    test_words: frozenset[str]
    builders: frozenset[str]
    test_targets: frozenset[str]
    mends: Mapping[str, Sequence[str]]
    mends_of: Mapping[str, Sequence[str]]
    mends_unless: Sequence[str]
    mend_words: frozenset[str]
    mend_words_alone: frozenset[str]
    targets: frozenset[str]
    changes: frozenset[str]
    changes_of: Mapping[str, Sequence[str]]
    fetchers: frozenset[str]
    interpreters: frozenset[str]
    steering: frozenset[str]
    editors: frozenset[str]
    waiting_parts: frozenset[str]
    waiting_tools: frozenset[str]
    blind_parts: frozenset[str]
    editor_looks: frozenset[str]
    takes_back_tools: frozenset[str]
    takes_back: frozenset[str]
    takes_back_of: Mapping[str, Sequence[str]]
    no_try: frozenset[str]
    no_try_of: Mapping[str, Sequence[str]]
    old_arguments: frozenset[str]
    new_arguments: frozenset[str]
    not_yet: re.Pattern[str]
    probe: re.Pattern[str]
    scratch: re.Pattern[str]
    tests: re.Pattern[str]
    unread: re.Pattern[str]


_REGEXES = ("waits_at", "not_yet", "probe", "scratch", "tests", "unread")


@cache
def knowledge() -> Knowledge:
    """What the file says, read once."""
    said: dict[str, Any] = yaml.load(FILE.read_text("utf-8"), Loader=_Loader)  # noqa: S506
    words = Words(
        frozenset(said["wrappers"]),
        frozenset(tuple(runner.split()) for runner in said["runners"]),
        frozenset(tuple(runner.split()) for runner in said["scripts"]),
        frozenset(said["shells"]),
        frozenset(said["interpreters"]),
        frozenset(tuple(name.split()) for name in said["joined"]),
        frozenset(tuple(name.split()) for name in said["containers"]),
        frozenset(said["container_values"]),
    )
    sets: dict[str, Any] = {
        name: frozenset(said[name])
        for name in (
            *("check_parts", "command_arguments", "path_arguments", "silent_arguments", "prose"),
            *("looks", "checks", "check_words", "test_words", "changes", "fetchers", "steering"),
            *("asks", "waits", "edits", "interpreters", "prose_names", "sources", "tells_alone"),
            *("mend_words", "mend_words_alone", "targets", "editors", "editor_looks"),
            *("waiting_parts", "waiting_tools", "blind_parts", "builders", "test_targets"),
            *("takes_back_tools", "takes_back", "no_try", "old_arguments", "new_arguments"),
        )
    }
    maps: dict[str, Any] = {
        name: said[name]
        for name in (
            *("looks_of", "unless", "checks_of", "mends", "mends_unless", "changes_of"),
            *("asks_of", "waits_of", "edits_of", "mends_of", "tells", "takes_back_of", "no_try_of"),
        )
    }
    regexes: dict[str, Any] = {name: re.compile(said[name]) for name in _REGEXES}
    return Knowledge(
        tools=_by_word(said["tools"]),
        parts=_by_word(said["parts"]),
        words=words,
        **regexes,
        **sets,
        **maps,
    )


def _by_word(said: Mapping[str, Sequence[str]]) -> dict[str, Effect]:
    return {word: Effect(effect) for effect, words in said.items() for word in words}
