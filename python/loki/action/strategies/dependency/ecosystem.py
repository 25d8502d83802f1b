"""What is known of each language's packages: ``ecosystems.yml``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

MAX_LINES, MAX_LENGTH = 400, 1000
"""Lines of output that are searched for a module, and characters of each; chosen, not measured."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Manifest(_Model):
    """A file that says what is required, and the format that it is written in."""

    file: str
    format: str


class Install(_Model):
    """A way to install a package; ``file``: what the project has where this way is its own."""

    command: tuple[str, ...]
    file: str = ""
    declared: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class Ecosystem(_Model):
    """The packages of one or a few languages."""

    name: str
    languages: tuple[str, ...]
    names: re.Pattern[str]
    modules: tuple[re.Pattern[str], ...]
    conflicts: tuple[re.Pattern[str], ...]
    manifests: tuple[Manifest, ...]
    install: tuple[Install, ...]
    packages: Mapping[str, str]
    environments: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    types: str = ""


class _File(_Model):
    version: int
    ecosystems: tuple[Ecosystem, ...]


class Missing(_Model):
    """What a tool misses: a module as the code imports it, perhaps only a name in it, or a package
    that the tool names itself."""

    module: str = ""
    name: str = ""
    package: str = ""


@cache
def ecosystems() -> tuple[Ecosystem, ...]:
    """Those that this release knows.

    Example:
        >>> [ecosystem.name for ecosystem in ecosystems()]
        ['python', 'npm', 'go', 'cargo']
    """
    import yaml

    path = Path(__file__).with_name("ecosystems.yml")
    return _File.model_validate(yaml.safe_load(path.read_text("utf-8"))).ecosystems


def of_language(language: str | None) -> tuple[Ecosystem, ...]:
    """The ecosystem of a language; all of them where it has none, or is unknown."""
    found = tuple(known for known in ecosystems() if language in known.languages)
    return found or ecosystems()


def missing_in(texts: Sequence[str], known: Ecosystem) -> Missing | None:
    """What the first of some texts that says so calls missing.

    Args:
        texts: the message first, then what surrounds it.
        known: the ecosystem whose tools may have said it.

    Example:
        >>> missing_in(["No module named 'yaml'"], ecosystems()[0]).module
        'yaml'
    """
    for text in texts:
        for line in text.splitlines()[:MAX_LINES]:
            for pattern in known.modules:
                if match := pattern.search(line[:MAX_LENGTH]):
                    return Missing(**{k: v for k, v in match.groupdict().items() if v})
    return None


def conflicts_in(text: str, known: Ecosystem) -> list[tuple[str, str]]:
    """(who, what they want) of each line that tells a side of a conflict, in order.

    Example:
        >>> conflicts_in("requests 2.28.0 depends on urllib3<1.27", ecosystems()[0])
        [('requests 2.28.0', 'urllib3<1.27')]
    """
    found: dict[tuple[str, str], None] = {}
    for line in text.splitlines()[:MAX_LINES]:
        for pattern in known.conflicts:
            if match := pattern.search(line[:MAX_LENGTH].rstrip()):
                found[(match["who"] or "").strip(), (match["what"] or "").strip()] = None
                break
    return list(found)
