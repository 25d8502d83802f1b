"""The words of a task and of files, so that one can be held against the other; pure.

The knowledge is data, in ``drift.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from loki.decision.drift.path_kinds import any_glob

TELLING = 6
"""Characters from which on a name of several words is no chance. Chosen, not measured."""

PIECE = 4
"""Characters of a word from which on it is looked for inside others. Chosen, not measured."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_QUOTED = re.compile(r"""['"`\u2018]([\w./\\:@-]{1,200})['"`\u2019]""")
_DEFINED = re.compile(
    r"\b(?:def|class|func|fn|function|const|let|var|type|struct|interface|enum|trait|module|record|val)"
    r"\s+(?:\([^)\n]{0,60}\)\s*)?([^\W\d]\w*)"
)
_CONSTANT = re.compile(r"^([A-Z][A-Z0-9_]{2,})\s*[:=]", re.MULTILINE)
_IMPORT = re.compile(
    r"^\s*(?:import|from|export\b.*\bfrom|#\s*include|use|using|mod|pub\s+mod|require|package)\b.*"
    r"|^.*\brequire\(.*",
    re.MULTILINE,
)
_NAME = re.compile(r"[^\W\d]\w*")
_SUFFIX = re.compile(
    r"(?:ations?|ators?|itions?|ions?|ings?|ments?|ies|ied|ates?|ed|es|ers?|s|e|y)$"
)

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def known() -> dict[str, Any]:
    """What ``drift.yml`` says."""
    text = Path(__file__).with_name("drift.yml").read_text("utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    data["stop"] = frozenset(data["stop"].split())
    data["synonyms"] = [frozenset(map(stem, group.split())) for group in data["synonyms"]]
    for name in ("manifest", "small_companion", "generated", "weighty"):
        data[name] = any_glob(data[name])
    for rule in (*data["protected"], *data["commands"]):
        for key in ("path", "asked", "match"):
            if key in rule:
                rule[key] = re.compile(rule[key])
    for name in ("asks_removal", "asks_format"):
        data[name] = re.compile(data[name])
    return data


def words_of(text: str) -> frozenset[str]:
    """Stems of the words of a text that tell something, names taken apart.

    Example:
        >>> sorted(words_of("Fix the failing login test of the UserStore"))
        ['login', 'stor', 'us', 'userstor']
    """
    # "FreeBSD" is written "freebsd" elsewhere: whole words count beside their parts.
    whole = [name for name in _NAME.findall(text) if name.isalpha() and not name.islower()]
    found = (part.lower() for part in (*_PART.findall(text), *whole))
    told = (word for word in found if len(word) > (2 if word.isdigit() else 1))
    return frozenset(stem(word) for word in told if word not in known()["stop"])


@lru_cache(4096)
def stem(word: str) -> str:
    """A word without its ending, as far as a rule of thumb goes.

    Example:
        >>> stem("translation"), stem("translate"), stem("retries"), stem("retry")
        ('transl', 'transl', 'retr', 'retr')
    """
    cut = _SUFFIX.sub("", word)
    return cut if len(cut) > 1 else word


def alike(one: Collection[str], others: Collection[str]) -> set[str]:
    """The words of ``one`` that occur in the others, also as a part of a longer one."""
    long = [word for word in others if len(word) >= PIECE]
    return {
        word
        for word in one
        if word in others or (len(word) >= PIECE and any(_is_part(word, o) for o in long))
    }


def _is_part(one: str, other: str) -> bool:
    """Whether a word begins or ends with the other: ``pyyaml`` and ``yaml``."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) or long.endswith(short)


def path_words(path: str) -> frozenset[str]:
    """The words that a path tells: of its name, and of the two folders above it."""
    name = PurePosixPath(path)
    return words_of(" ".join((*name.parts[-3:-1], name.name.partition(".")[0])))


GENERIC = frozenset(
    {
        *("index", "main", "app", "utils", "util", "helpers", "helper", "common", "types", "type"),
        *(
            "models",
            "model",
            "views",
            "view",
            "base",
            "core",
            "lib",
            "mod",
            "test",
            "tests",
            "init",
        ),
        *(
            "config",
            "settings",
            "constants",
            "errors",
            "setup",
            "data",
            "conftest",
            "README",
            "src",
        ),
        *("client", "server", "api", "manager", "handler", "service", "routes", "schema", "state"),
    }
)
"""Names of files that say nothing of what they are about."""


def synonyms(words: Collection[str]) -> frozenset[str]:
    """What else the words may be called."""
    groups = known()["synonyms"]
    return frozenset().union(*(group for group in groups if not group.isdisjoint(words)))


def modules_in(failure: str) -> set[tuple[str, ...]]:
    """Modules that a failure names in quotes, as parts of a path."""
    found = _QUOTED.findall(failure)
    split = (tuple(p for p in re.split(r"[./\\]|::", name) if p) for name in found)
    return {parts for parts in split if parts}


def is_module(path: str, module: tuple[str, ...]) -> bool:
    """Whether a file is a module: ``report/tables.py`` is ``report.tables``."""
    name = PurePosixPath(path)
    parts = (*name.parts[:-1], name.name.split(".")[0])
    if parts[-1] in {"__init__", "index", "mod"}:
        parts = parts[:-1]
    return parts[-len(module) :] == module


def is_telling(word: str) -> bool:
    """A name that two changes hardly use by chance: one made of several words."""
    return len(word) >= TELLING and len(_PART.findall(word)) > 1


def defined_in(text: str) -> frozenset[str]:
    """The names that lines of code define, as far as a glance tells.

    Example:
        >>> sorted(defined_in("def read_all(path): return 1\\nexport const MAX_AGE = 3\\n"))
        ['MAX_AGE', 'read_all']
    """
    return frozenset(_DEFINED.findall(text)) | frozenset(_CONSTANT.findall(text))


def imported_in(text: str) -> frozenset[str]:
    """The names in lines of code that import, as far as a glance tells.

    Example:
        >>> sorted(imported_in("from app.store import Store\\nx = 1\\nconst a = require('./b')\\n"))
        ['Store', 'a', 'app', 'b', 'const', 'from', 'import', 'require', 'store']
    """
    return names_in("\n".join(_IMPORT.findall(text)))


def names_in(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(_NAME.findall(text))
