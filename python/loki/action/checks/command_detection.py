"""The commands that a project checks, builds and mends itself with, found where it says so.

Looked for in this order: scripts of package.json, targets of the Makefile, recipes of the justfile,
tables of pyproject.toml, what CI runs, and last the files that a tool is known by. What names, tables
and files mean stands in ``command-detection.yml``. Pure: nothing is run, nothing read but by `Files`.

What launches, and how a script gets arguments, is told by the tools' files; no tool is named here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from loki.action.checks.check import DEFAULT_TIMEOUT, PARSES, Check, plain_words, script_name
from loki.action.checks.imports.project_files import Files
from loki.action.processes.command_line import (
    leading_assignments,
    split_command_line,
    why_not_runnable,
)
from loki.base.error import ConfigError, UsageError
from loki.base.toml import tomllib
from loki.base.yaml_document import Document, Strict, read_beside
from loki.recognition.fix import fix_for
from loki.recognition.pattern import Criterion
from loki.recognition.shell_line import commands_of, split_commands
from loki.recognition.site import launchers, script_runners

if TYPE_CHECKING:
    from loki.action.changes.tree import Tree


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


class _Runner(Strict):
    file: str = ""
    table: str = ""
    command: tuple[str, ...]


class _Tool(Strict):
    file: str = ""
    table: str = ""
    key: str = ""
    commands: Mapping[str, tuple[str, ...]]


class _System(Strict):
    files: tuple[str, ...]
    at: tuple[str, ...]
    elsewhere: str = ""


class Knowledge(Strict):
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
    runners: tuple[str, ...]
    elsewhere: frozenset[str]
    files: tuple[_Tool, ...]


@cache
def knowledge() -> Knowledge:
    """What this release knows."""
    return read_beside(__file__, "command-detection.yml", Knowledge)


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
            hashes = {path: tree.hash_of(path) for path in self._read}
            if (paths, hashes) != (self._paths, self._read):
                self._paths, self._read = paths, {}
                self._found = detect(Files(tree.entries, self._note_and_read), self._own)
        return self._found

    def _note_and_read(self, path: str) -> bytes:
        assert self._tree is not None
        self._read[path] = self._tree.hash_of(path)
        return self._tree.read(path)


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


# --- By name ------------------------------------------------------------------------------------------


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
    path, lines = _first_of(knowledge().makefiles, files)
    matches = filter(None, map(_TARGET.match, lines))
    targets = [name for match in matches for name in match[1].split()]
    yield from _named(dict.fromkeys(targets, ""), "Makefile", ("make",), path + ": {name}")


def _justfile(files: Files) -> Iterator[Command]:
    path, lines = _first_of(knowledge().justfiles, files)
    matches = filter(None, map(_RECIPE.match, lines))
    # A parameter without default must be given: such a recipe cannot be run by its name alone.
    recipes = [m[1] for m in matches if all("=" in p or p.startswith("*") for p in m[2].split())]
    yield from _named(dict.fromkeys(recipes, ""), "justfile", ("just",), path + ": {name}")


def _first_of(paths: Sequence[str], files: Files) -> tuple[str, list[str]]:
    """(The first of some files that is there, its lines)."""
    path = next((path for path in paths if path in files), "")
    return path, (files.read(path) or b"").decode("utf-8", "replace").split("\n")[:MAX_LINES]


# --- By table -----------------------------------------------------------------------------------------


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


# --- By file ------------------------------------------------------------------------------------------


def _by_file(files: Files) -> Iterator[Command]:
    top = sorted(files.names(""))
    for tool in knowledge().files:
        candidates = (tool.file, *(name for name in top if fnmatchcase(name, tool.file)))
        path = next((path for path in candidates if path in files), "")
        for kind, words in tool.commands.items() if path else ():
            yield Command(kind, words, path)


# --- By what CI runs ----------------------------------------------------------------------------------


def _ci(files: Files) -> Iterator[Command]:
    perhaps = sorted(filter(_can_say().match, files.paths))
    for system in knowledge().ci:
        for pattern in system.files:
            for path in (path for path in perhaps if fnmatchcase(path, pattern)):
                yield from _of_ci(files, path, system)


def _of_ci(files: Files, path: str, system: _System) -> Iterator[Command]:
    try:
        root = Document(files.read(path) or b"", path).root
    except ConfigError:
        return  # of no use to CI either
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
    if know.elsewhere & set(rest.split()):
        return None
    for runner in know.runners:
        if rest.startswith(runner + " "):
            name = rest[len(runner) :].split()[0]
            found = next((k for w, k in names.items() if w[-1] == name), None)
            if found:
                return found
    for one in commands_of(words):
        run = f"{' '.join((one.program, *one.arguments))} "
        for kind, heads in know.commands.items():
            if any(run.startswith(f"{head} ") for head in heads):
                return _kind_of(kind, f" {run}")
    return None


# --- Which program a command starts in the end --------------------------------------------------------

MANIFEST = "package.json"
"""Where scripts stand, in JavaScript's world."""

