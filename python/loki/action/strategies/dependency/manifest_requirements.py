"""What a project's manifests require, properly parsed.

Each format has a reader; which file has which format stands in ``ecosystems.yml``. A manifest that
cannot be read requires nothing: to say what is wrong with it is the checks' own business.
"""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as PythonRequirement
from packaging.utils import canonicalize_name

from loki.base.toml import tomllib
from loki.base.yaml_document import Strict, read_beside

# --- What is known of each language's packages: ``ecosystems.yml`` ------------------------------------

MAX_LINES, MAX_LENGTH = 400, 1000
"""Lines of output that are searched for a module, and characters of each; chosen, not measured."""


class Manifest(Strict):
    """A file that says what is required, and the format that it is written in."""

    file: str
    format: str


class Install(Strict):
    """A way to install a package; ``file``: what the project has where this way is its own."""

    command: tuple[str, ...]
    file: str = ""
    declared: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class Ecosystem(Strict):
    """The packages of one or a few languages."""

    name: str
    languages: tuple[str, ...]
    sources: tuple[str, ...]
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


class _File(Strict):
    version: int
    ecosystems: tuple[Ecosystem, ...]


class Missing(Strict):
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
    return read_beside(__file__, "ecosystems.yml", _File).ecosystems


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


# --- What manifests require ---------------------------------------------------------------------------

MAX_MANIFESTS = 200
"""Of one ecosystem that are read; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that a manifest requires.

    Attributes:
        name: as it is written.
        wanted: the versions, as they are written; "" for any.
        path: of the manifest.
        line: in it, from 1.
        section: which of its lists: dependencies, dev-dependencies, …
    """

    name: str
    wanted: str
    path: str
    line: int
    section: str

    def __str__(self) -> str:
        is_sign = self.wanted.startswith(("<", ">", "=", "!", "~="))
        space = "" if is_sign or not self.wanted else " "
        return f"{self.name}{space}{self.wanted}"


def requirements(
    known: Ecosystem, paths: Sequence[str], read: Callable[[str], str]
) -> list[Requirement]:
    """What the manifests of an ecosystem require, in the order of its list of manifests.

    Args:
        known: the ecosystem.
        paths: all paths of the project.
        read: the text of one.
    """
    found: list[Requirement] = []
    for manifest, path in manifests(known, paths):
        text = read(path)
        try:
            found += _placed(path, text, READERS[manifest](text))
        except (ValueError, TypeError, AttributeError, configparser.Error, RecursionError):
            continue
    return found


def manifests(known: Ecosystem, paths: Sequence[str]) -> list[tuple[str, str]]:
    """(format, path) of the manifests that a project has."""
    found = [
        (manifest.format, path)
        for manifest in known.manifests
        for path in paths
        if path.count("/") == manifest.file.count("/") and fnmatchcase(path, manifest.file)
    ]
    return found[:MAX_MANIFESTS]


def same_name(one: str, other: str, ecosystem: str) -> bool:
    """Whether two names mean one package.

    Example:
        >>> same_name("PyYAML", "pyyaml", "python"), same_name("serde_json", "serde-json", "cargo")
        (True, True)
    """
    return plain_name(one, ecosystem) == plain_name(other, ecosystem)


def plain_name(name: str, ecosystem: str) -> str:
    """A package's name, as equal ones are written alike."""
    if ecosystem == "python":
        return str(canonicalize_name(name))
    return name.replace("-", "_") if ecosystem == "cargo" else name


Entry = tuple[str, str, str]
"""Name, wanted versions, section."""


def _placed(path: str, text: str, entries: Iterator[Entry]) -> list[Requirement]:
    """The entries with the lines on which they stand: each name is looked for behind the one before."""
    found = []
    wanted = list(entries)
    places: dict[str, list[int]] = {name: [] for name, _, _ in wanted}
    for number, line in enumerate(text.splitlines(), 1):
        for word in set(re.findall(r"[@\w][\w./@-]*", line)) & places.keys():
            places[word].append(number)
    for name, versions, section in wanted:
        lines = places[name] or [1]
        found.append(Requirement(name, versions, path, lines[0], section))
        places[name] = lines[1:] or lines
    return found


