"""The commands that a project checks, builds and mends itself with, found where it says so.

Looked for in this order: scripts of package.json, targets of the Makefile, recipes of the justfile,
tables of pyproject.toml, what CI runs, and last the files that a tool is known by. What names, tables
and files mean stands in ``command-detection.yml``. Pure: nothing is run, nothing read but by `Files`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ConfigDict

from loki.action.checks.imports.project_files import Files
from loki.action.gates import yaml_model
from loki.action.processes.command_line import leading_assignments, split_command_line
from loki.base.error import ConfigError, UsageError
from loki.recognition.definition_source import Source
from loki.recognition.fix import fix_for

if TYPE_CHECKING:
    from loki.action.changes.tree import Tree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = ("lint", "type", "test", "build", "lint_fix", "format_fix")

MAX_LINES = 20_000
"""Of a Makefile or of CI's scripts that are looked at; chosen, not measured."""

_TARGET = re.compile(r"([A-Za-z0-9][\w.\-/]*(?:[ \t]+[A-Za-z0-9][\w.\-/]*)*)[ \t]*::?(?!=)")
_RECIPE = re.compile(r"@?([A-Za-z_][\w-]*)((?:[ \t]+[^:\n]*)?):(?!=)")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the project.

    Attributes:
        kind: lint, type, test, build, lint_fix or format_fix.
        words: as it is run, in the project's folder, without a shell.
        source: where it was found: a file, and what in it.
    """

    kind: str
    words: tuple[str, ...]
    source: str


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Runner(_Model):
    file: str = ""
    table: str = ""
    command: tuple[str, ...]


class _Tool(_Model):
    file: str = ""
    table: str = ""
    key: str = ""
    commands: Mapping[str, tuple[str, ...]]


class _System(_Model):
    files: tuple[str, ...]
    at: tuple[str, ...]
    elsewhere: str = ""


class Knowledge(_Model):
    """What names, tables and files mean; ``command-detection.yml``."""

    version: int
    names: Mapping[str, tuple[str, ...]]
    names_in: Mapping[str, Mapping[str, tuple[str, ...]]]
    unless: Mapping[str, tuple[str, ...]]
    lint_fix_has: tuple[str, ...]
    script_runners: tuple[_Runner, ...]
    makefiles: tuple[str, ...]
    justfiles: tuple[str, ...]
    task_tables: tuple[_Runner, ...]
    tool_tables: tuple[_Tool, ...]
    ci: tuple[_System, ...]
    commands: Mapping[str, tuple[str, ...]]
    wrappers: tuple[str, ...]
    runners: tuple[str, ...]
    files: tuple[_Tool, ...]


@cache
def knowledge() -> Knowledge:
    """What this release knows."""
    path = Path(__file__).with_name("command-detection.yml")
    return yaml_model.read(path.read_bytes(), path.name, Knowledge)


def detect(files: Files, own: Mapping[str, tuple[str, ...]] | None = None) -> Mapping[str, Command]:
    """The first command of each kind; a kind for which there is none is left out.

    Args:
        files: the project; `Files.of` makes it of a tree.
        own: kind to words, of commands that a person has named; they win.

    Example:
        >>> files = Files(["package.json"], lambda path: b'{"scripts": {"lint": "eslint ."}}')
        >>> detect(files)["lint"]
        Command(kind='lint', words=('npm', 'run', 'lint'), source='package.json: scripts.lint')
    """
    found = {
        kind: Command(kind, words, "verification-gates.yml: commands")
        for kind, words in (own or {}).items()
    }
    for command in find_all(files):
        found.setdefault(command.kind, command)
    return {kind: found[kind] for kind in KINDS if kind in found}


class Detector:
    """What `detect` finds in a project, looked for again only where a file changed that can say so.

    Example:
        >>> from loki.action.changes.tree import Tree
        >>> dict(Detector()(Tree.scan("/usr/include/arpa")))
        {}
    """

    def __init__(self, own: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Args: own: as for `detect`."""
        self._own = own
        self._tree: Tree | None = None
        self._paths: frozenset[str] | None = None
        self._read: dict[str, str | None] = {}
        self._found: Mapping[str, Command] = {}

    def __call__(self, tree: Tree) -> Mapping[str, Command]:
        """The commands of a project.

        Args:
            tree: its files.
        """
        if tree is not self._tree:
            self._tree = tree
            paths = frozenset(filter(_can_say().match, tree.entries))
            read = {path: tree.hash_of(path) for path in self._read}
            if (paths, read) != (self._paths, self._read):
                self._paths, self._read = paths, {}
                self._found = detect(Files(tree.entries, self._noted(tree)), self._own)
        return self._found

    def _noted(self, tree: Tree) -> Callable[[str], bytes]:
        """Reads files, and notes which."""

        def read(path: str) -> bytes:
            self._read[path] = tree.hash_of(path)
            return tree.read(path)

        return read