MAX_DEPTH = 5
"""Scripts that run scripts are followed so far; chosen, not measured."""

_ENDS_COMMAND = frozenset({"&&", ";"})
_SHELL = frozenset("$`*")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a command starts.

    Attributes:
        words: the whole command.
        program: the words of what it starts in the end, its own arguments included.
        start: where in ``words`` these begin; None where they stand in a script.
        separators: what has to stand before arguments that are to reach the program.
    """

    words: tuple[str, ...]
    program: tuple[str, ...]
    start: int | None
    separators: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str], root: Path) -> Invocation:
        """What a command of a project starts.

        Args:
            words: the command's.
            root: the project's folder, in which it runs; its manifest is read.

        Example:
            >>> Invocation.of(["CI=1", "npx", "--yes", "jest", "-i"], Path("/")).program
            ('jest', '-i')
        """
        whole = tuple(words)
        program, start, separators = _follow(whole, _project_scripts(root), 0)
        return cls(whole, program, start, separators)

    def begins_with(self, leading: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
        """The program's own words for the longest of several leads that it begins with, or None."""
        named = plain_words(self.program)
        fitting = [tuple(lead) for lead in leading if named[: len(lead)] == tuple(lead)]
        best = max(fitting, key=len, default=None)
        return None if best is None else self.program[: len(best)]

    def with_appended(self, more: Sequence[str]) -> tuple[str, ...]:
        """The command with more arguments for the program at its end."""
        return (*self.words, *self.separators, *more)

    def without(self, options: Container[str]) -> tuple[str, ...]:
        """The command without some of the program's words; as it is, where they stand in a script."""
        if self.start is None:
            return self.words
        kept = (word for word in self.words[self.start :] if word not in options)
        return (*self.words[: self.start], *kept)

    def with_inserted(self, lead: Sequence[str], more: Sequence[str]) -> tuple[str, ...] | None:
        """The command with more words before the program's own; None where a script has some in the way."""
        if self.start is None:
            given = _given(self.words)
            own = self.program[len(lead) : len(self.program) - len(given)]
            if not all(word.startswith("-") for word in own):
                return None
            at = len(self.words) - len(given)
            return (*self.words[:at], *self.separators, *more, *self.words[at:])
        at = self.start + len(lead)
        return (*self.words[:at], *more, *self.words[at:])


_Followed = tuple[tuple[str, ...], "int | None", tuple[str, ...]]


def _follow(words: tuple[str, ...], scripts: Mapping[str, str], depth: int) -> _Followed:
    """(the program's words, where they begin or None, separators)."""
    start = len(words) - len(leading_assignments(words)[1])
    rest = words[start:]
    if depth < MAX_DEPTH and (found := _script(rest, scripts)) is not None:
        text, separator = found
        inner = _last_command(text)
        if inner is not None:
            program, _, separators = _follow(inner, scripts, depth + 1)
            return (*program, *_given(rest)), None, (*separator, *separators)
        return rest, start, ()
    if lead := next((n for n in range(len(rest), 0, -1) if rest[:n] in launchers()), 0):
        behind = start + lead
        while behind < len(words) and words[behind].startswith("-"):
            behind += 1
        if behind < len(words):
            program, inner_start, separators = _follow(words[behind:], scripts, depth)
            at = None if inner_start is None else behind + inner_start
            return program, at, separators
    return rest, start, ()


def _script(
    words: tuple[str, ...], scripts: Mapping[str, str]
) -> tuple[str, tuple[str, ...]] | None:
    """(the text of the script that a command runs, what must stand before further arguments)."""
    for runner in script_runners():
        name = script_name(words, runner)
        if name in scripts:
            needed = runner.separator and runner.separator not in words
            return scripts[name], (runner.separator,) if needed else ()
    return None