# --- The formats --------------------------------------------------------------------------------------


def _pyproject(text: str) -> Iterator[Entry]:
    data = tomllib.loads(text)
    project = data.get("project") or {}
    yield from _python_lines(project.get("dependencies"), "dependencies")
    for name, lines in (project.get("optional-dependencies") or {}).items():
        yield from _python_lines(lines, f"optional-dependencies.{name}")
    for name, lines in (data.get("dependency-groups") or {}).items():
        yield from _python_lines(lines, f"dependency-groups.{name}")
    tool = data.get("tool") or {}
    poetry = tool.get("poetry") or {}
    yield from _table(poetry.get("dependencies"), "dependencies", skip="python")
    yield from _table(poetry.get("dev-dependencies"), "dev-dependencies")
    for name, group in (poetry.get("group") or {}).items():
        yield from _table(group.get("dependencies"), f"group.{name}")
    yield from _python_lines((tool.get("uv") or {}).get("dev-dependencies"), "dev-dependencies")
    yield from _python_lines((data.get("build-system") or {}).get("requires"), "build-system")


def _python_lines(lines: Any, section: str) -> Iterator[Entry]:
    for line in lines or ():
        if not isinstance(line, str):
            continue  # a group that includes another
        try:
            parsed = PythonRequirement(line)
        except InvalidRequirement:
            continue
        yield parsed.name, str(parsed.specifier), section


def _requirements(text: str) -> Iterator[Entry]:
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ")
    lines = (re.sub(r"(?:^|\s)#.*|\s--\w.*", "", line).strip() for line in joined.splitlines())
    yield from _python_lines([line for line in lines if line and line[0] != "-"], "requirements")


def _setup_cfg(text: str) -> Iterator[Entry]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    if parser.has_section("options"):
        lines = parser.get("options", "install_requires", fallback="")
        yield from _python_lines(lines.splitlines(), "install_requires")
    if parser.has_section("options.extras_require"):
        for name, lines in parser.items("options.extras_require"):
            yield from _python_lines(lines.splitlines(), f"extras_require.{name}")


def _pipfile(text: str) -> Iterator[Entry]:
    data = tomllib.loads(text)
    yield from _table(data.get("packages"), "packages")
    yield from _table(data.get("dev-packages"), "dev-packages")


def _package_json(text: str) -> Iterator[Entry]:
    data = json.loads(text)
    for section in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        yield from _table(data.get(section), section)


def _go_mod(text: str) -> Iterator[Entry]:
    inside = ""
    for raw in text.splitlines():
        line = raw.partition("//")[0].strip()
        if line == ")":
            inside = ""
        elif match := re.fullmatch(r"(\w+)\s*\(", line):
            inside = match[1]
        else:
            words = line.split()
            if not inside and len(words) > 1:
                verb, *words = words
            else:
                verb = inside
            if verb == "require" and len(words) == 2:  # noqa: PLR2004
                yield words[0], words[1], "indirect" if "// indirect" in raw else "require"


def _cargo(text: str) -> Iterator[Entry]:
    data = tomllib.loads(text)
    places = [data, data.get("workspace") or {}, *(data.get("target") or {}).values()]
    for place in places:
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            yield from _table(place.get(section), section)


def _table(table: Any, section: str, skip: str = "") -> Iterator[Entry]:
    for name, wanted in (table or {}).items():
        if name == skip:
            continue
        versions = wanted
        if isinstance(wanted, dict):
            origin = next((f"{k}: {wanted[k]}" for k in _ORIGINS if wanted.get(k)), "")
            versions = wanted.get("version") or origin
        yield str(name), versions if isinstance(versions, str) else "", section


_ORIGINS = ("path", "git", "url", "file")

READERS: Mapping[str, Callable[[str], Iterator[Entry]]] = {
    "pyproject": _pyproject,
    "requirements": _requirements,
    "setup_cfg": _setup_cfg,
    "pipfile": _pipfile,
    "package_json": _package_json,
    "go_mod": _go_mod,
    "cargo": _cargo,
}
