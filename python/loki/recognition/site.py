"""The built-in tool rules, and what they say besides how to read output.

In which folder a place lies some programs print once, before or behind the places: ``make: Entering
directory``, the last line of a package of ``go test``, ``npm error path``. What such lines look like is
data: ``folders`` in the tool files (`docs/design/tool-rules.md`).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from loki import _core
from loki.base import codec
from loki.base.codec import kept
from loki.recognition import builtin
from loki.recognition.text import Text, clean

if TYPE_CHECKING:
    from loki.recognition.failure import Failure


# --- The folder that a relative place lies in, where an output says it apart --------------------------

T = TypeVar("T")

Exists = Callable[[str], bool]
"""Whether a path relative to the project's folder is there."""

MOST_LINES = 20_000
"""Lines before and behind a place in which its folder is looked for. Chosen, not measured."""


MOST_OF_LINE, MOST_TRIED = 1000, 16
"""Characters of a line that are read, and folders that are tried. Chosen, not measured."""


@dataclass(frozen=True, slots=True)
class FolderRule:
    """How a tool says in which folder places lie.

    Attributes:
        tool: the tool's name.
        match: the line that says it; its group ``folder`` is the folder.
        literals: texts of which one must be in the output; they spare the search.
        holds: for which places: those after the line, those before it, or those in it.
        until: where places after the line, or before it, end that it holds for: of those after it by its
            group ``folder``, as folders lie in each other.
        any: it holds for places of all tools, not of this one alone.
        package: the folder is a name whose end is a path: ``example.com/shop/cart``.
        module: of such a name, the part that is the project's own, where it can be told.
        separator: what stands between folders, where it is not "/".
        line: what the line of a place must look like.
        frame: instead of ``match``: what a frame's function must look like; ``folder`` as above.
        roots: folders below which the one of a frame lies.
    """

    tool: str
    match: str = ""
    literals: tuple[str, ...] = ()
    holds: str = "after"
    until: str = ""
    any: bool = False
    package: bool = False
    module: str = ""
    separator: str = "/"
    line: str = ""
    frame: str = ""
    roots: tuple[str, ...] = ()


@cache
def folder_rules() -> tuple[FolderRule, ...]:
    """The built-in tools' rules."""
    return folder_rules_of(builtin.tools())


def folder_rules_of(tools: Iterable[Mapping[str, Any]]) -> tuple[FolderRule, ...]:
    """The rules that definitions of tools have."""
    return tuple(_rule(tool["tool"], one) for tool in tools for one in tool.get("folders", ()))


def folder_rules_with(tool: Mapping[str, Any]) -> tuple[FolderRule, ...]:
    """The built-in tools' rules with those of one more, or of another version of one."""
    return folder_rules_of([*(one for one in builtin.tools() if one["tool"] != tool["tool"]), tool])


def _rule(tool: str, entry: Mapping[str, Any]) -> FolderRule:
    return FolderRule(
        tool, **{**entry, **{name: tuple(entry.get(name, ())) for name in ("roots", "literals")}}
    )


@dataclass(frozen=True, slots=True)
class Stated:
    """A folder as an output states it: the paths that it may be, the likeliest first."""

    paths: tuple[str, ...]
    is_certain: bool


