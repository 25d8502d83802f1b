"""Which files of a change its task is about, and how far the others are from them; pure.

The one notion of a task's scope: self-review points out what is outside, drift tells how far
(`loki.decision.drift.drift`). A file belongs to a task that names it, or its words; and where it is tied to
one that does: by an import, by a name that both changes use, as its test or what a tool makes of it. No
model is asked; the knowledge is data, in ``path-kinds.yml`` and ``drift.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from loki.base import glob
from loki.base.yaml_text import load_file

# --- What the path of a file says of it ---------------------------------------------------------------

_FILE = Path(__file__).with_name("path-kinds.yml")
_TEST_AFFIX = re.compile(r"^tests?[_.-]|[_.-](?:tests?|spec)$|(?<=[a-z0-9])(?:Tests?|Spec)$")


@dataclass(frozen=True, slots=True)
class PathKind:
    """A kind of place: the folders and file names that belong to it."""

    name: str
    folders: frozenset[str]
    names: re.Pattern[str]


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = load_file(_FILE)
    return data


@cache
def _places() -> tuple[PathKind, ...]:
    return tuple(
        PathKind(name, frozenset(said.get("folders", ())), any_glob(said.get("names") or ["(?!)"]))
        for name, said in _data()["places"].items()
    )


@cache
def path_kinds() -> dict[str, re.Pattern[str]]:
    """Kinds of files by their name: companions, leftovers, copies, licences."""
    return {name: any_glob(said) for name, said in _data()["scope"].items()}


def any_glob(said: str | Sequence[str]) -> re.Pattern[str]:
    """One expression for several; flags of each hold for it alone."""
    texts = [said] if isinstance(said, str) else said
    # Flags may only stand at the very beginning of an expression.
    parts = [re.sub(r"^\(\?i\)(.*)$", r"(?i:\1)", text) for text in texts]
    return re.compile("|".join(parts), re.MULTILINE)


def kinds_of_path(path: str) -> frozenset[str]:
    """The kinds of place in which a file stands, by its path alone.

    Example:
        >>> sorted(kinds_of_path("tests/data/vendor/run.min.js"))
        ['test', 'test_data', 'vendored']
    """
    name = PurePosixPath(path)
    folders = {part.lower() for part in name.parts[:-1]}
    return frozenset(
        place.name
        for place in _places()
        if folders & place.folders or place.names.search(name.name)
    )


def stem_of(path: str) -> str:
    """The name of what a file is about: its own, or of what it tests; a package's is its folder's.

    Example:
        >>> stem_of("src/cart/price.test.ts"), stem_of("tests/test_cart.py"), stem_of("cart/__init__.py")
        ('price', 'cart', 'cart')
    """
    name = PurePosixPath(path)
    stem = name.name.lstrip(".").split(".")[0]
    if stem in {"__init__", "index", "mod"} and name.parent.name:
        return name.parent.name
    return _TEST_AFFIX.sub("", stem) or stem


def in_scope(path: str, scope: Sequence[str]) -> bool:
    """Whether a task is about a file.

    Args:
        path: relative to the project.
        scope: files, folders and globs (`loki.base.glob`) that it names. Tests of a file that it
            names, and the project's list of changes, belong to it.

    Example:
        >>> in_scope("tests/test_money.py", ["shop/money.py"]), in_scope("shop/tax.py", ["shop/money.py"])
        (True, False)
    """
    if glob.matches(path, scope) or any(path.startswith(s.rstrip("/") + "/") for s in scope):
        return True
    if path_kinds()["companions"].search(PurePosixPath(path).name):
        return True
    if "test" not in kinds_of_path(path):
        return False
    return any(stem_of(path) == PurePosixPath(pattern).stem for pattern in scope)


# --- The words of a task and of files -----------------------------------------------------------------

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


@cache
def known() -> dict[str, Any]:
    """What ``drift.yml`` says."""
    data: dict[str, Any] = load_file(Path(__file__).with_name("drift.yml"))
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
        *("models", "model", "views", "view", "base", "core", "lib", "mod", "test", "tests"),
        *("init", "config", "settings", "constants", "errors", "setup", "data", "conftest"),
        *("README", "src", "client", "server", "api", "manager", "handler", "service", "routes"),
        *("schema", "state"),
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


# --- How the files of a change stand to a task --------------------------------------------------------

SMALL = 20
"""Lines that may change somewhere else without a word about it: an import mended, a typo. Chosen on
the tuning part of the labelled changes, not measured."""

PROSE = 100
"""The same of prose and tests, which break nothing. Chosen, as above."""

SHARE = 0.1
"""Of a change's lines, those elsewhere up to which they are by the way. Chosen on the project's history."""

FEW_WORDS, MANY_WORDS = 30, 100
"""Changed lines up to which one word of the task in them tells, and two; in more, half of them have to.
Chosen on the tuning part and on the project's own history."""