@cache
def _can_say() -> re.Pattern[str]:
    """Fits the files that can say what a project's commands are: those at its top, and of CI."""
    files = (pattern for system in knowledge().ci for pattern in system.files)
    return re.compile("|".join((r"[^/]*\Z", *map(translate, files))), re.DOTALL)


def find_all(files: Files) -> tuple[Command, ...]:
    """Every command that is found, those that count first, first."""
    found = [
        command
        for look in (_scripts, _makefile, _justfile, _pyproject, _ci, _by_file)
        for command in look(files)
    ]
    return tuple(dict.fromkeys(found))


# --- by name -----------------------------------------------------------------------------------------------


def _named(
    scripts: Mapping[str, str], place: str, run: Sequence[str], source: str
) -> Iterator[Command]:
    """Commands by the names of scripts, targets or recipes, with their text where it is known."""
    know = knowledge()
    for kind in KINDS:
        own = know.names_in.get(place, {}).get(kind, ())
        for name in (*know.names.get(kind, ()), *own):
            if name not in scripts:
                continue
            meant = _kind_of(kind, f" {scripts[name]} ")
            if meant:
                yield Command(meant, (*run, name), source.format(name=name))


def _kind_of(kind: str, text: str) -> str | None:
    """The kind of a script, as its text has it; None where it is no use."""
    know = knowledge()
    if kind == "lint" and any(part in text for part in know.lint_fix_has):
        return "lint_fix"
    return None if any(part in text for part in know.unless.get(kind, ())) else kind


def _scripts(files: Files) -> Iterator[Command]:
    scripts = files.json("package.json").get("scripts")
    if not isinstance(scripts, dict):
        return
    runner = next(r for r in knowledge().script_runners if r.file in files)
    texts = {name: text for name, text in scripts.items() if isinstance(text, str)}
    yield from _named(texts, "package.json", runner.command, "package.json: scripts.{name}")


def _makefile(files: Files) -> Iterator[Command]:
    path = next((path for path in knowledge().makefiles if path in files), None)
    if path is None:
        return
    targets: dict[str, str] = {}
    for line in _lines(files, path):
        match = _TARGET.match(line)
        for name in match[1].split() if match else ():
            targets.setdefault(name, "")
    yield from _named(targets, "Makefile", ("make",), path + ": {name}")


def _justfile(files: Files) -> Iterator[Command]:
    path = next((path for path in knowledge().justfiles if path in files), None)
    if path is None:
        return
    recipes: dict[str, str] = {}
    for line in _lines(files, path):
        match = _RECIPE.match(line)
        # A parameter without default must be given: such a recipe cannot be run by its name alone.
        if match and all("=" in p or p.startswith("*") for p in match[2].split()):
            recipes.setdefault(match[1], "")
    yield from _named(recipes, "justfile", ("just",), path + ": {name}")


def _lines(files: Files, path: str) -> list[str]:
    return (files.read(path) or b"").decode("utf-8", "replace").split("\n")[:MAX_LINES]


# --- by table ----------------------------------------------------------------------------------------------