class Folders:
    """What an output says about the folders of its places.

    Args:
        text: the output, cleaned.
        tool: that reported the failure, or None.
        root: the project's folder, or "".
        exists: whether a path of the project is there; None: nobody can tell.
        known: the rules; None: the built-in tools'.

    Example:
        >>> text = "make[1]: Entering directory '/srv/shop/src'\\ncart.c:3:5: error: x"
        >>> Folders(text, "gcc", "/srv/shop").located("cart.c", 2)
        'src/cart.c'
    """

    def __init__(
        self,
        text: str,
        tool: str | None,
        root: str = "",
        exists: Exists | None = None,
        known: Sequence[FolderRule] | None = None,
    ) -> None:
        self._root = root.rstrip("/")
        self._exists = exists
        known = folder_rules() if known is None else known
        found = [rule for rule in known if rule.any or rule.tool == tool]
        self._frames = [rule for rule in found if rule.frame]
        self._rules = [rule for rule in found if rule.match and _holds(text, rule)]
        self._lines = [one[:MOST_OF_LINE] for one in text.split("\n")] if self._rules else []
        self._stated_for: dict[int | None, Sequence[Stated]] = {}

    @property
    def is_silent(self) -> bool:
        """It says nothing, whatever the place."""
        return not self._rules and not (self._frames and self._exists)

    def located(self, path: str, line: int | None, function: str | None = None) -> str:
        """A place's path with its folder; as it was where the output does not say it.

        Args:
            path: relative to a folder that may not be the project's.
            line: of the output, from 1, that says the place; None: not known.
            function: of a frame.
        """
        if not path or self.is_silent or path.startswith(("/", "<")) or path[1:2] == ":":
            return path
        stated = self._said_for(line)
        if self._exists is not None:
            found = self._on_disk(path, function, stated)
            if found or (not path.startswith("../") and self._exists(path)):
                return found or path
        certain = next((one.paths[0] for one in stated if one.is_certain), "")
        return self._inside(certain, path) if certain else path

    def _on_disk(self, path: str, function: str | None, stated: Sequence[Stated]) -> str:
        """The first of the paths that it may be which is there, inside the project; "" for none."""
        assert self._exists is not None
        befores = list(islice((one for each in stated for one in each.paths), MOST_TRIED))
        for before in (*befores, ""):
            for below in ("", *self._below(path, function)):
                joined = self._inside(before, posixpath.join(below, path))
                is_inside = not joined.startswith(("/", "../"))
                if is_inside and joined != path and self._exists(joined):
                    return joined
        return ""

    def _said_for(self, line: int | None) -> Sequence[Stated]:
        if line not in self._stated_for:
            self._stated_for[line] = list(islice(self._stated(line), MOST_TRIED)) if line else []
        return self._stated_for[line]

    def _inside(self, folder: str, path: str) -> str:
        """Folder and path as one, relative to the root where it is inside."""
        joined = posixpath.normpath(posixpath.join(folder, path))
        return joined.removeprefix(f"{self._root}/") if self._root else joined

    def _below(self, path: str, function: str | None) -> Iterator[str]:
        for rule in self._frames if function and "/" not in path else ():
            found = _compiled(rule.frame).search(f"{function}({path})"[:MOST_OF_LINE])
            if found:
                folder = found["folder"].replace(rule.separator, "/")
                yield from (posixpath.join(root, folder) for root in rule.roots)

    def _found(self, rule: FolderRule, text: str) -> re.Match[str] | None:
        """What a line says, without what CI systems, and tools that run others, put before it."""
        if not any(one.strip("\n") in text for one in rule.literals):
            return None
        return _compiled(rule.match).search(_prefix(rule.tool).sub("", text))

    def _stated(self, line: int) -> Iterator[Stated]:
        """What is said for a line: nearest first."""
        at = min(line, len(self._lines)) - 1
        for rule in self._rules:
            if rule.line and not _compiled(rule.line).search(
                _prefix(rule.tool).sub("", self._lines[at])
            ):
                continue
            if rule.holds == "after":
                yield from self._before(rule, at)
            elif rule.holds == "before":
                yield from self._behind(rule, at)
            elif found := self._found(rule, self._lines[at]):
                yield self._read(rule, found)

    def _before(self, rule: FolderRule, at: int) -> Iterator[Stated]:
        """What was said above and not ended since, the innermost first."""
        left: Counter[str] = Counter()
        for text in reversed(self._lines[max(0, at - MOST_LINES) : at + 1]):
            if rule.until and (ended := _compiled(rule.until).search(text)):
                left[ended["folder"]] += 1
            elif found := self._found(rule, text):
                if left[found["folder"]]:
                    left[found["folder"]] -= 1
                    continue
                yield self._read(rule, found)
                if not rule.until:
                    return

    def _behind(self, rule: FolderRule, at: int) -> Iterator[Stated]:
        for text in self._lines[at : at + MOST_LINES]:
            if found := self._found(rule, text):
                yield self._read(rule, found)
                return
            if rule.until and _compiled(rule.until).search(text):
                return

    def _read(self, rule: FolderRule, found: re.Match[str]) -> Stated:
        folder = found["folder"]
        if rule.separator != "/":
            folder = folder.replace(rule.separator, "/").strip("/")
        is_outside = folder.startswith("/") and not f"{folder}/".startswith(f"{self._root or '?'}/")
        if not rule.package and not is_outside:
            return Stated((folder,), is_certain=True)
        parts = folder.strip("/").split("/")[-MOST_TRIED:]
        ends = tuple("/".join(parts[n:]) for n in range(len(parts)))
        module = self._module(rule, folder) if rule.package else ""
        inside = folder.removeprefix(module).strip("/")
        return Stated((inside, *ends) if module else ends, is_certain=bool(module))

    def _module(self, rule: FolderRule, name: str) -> str:
        """The part of a package's name that is the whole project's; "" where nobody can tell."""
        known = _compiled(rule.module).match(name) if rule.module else None
        if known:
            return known[0]
        names = {m["folder"] for text in self._lines if (m := self._found(rule, text))}
        first = min(names, key=len, default="")
        others = [one for one in names if one != first]
        return first if others and all(one.startswith(f"{first}/") for one in others) else ""