IMPORT_HOPS = 2
"""How far imports are followed from what failed: a test, what it tests, and what that uses; as
`loki.agents.model_agent.HOPS`."""

_ROUNDS = 4
"""How long a chain of names that tie files together may be. Chosen, not measured."""

Kind = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True, slots=True)
class Touched:
    """What a change does to a file.

    Attributes:
        path: relative to the project, with ``/``.
        kind: created, changed, deleted or renamed.
        added, removed: lines.
        words: names in the lines that differ.
        was: the path that it had before, where it is renamed.
        formatting: nothing but blanks and line breaks differ.
        defines: names that those lines define.
        imports: names in those of them that import.
    """

    path: str
    kind: Kind = "changed"
    added: int = 0
    removed: int = 0
    words: frozenset[str] = frozenset()
    was: str = ""
    formatting: bool = False
    defines: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()

    @property
    def lines(self) -> int:
        """Lines that differ: those of a deleted file are gone, not written."""
        return max(self.added, self.removed)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is known of a task.

    Attributes:
        title: in a person's words.
        said: what people added.
        kind: bug_fix, feature, refactor, security or config_change.
        scope: files, folders and globs that it names; empty: not said.
        named: files that the failure, its frames and failing tests name, and those of earlier
            attempts and of what the briefing showed.
        failure: what failed, in its own words.
        project: paths that there are.
        imports: which files a file imports, as far as known.
    """

    title: str
    said: str = ""
    kind: str = "bug_fix"
    scope: tuple[str, ...] = ()
    named: Collection[str] = ()
    failure: str = ""
    project: Collection[str] = ()
    imports: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def asked(self) -> str:
        """What people said."""
        return f"{self.title}\n{self.said}"


class Relation:
    """How the files of a change stand to a task.

    Args:
        goal: the task.
        touched: the files.

    Attributes:
        about: paths of the change that the task is about.
        companions: those that belong to any change, as long as little of them changes.
        has_reference: anything is known that a file could be far from.
    """

    def __init__(self, goal: Goal, touched: Iterable[Touched]) -> None:
        self.goal = goal
        self.touched = {one.path: one for one in touched}
        self._asked = words_of(goal.asked)
        self._meant = self._asked | synonyms(self._asked)
        self._missing = modules_in(goal.failure)
        self._named = set(goal.named)
        self._stems = {stem_of(path) for path in self._named} - GENERIC
        self._near = _within(goal.named, goal.imports)
        self.companions = {p for p, one in self.touched.items() if self._is_companion(one)}
        self.about = {p for p, one in self.touched.items() if self._is_about(one)}
        self._tie()
        self.has_reference = bool(
            goal.scope or goal.named or self.about - self.companions or self._points_somewhere()
        )

    def is_far(self, path: str) -> bool:
        """Whether nothing ties a file of the change to the task."""
        return path not in self.about and path not in self.companions

    def distance(self, path: str) -> int:
        """1: beside what the task is about, or an import away; 2, 3, …: that many folders more.

        Steps between the folders of the file and of the nearest that the task is about, and one.
        """
        near = [*(self.about - self.companions), *self._named, *self._scope_files()]
        if path in self._near or any(path in self.goal.imports.get(p, ()) for p in self.about):
            return 1
        beside = 2 if is_test(Touched(path)) else 1  # tests of everything may stand in one folder
        return min((max(beside, 1 + _steps(path, other)) for other in near), default=3)

    def weight(self, path: str) -> int:
        """Lines of a file from which on it counts as work of its own."""
        if known()["weighty"].search(path):
            return SMALL // 4
        return PROSE if kinds_of_path(path) & {"example", "test"} else SMALL

    @property
    def lines(self) -> int:
        """Lines of the whole change, but for what tools write."""
        return sum(one.lines for path, one in self.touched.items() if not is_written(path))

    def _scope_files(self) -> list[str]:
        # A folder is as near as a file in it.
        return [
            re.split(r"[*?]", s)[0] + ("x" if s[-1:] in {"/", "*"} else "") for s in self.goal.scope
        ]

    def _is_about(self, one: Touched) -> bool:
        goal, paths = self.goal, {one.path, one.was or one.path}
        if goal.scope:
            return any(in_scope(path, goal.scope) for path in paths) or self._tests_scope(one)
        if paths & (self._named | self._near) or any(self._is_said(path) for path in paths):
            return True
        if any(stem_of(path) in self._stems for path in paths):
            return True
        if any(is_module(path, module) for path in paths for module in self._missing):
            return True
        if alike(self._meant, frozenset().union(*map(path_words, paths))):
            return True
        content = frozenset().union(*map(words_of, one.words)) if one.words else frozenset()
        hits = len(self._asked & content)
        # What is deleted is no work: a word tells why.
        needed = 1 if one.kind == "deleted" else self._needed(one.lines)
        return hits >= min(needed, max(1, len(self._asked)))

    def _needed(self, lines: int) -> int:
        """Words of the task that changed lines have to hold to be about it: in many, any may stand."""
        few = 1 if lines <= FEW_WORDS else 2
        return few if lines <= MANY_WORDS else max(few, len(self._asked) // 2)

    def _tests_scope(self, one: Touched) -> bool:
        """Whether a file tests something in the scope that the change touches, or that is there."""
        if "test" not in kinds_of_path(one.path):
            return False
        paths = {*self.touched, *self.goal.project} - {one.path}
        return any(
            stem_of(path) == stem_of(one.path) and "test" not in kinds_of_path(path)
            for path in paths
            if in_scope(path, self.goal.scope)
        )

    def _is_said(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        said = f"{self.goal.asked}\n{self.goal.failure}"
        return (
            "." in name[1:]
            and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", said) is not None
        )

    def _is_companion(self, one: Touched) -> bool:
        name, rules = one.path.rpartition("/")[2], known()
        if path_kinds()["companions"].search(name) or "lock" in kinds_of_path(one.path):
            return True
        if rules["generated"].search(one.path) and not self.goal.scope:
            return True
        if rules["manifest"].search(name) or rules["small_companion"].search(name):
            return one.lines <= SMALL
        # Support of tests is made for tests: whose, their names need not tell.
        return (
            one.kind == "created" and "test" in kinds_of_path(one.path) and not _is_test(one.path)
        )

    def _tie(self) -> None:
        """Files that are tied to what the task is about, directly or through others."""
        if self.goal.scope:  # it says itself how far it goes
            return
        for _ in range(_ROUNDS):
            seeds = [self.touched[p] for p in sorted(self.about - self.companions)]
            new = {
                p
                for p, one in self.touched.items()
                if self.is_far(p) and any(self._are_tied(one, other) for other in seeds)
            }
            if not new:
                break
            self.about |= new

    def _are_tied(self, one: Touched, other: Touched) -> bool:
        imports = self.goal.imports
        if one.path in imports.get(other.path, ()) or other.path in imports.get(one.path, ()):
            return True
        own, its = stem_of(one.path), stem_of(other.path)
        if own not in GENERIC and (own == its or own in other.imports):
            return True
        if its not in GENERIC and its in one.imports:
            return True
        shared = (one.words & other.defines) | (one.defines & other.words)
        return any(is_telling(word) for word in shared)

    def _points_somewhere(self) -> bool:
        """Whether the words of the task find files of the project that are not part of the change."""
        return any(
            self._is_said(path) or alike(self._asked, path_words(path))
            for path in self.goal.project
        )


def _is_test(path: str) -> bool:
    """A file of tests, by its name; not what stands beside them."""
    name = PurePosixPath(path).name
    return stem_of(path) != name.lstrip(".").split(".")[0] or ".test." in name or ".spec." in name


def is_written(path: str) -> bool:
    """Whether a tool writes a file, not whoever changes it."""
    return "lock" in kinds_of_path(path) or known()["generated"].search(path) is not None


def is_test(touched: Touched) -> bool:
    """Whether a file holds tests."""
    return "test" in kinds_of_path(touched.path) and _is_test(touched.path)


def _steps(one: str, other: str) -> int:
    """Folders to go up and down from one file to another."""
    a, b = PurePosixPath(one).parts[:-1], PurePosixPath(other).parts[:-1]
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return len(a) + len(b) - 2 * same


def _within(start: Collection[str], imports: Mapping[str, Collection[str]]) -> set[str]:
    """Files that some files import, or that import them, within `IMPORT_HOPS`."""
    seen, front = set(start), set(start)
    for _ in range(IMPORT_HOPS):
        front = {path for one in front for path in imports.get(one, ())} - seen
        seen |= front
    importing = {path for path, found in imports.items() if not set(found).isdisjoint(start)}
    return (seen | importing) - set(start)