def _given(words: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments that a command passes on to its script, as far as they stand behind ``--``."""
    return words[words.index("--") + 1 :] if "--" in words else ()


def _last_command(script: str) -> tuple[str, ...] | None:
    """The command at the end of a script, which gets the arguments; None where that is not plain.

    Example:
        >>> _last_command("tsc && NODE_ENV=test jest -i")
        ('NODE_ENV=test', 'jest', '-i')
        >>> _last_command("jest | tee log") is None
        True
    """
    *before, (last, target, _) = split_commands(script)
    signs = [sign for *_, sign in before]
    if (
        not leading_assignments(last)[1]
        or "||" in signs
        or (signs and signs[-1] not in _ENDS_COMMAND)
    ):
        return None
    is_plain = not target and not any(set(word) <= _SHELL for word in last)
    return tuple(last) if is_plain else None


def _project_scripts(root: Path) -> dict[str, str]:
    """The scripts of the project's manifest; none where there is none, or it is no JSON."""
    try:
        found = json.loads((root / MANIFEST).read_bytes())["scripts"]
        return {str(name): text for name, text in found.items() if isinstance(text, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


# --- Success criteria of a task that names none -------------------------------------------------------

BY_PERSON = frozenset({"security"})
"""Kinds of task whose criteria a person judges where no reviewer does."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a task has to fulfil.

    Attributes:
        checks: commands, in the order of the criteria, then what somebody judges.
        notes: a sentence for each command: where it was found.
        warnings: a sentence for each criterion that nobody can check.
    """

    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def default_criteria(
    kind: str,
    criteria: Sequence[Criterion],
    commands: Mapping[str, Command],
    root: Path,
    *,
    has_reviewer: bool = False,
    with_builds: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
) -> Criteria:
    """The checks for a task of a kind.

    Args:
        kind: of the task.
        criteria: what the pattern file says of tasks of this kind.
        commands: the project's own, by kind of check.
        root: the project's folder.
        has_reviewer: there is a reviewer agent.
        with_builds: criteria of kind build count.
        timeout: seconds that a command may take.

    Example:
        >>> criteria = [Criterion("tests_pass", "test"), Criterion("lint_clean", "lint")]
        >>> commands = {"test": Command("test", ("true",), "Makefile: test")}
        >>> found = default_criteria("bug_fix", criteria, commands, Path("/"))
        >>> [check.name for check in found.checks], found.warnings
        (['true'], ("criterion 'lint_clean' is not checked: no command was found for it",))
    """
    checks: list[Check] = []
    notes, warnings = [], []
    for criterion in criteria:
        if criterion.type == "build" and not with_builds:
            continue
        if criterion.type == "syntax" and not criterion.command:
            checks.append(Check((), "syntax", PARSES, timeout))
            notes.append(f"syntax check: {PARSES} (what the task changes, by loki itself)")
            continue
        found, source = _command(criterion, commands, timeout)
        problem = why_not_runnable(found.command, root) if found else None
        if found is not None and problem is None:
            if found.command not in [check.command for check in checks]:
                checks.append(found)
                notes.append(f"{found.kind} check: {found.name} ({source})")
            continue
        judged = _judged(criterion, kind, has_reviewer=has_reviewer)
        if judged is not None:
            checks.append(judged)
        else:
            why = problem or "no command was found for it"
            warnings.append(f"criterion {criterion.name!r} is not checked: {why}")
    checks.sort(key=lambda check: check.is_judged)
    return Criteria(tuple(checks), tuple(notes), tuple(warnings))


def _command(
    criterion: Criterion, commands: Mapping[str, Command], timeout: float
) -> tuple[Check | None, str]:
    """(The check by the criterion's own command or the project's, where it was found)."""
    if criterion.command:
        words, source = split_command_line(criterion.command), f"criterion {criterion.name}"
    elif criterion.type in commands:
        words, source = commands[criterion.type].words, commands[criterion.type].source
    else:
        return None, ""
    check = Check(words, criterion.type, " ".join(words), timeout)
    expected = criterion.expected if criterion.command and criterion.type == "custom" else None
    return replace(check, expected=expected or ""), source


def _judged(criterion: Criterion, kind: str, *, has_reviewer: bool) -> Check | None:
    said = criterion.description or criterion.name.replace("_", " ")
    if has_reviewer:
        return Check((), "custom", criterion.name, description=said)
    if kind in BY_PERSON:
        return Check((), "approval", criterion.name, description=said)
    return None