@cache
def _prefix(tool: str) -> re.Pattern[str]:
    """What stands before lines, of all tools but one: up to three, one inside the other."""
    every = [
        one
        for known in builtin.tools()
        if known["tool"] != tool
        for one in known.get("prefixes", ())
    ]
    each = "|".join(
        re.sub(r"\\x\{(\w+)\}", lambda found: chr(int(found[1], 16)), one) for one in every
    )
    return re.compile(f"^(?:{each}){{1,3}}")


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def with_folders(
    failure: Failure,
    text: Text,
    root: str,
    exists: Exists | None = None,
    known: Sequence[FolderRule] | None = None,
) -> Failure:
    """A failure whose paths have the folders that its output says apart from them.

    Args:
        failure: as it was read.
        text: the output.
        root: the project's folder, or "".
        exists: whether a path of the project is there, which decides where the output leaves it open.
        known: the rules; None: the built-in tools'.
    """
    paths = [failure.path, *(frame.path for frame in failure.frames)]
    if not any(path and not path.startswith("/") for path in paths):
        return failure
    known = folder_rules() if known is None else known
    said = [rule for rule in known if rule.any or rule.tool == failure.tool]
    if not any((rule.match and _holds(text, rule)) or (rule.frame and exists) for rule in said):
        return failure
    folders = Folders(clean(text), failure.tool, root, exists, known)
    if folders.is_silent:
        return failure
    line = failure.output_line
    own = next((frame for frame in failure.frames if frame.path == failure.path), None)
    function = own.function if own else None
    path = failure.path and folders.located(failure.path, line, function)
    frames = tuple(
        replace(frame, path=folders.located(frame.path, line, frame.function))
        if frame.in_project
        else frame
        for frame in failure.frames
    )
    if path == failure.path and frames == failure.frames:
        return failure
    return replace(failure, path=path, frames=frames)


def _holds(text: Text, rule: FolderRule) -> bool:
    if isinstance(text, str):
        return any(one in text for one in rule.literals)
    return any(one.encode() in text for one in rule.literals)


# --- What tool files say of commands ------------------------------------------------------------------


def _words_of(lines: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in lines)


def _by_words(names: Mapping[str, str]) -> Mapping[tuple[str, ...], str]:
    return MappingProxyType({tuple(words.split()): name for words, name in names.items()})


Words = Annotated[tuple[str, ...], _words_of]
"""Leading words of commands, as a tool file has them: a text for each."""