def _pyproject(files: Files) -> Iterator[Command]:
    content = files.read("pyproject.toml")
    try:
        said = tomllib.loads((content or b"").decode("utf-8"))
    except (ValueError, RecursionError):
        return
    for runner in knowledge().task_tables:
        tasks = _table(said, runner.table)
        texts = {name: str(task) for name, task in tasks.items()} if tasks else {}
        source = f"pyproject.toml: {runner.table}.{{name}}"
        yield from _named(texts, "pyproject.toml", runner.command, source)
    for tool in knowledge().tool_tables:
        table = _table(said, tool.table)
        if table is not None and (not tool.key or tool.key in table):
            for kind, words in tool.commands.items():
                yield Command(kind, words, f"pyproject.toml: {tool.table}")


def _table(said: Any, name: str) -> Mapping[str, Any] | None:
    for key in name.split("."):
        said = said.get(key) if isinstance(said, dict) else None
    return said if isinstance(said, dict) else None


# --- by file -----------------------------------------------------------------------------------------------


def _by_file(files: Files) -> Iterator[Command]:
    top = files.names("")
    for tool in knowledge().files:
        path = tool.file if tool.file in files else ""
        if not path:
            path = next((n for n in sorted(top) if fnmatchcase(n, tool.file) and n in files), "")
        for kind, words in tool.commands.items() if path else ():
            yield Command(kind, words, path)


# --- by what CI runs ---------------------------------------------------------------------------------------


def _ci(files: Files) -> Iterator[Command]:
    perhaps = sorted(filter(_can_say().match, files.paths))
    for system in knowledge().ci:
        for pattern in system.files:
            for path in (path for path in perhaps if fnmatchcase(path, pattern)):
                yield from _of_ci(files, path, system)


def _of_ci(files: Files, path: str, system: _System) -> Iterator[Command]:
    try:
        source = Source(files.read(path) or b"", path)
        root = source.compose()
    except ConfigError:
        return  # of no use to CI either, or with tags that only one CI system knows
    names = {command.words: command.kind for look in _NAMED for command in look(files)}
    for line, text in _texts(root, system.at, system.elsewhere):
        for offset, written in enumerate(text.split("\n")[:MAX_LINES]):
            words = _words(written)
            kind = _kind_by_words(words, names)
            if kind is None:
                continue
            where = f"{path}:{line + offset}"
            yield Command(kind, words, where)
            mends = fix_for(words) if kind == "lint" else None
            if mends and "{file}" not in mends:
                yield Command("lint_fix", mends, where)


_NAMED = (_scripts, _makefile, _justfile)


def _texts(node: yaml.Node, way: tuple[str, ...], elsewhere: str) -> Iterator[tuple[int, str]]:
    """(line, text) of the scalars at a way through the document; ``*`` is any key or entry."""
    if isinstance(node, yaml.ScalarNode) and not way:
        yield node.start_mark.line + (2 if node.style in {"|", ">"} else 1), str(node.value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _texts(item, way[1:] if way[:1] == ("*",) else way, elsewhere)
    elif isinstance(node, yaml.MappingNode) and way:
        if elsewhere and any(key.value == elsewhere for key, _ in node.value):
            return
        for key, value in node.value:
            if way[0] in {"*", key.value}:
                yield from _texts(value, way[1:], elsewhere)


def _words(line: str) -> tuple[str, ...]:
    """The words of a line of a script; none where only a shell, or the CI system, could run it."""
    try:
        return split_command_line(line.strip())
    except UsageError:
        return ()


def _kind_by_words(words: tuple[str, ...], names: Mapping[tuple[str, ...], str]) -> str | None:
    rest = " ".join(leading_assignments(words)[1])
    know = knowledge()
    for runner in know.runners:
        if rest.startswith(runner + " "):
            name = rest[len(runner) :].split()[0]
            found = next((k for w, k in names.items() if w[-1] == name), None)
            if found:
                return found
    for _ in range(3):  # wrappers stand in each other: uv run python -m pytest
        for kind, heads in know.commands.items():
            if any(f"{rest} ".startswith(head + " ") for head in heads):
                return _kind_of(kind, f" {rest} ")
        wrapper = next((w for w in know.wrappers if rest.startswith(w + " ")), None)
        if wrapper is None:
            return None
        rest = rest[len(wrapper) + 1 :]
    return None