@dataclass(frozen=True, slots=True)
class ResultsRequest:
    """How to ask a test runner for results per test, and where it reports them.

    The report is the file that ``{file}`` stands for, else the files that ``reports`` names, else what
    the runner prints.

    Attributes:
        tool: the tool's name.
        format: of the report: junit, jest, go or libtest.
        when: leading words of the commands that can be asked; the tool's own where nothing is said.
        environment: a variable to set, whatever the command, or "".
        argument: what to set it to (or to append to what it holds).
        append: words to put at the end of the command.
        insert: words to put right behind the words of ``when``.
        leave_out: options with which it does not tell them.
        reports: globs of reports that the runner writes anyway, relative to the project.
    """

    tool: str
    format: str
    when: tuple[tuple[str, ...], ...] = kept(default=(), form=Words)
    environment: str = ""
    argument: str = ""
    append: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How a test runner is told which files or folders to test.

    Attributes:
        tool: the tool's name.
        unit: what is named: file or folder.
        form: how a path is written; ``{path}`` is the path.
        files: globs of names, or of paths where they hold a slash: the files that hold tests.
        when: leading words of the commands that it is about.
        option: words before the first path.
        values: options whose value is a word of its own, so that this is not taken for a path.
        selects: what in a command picks single tests of the files that it names: options, or parts of
            words.
        shared: names of files on which every test below their folder depends.
        search: ``variable`` and ``folders`` of the project in which modules are looked for first, so
            that what runs in a copy does not load the original; empty where there is no need.
    """

    tool: str
    unit: str
    form: str
    files: tuple[str, ...]
    when: tuple[tuple[str, ...], ...] = kept(default=(), form=Words)
    option: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    selects: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scripts:
    """How a tool runs the scripts of the project's manifest.

    Attributes:
        tool: the tool's name.
        run: leading words before a script's name.
        names: commands that run a script without naming it, to that script's name.
        separator: the word that must stand before arguments for the script, or "".
        flags: options that may stand before the script's name.
    """

    tool: str
    run: tuple[tuple[str, ...], ...] = kept(form=Words)
    names: Mapping[tuple[str, ...], str] = kept(
        default_factory=dict, form=Annotated[Mapping[str, str], _by_words]
    )
    separator: str = ""
    flags: tuple[str, ...] = ()


@cache
def rules() -> _core.SiteRules:
    """The built-in rules, ready to use."""
    return _core.SiteRules(builtin.tools_text())


def tools() -> tuple[str, ...]:
    """The names of the built-in tools."""
    return tuple(tool["tool"] for tool in builtin.tools())


def rules_with(tool: Mapping[str, Any]) -> _core.SiteRules:
    """The built-in rules with those of one more tool, or of another version of a built-in one."""
    known = {one["tool"]: one for one in builtin.tools()}
    known[tool["tool"]] = {key: entry for key, entry in tool.items() if key != "samples"}
    return _core.SiteRules(json.dumps({"tools": list(known.values())}))


@cache
def results_requests() -> tuple[ResultsRequest, ...]:
    """The test runners that give results per test, by tool.

    Example:
        >>> {r.tool: r.format for r in results_requests()}["vitest"]
        'jest'
    """
    return _said_under("results", ResultsRequest)


@cache
def narrowings() -> tuple[Narrowing, ...]:
    """The test runners that can be told what to test, by tool."""
    return _said_under("narrow", Narrowing)


@cache
def launchers() -> frozenset[tuple[str, ...]]:
    """Leading words after which another command follows.

    Example:
        >>> ("npx",) in launchers()
        True
    """
    return frozenset(
        tuple(words.split()) for tool in builtin.tools() for words in tool.get("launches", ())
    )


@cache
def script_runners() -> tuple[Scripts, ...]:
    """The tools that run scripts of the project's manifest."""
    return _said_under("scripts", Scripts)


def _said_under(key: str, kind: type[T]) -> tuple[T, ...]:
    """What the tools say under a key, of their own commands where it names no others."""
    return tuple(
        codec.parse(kind, {"when": tool.get("commands"), **tool[key], "tool": tool["tool"]})
        for tool in builtin.tools()
        if key in tool
    )
