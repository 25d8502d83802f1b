"""The regression check: tests that passed before the task and can be broken by it still pass.

Which those are is told by what files import. Extraction is what costs, so only files are asked for their
imports whose text shows at a glance that they may import what is looked for; and only files that have
changed since the last look are read again.

What the checks themselves tell is used first; only tests that they do not cover are run besides, on the
starting tree and on the tree as it is now. Silence of a runner is no evidence, and what is deleted or skipped
is not fixed.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from loki.action.changes.scratch_copy import scratch_folder
from loki.action.changes.tree import Tree
from loki.action.checks.check import Check, CheckResult, Report
from loki.action.checks.check_runner import CheckRunner, Narrowed
from loki.action.checks.imports import Files, Import, imports_of, language_of, locate, resolve
from loki.action.checks.results.suite_results import (
    FAILED,
    PASSED,
    Baseline,
    Comparison,
    Results,
    compare_results,
    inside,
)
from loki.action.checks.task_changes import TaskChanges
from loki.action.gates.gate import RegressionDetection
from loki.base.glob import matches
from loki.base.time import Clock, isoformat
from loki.decision.drift import kinds_of_path
from loki.memory.store import Store
from loki.recognition.failure import Failure
from loki.recognition.site import narrowings

# --- The words by which a file may import others: more than it imports, never less --------------------

RELATIVE = "."
"""Stands for an import that names nothing but folders: ``from . import x``, ``import '..'``."""

_COMMENT = re.compile(rb"#[^\n]*")
_STATEMENT = re.compile(rb"^[^\n]*import(?:[^\n(]|\([^)]*\)?)*", re.MULTILINE)
_WORD = re.compile(rb"[\w\x80-\xff]+")
_QUOTED = re.compile(rb"""['"`]([^'"`\s]{1,300})['"`]""")
_FROM_DOTS = re.compile(rb"\bfrom\s*\.")


def words_of(content: bytes, language: str) -> frozenset[str]:
    """The words by which a file may import, `RELATIVE` among them where it may name none.

    Args:
        content: of the file.
        language: python or javascript.

    Example:
        >>> sorted(words_of(b"from shop import (\\n  cart,  # (all)\\n  till)\\n", "python"))
        ['cart', 'from', 'import', 'shop', 'till']
    """
    found = _python(content) if language == "python" else _javascript(content)
    return frozenset(word.decode("utf-8", "replace") for word in found)


def word_for(path: str) -> str:
    """The word that an import of a file holds, unless it is relative or goes by another name.

    Example:
        >>> word_for("src/cart.test.ts"), word_for("src/cart/index.ts"), word_for("cart/__init__.py")
        ('cart', 'cart', 'cart')
    """
    folder, name = posixpath.split(path)
    stem = name.partition(".")[0]
    return posixpath.basename(folder) if stem in {"__init__", "index"} else stem


def _python(content: bytes) -> Iterator[bytes]:
    # A line that goes on is one with the next: `from a \` stands before its `import`.
    text = _COMMENT.sub(b"", content).replace(b"\\\r\n", b" ").replace(b"\\\n", b" ")
    for statement in _STATEMENT.findall(text):
        yield from _WORD.findall(statement)
        if _FROM_DOTS.search(statement):
            yield RELATIVE.encode()


def _javascript(content: bytes) -> Iterator[bytes]:
    for quoted in _QUOTED.findall(content):
        parts = [part for part in quoted.split(b"/") if part not in {b".", b"..", b""}]
        if not parts and quoted.startswith(b"."):
            yield RELATIVE.encode()
        yield from (part.partition(b".")[0] for part in parts)


# --- Which files hold which words ---------------------------------------------------------------------

MAX_BYTES = 1_000_000
"""A larger file is not searched for imports: nobody wrote it. Chosen, not measured."""


@dataclass
class WordIndex:
    """The files of one language by the words that their imports hold.

    Args:
        language: python or javascript.

    Example:
        >>> from loki.action.checks.imports import Files
        >>> index = WordIndex("python")
        >>> index.update(["a.py"], Files(["a.py"], lambda path: b"import shop"))
        >>> index.holding(["shop"]), index.holding(["cart"])
        ({'a.py'}, set())
    """

    language: str
    _known: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict, init=False)
    _paths: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set), init=False)

    def update(self, paths: Collection[str], files: Files) -> None:
        """Have it say what files say now.

        Args:
            paths: all files of the language; files: the project.
        """
        for path in self._known.keys() - set(paths):
            self._forget(path)
        for path in paths:
            hash_ = files.hash_of(path)
            if hash_ is None or path not in self._known or self._known[path][0] != hash_:
                self._read(path, files)

    def holding(self, words: Iterable[str]) -> set[str]:
        """Paths of the files that hold one of some words."""
        return set[str]().union(*(self._paths.get(word, ()) for word in words))

    def _read(self, path: str, files: Files) -> None:
        self._forget(path)
        content = files.read(path) or b""
        is_written = len(content) <= MAX_BYTES
        words = words_of(content, self.language) if is_written else frozenset[str]()
        # The hash is of what was read, which may be newer.
        self._known[path] = sha256(content).hexdigest(), words
        for word in words:
            self._paths[word].add(path)

    def _forget(self, path: str) -> None:
        _, words = self._known.pop(path, ("", frozenset()))
        for word in words:
            self._paths[word].discard(path)


# --- The graph: which files depend on others, directly and through others -----------------------------

MANIFESTS = ("package.json", "tsconfig.json", "jsconfig.json")
"""Where a file may get another name to be imported by."""


@dataclass
class Cache:
    """What files say, by their content: one that has not changed is read once.

    Attributes:
        imports: what a content imports, by its language and hash.
        words: the files of a language, by the words by which they may import.
        languages: of paths, by what is left out: "" where no imports are looked for.
    """

    imports: dict[str, tuple[Import, ...]] = field(default_factory=dict)
    words: dict[str, WordIndex] = field(default_factory=dict)
    languages: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)


@dataclass
class ImportGraph:
    """Which files of a project import which.

    Args:
        files: the project.
        exclude: globs of paths that are left out, and not followed.
        shared: names of files on which all files below their folder depend, though none says so.
        cache: kept from an earlier graph.

    Example:
        >>> texts = {"a.py": b"", "b.py": b"import a", "test_b.py": b"import b"}
        >>> graph = ImportGraph(Files(texts, texts.__getitem__))
        >>> graph.dependents(["a.py"], depth=2)
        {'b.py': ('b.py', 'a.py'), 'test_b.py': ('test_b.py', 'b.py', 'a.py')}
    """

    files: Files
    exclude: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    cache: Cache = field(default_factory=Cache)

    def __post_init__(self) -> None:
        """Which files there are to look at."""
        languages = self.cache.languages.setdefault(self.exclude, {})
        self._known: dict[str, list[str]] = defaultdict(list)
        for path in self.files.paths:
            language = languages.get(path)
            if language is None:
                is_out = matches(path, self.exclude)
                language = languages[path] = "" if is_out else language_of(path) or ""
            if language:
                self._known[language].append(path)
        self._resolved: dict[str, frozenset[str]] = {}
        self._updated: set[str] = set()

    def dependents(self, targets: Iterable[str], depth: int) -> dict[str, tuple[str, ...]]:
        """The files that import the targets, themselves or through others.

        Args:
            targets: paths; some may be of files that are not there.
            depth: levels of imports to follow: 1 for the files that import a target themselves.

        Returns:
            By dependent, nearest first, the way from it to the target: both included.
        """
        chains: dict[str, tuple[str, ...]] = {}
        start = {path: (path,) for path in sorted(targets)}
        frontier: Mapping[str, tuple[str, ...]] = start
        for _ in range(depth):
            found: dict[str, tuple[str, ...]] = {}
            for path, imported in self._importers(frontier):
                if path not in chains and path not in start and path not in found:
                    found[path] = (path, *frontier[imported])
            chains.update(found)
            frontier = found
        return chains

    def _importers(self, frontier: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """(importing file, what it imports of the frontier), each file once."""
        implied = self._implied(frontier)
        for path in sorted(self._candidates(frontier) - frontier.keys()):
            imported = implied(path) or min(self._imports(path) & frontier.keys(), default=None)
            if imported is not None:
                yield path, imported

    def _candidates(self, frontier: Mapping[str, object]) -> set[str]:
        """The files that may depend on the frontier, as can be told at a glance."""
        words = _words_for(frontier, self.files)
        below = {language_of(p) for p in frontier if posixpath.basename(p) in self.shared}
        found: set[str] = set()
        for language, paths in self._known.items():
            wanted = words.get(language, set())
            if wanted is None or language in below:
                found.update(paths)
            elif wanted:
                found |= self._index(language).holding(wanted)
        return found

    def _index(self, language: str) -> WordIndex:
        index = self.cache.words.setdefault(language, WordIndex(language))
        if language not in self._updated:
            self._updated.add(language)
            index.update(self._known[language], self.files)
        return index

    def _implied(self, frontier: Mapping[str, object]) -> Callable[[str], str | None]:
        """Tells what of the frontier a file depends on without saying so.

        Its package in Go; shared files above it.
        """
        packages: dict[str, str] = {}
        for path in sorted(frontier):
            if path.endswith(".go") and not path.endswith("_test.go") and self._is_known(path):
                packages.setdefault(posixpath.dirname(path), path)
        shared = [path for path in frontier if posixpath.basename(path) in self.shared]

        def implied(path: str) -> str | None:
            if path.endswith("_test.go"):
                return packages.get(posixpath.dirname(path))
            for other in shared:
                folder = posixpath.dirname(other)
                is_below = path.startswith(f"{folder}/" if folder else "")
                if is_below and language_of(path) == language_of(other):
                    return other
            return None

        return implied

    def _is_known(self, path: str) -> bool:
        return path in self.files and not matches(path, self.exclude)

    def _imports(self, path: str) -> frozenset[str]:
        if path not in self._resolved:
            content = self.files.read(path) or b""
            key = f"{posixpath.splitext(path)[1]}:{sha256(content).hexdigest()}"
            if key not in self.cache.imports:
                self.cache.imports[key] = imports_of(path, content)
            found = (resolve(one, path, self.files) for one in self.cache.imports[key])
            self._resolved[path] = frozenset(target for paths in found for target in paths)
        return self._resolved[path]


def _words_for(paths: Iterable[str], files: Files) -> dict[str, set[str] | None]:
    """By language, the words of which a file must hold one to import one of some files; None: none."""
    found: dict[str, set[str] | None] = {}
    for path in paths:
        language = language_of(path)
        if language is None:
            continue
        words = found.setdefault(language, set())
        # Go's are extracted fast, and packages go by their folder's name or by another.
        if language == "go" or (language == "javascript" and _is_named(path, files)):
            found[language] = None
        elif words is not None:
            word = word_for(path)
            is_folder = posixpath.basename(path).partition(".")[0] != word
            words |= {word, RELATIVE} if is_folder else {word}
    return found


def _is_named(path: str, files: Files) -> bool:
    """Whether a manifest names the file: it may be imported under another name."""
    base = posixpath.basename(path).partition(".")[0].encode()
    manifests = files.keep(
        "import_graph",
        "manifests",
        lambda: [files.read(p) or b"" for name in MANIFESTS for p in files.called(name)],
    )
    return any(base in content for content in manifests)


# --- What of a change cannot be spoken of, and why ----------------------------------------------------

MAX_NAMED = 3
"""Files that a reason names; chosen, not measured."""

_NO_CODE = frozenset({"example", "lock"})


def unchecked(
    before: Mapping[str, Results],
    now: Iterable[str],
    changed: Sequence[str],
    untold: Iterable[str],
) -> str:
    """Why some test that passed before may be broken unseen; "" where that cannot be.

    Args:
        before: results by run, on the starting tree.
        now: the runs that were looked at again.
        changed: what the task has changed.
        untold: files that depend on it, or are it, and of which no run told anything.

    Example:
        >>> unchecked({}, [], ["a.js"], [])
        'not checked: no check told results per test, before the work and after it'
        >>> unchecked({"t": Results({"a": "failed"})}, ["t"], ["a.py"], ["b.test.js", "b.js"])
        'not checked: no results per test are known of b.test.js'
    """
    globs = [glob for how in narrowings() for glob in how.files]
    tests = sorted(path for path in untold if matches(path, globs))
    if tests:
        return f"not checked: no results per test are known of {_named(tests)}"
    told = [run for run in now if run in before and before[run].outcomes]
    if not told:
        return "not checked: no check told results per test, before the work and after it"
    unknown = [
        path for path in changed if language_of(path) is None and not kinds_of_path(path) & _NO_CODE
    ]
    if unknown:
        return f"not checked beyond the checks' own tests: what uses {_named(unknown)} is not known"
    return ""


def _named(paths: Sequence[str]) -> str:
    shown, rest = ", ".join(paths[:MAX_NAMED]), len(paths) - MAX_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown


# --- Tests that were seen failing and are not mended --------------------------------------------------


def missing_tests(
    seen_failing: frozenset[tuple[str, str]],
    report: Report,
    gone: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Tests that were seen failing and are not mended, though no check may say so.

    A test that is deleted, skipped or expected to fail is not fixed, nor is one that fails in a check
    that ends well: its exit code was hidden. A whole file that could not be loaded counts as found
    again once any of its tests passes.

    Args:
        seen_failing: (check, test) of each that was seen failing.
        report: what the checks say now.
        gone: files of tests that checks failed in, and that are not there any more: all that can be
            known where a runner tells no results, or none of what it could not build.

    Returns:
        ``gone``, ``skipped`` or ``failing`` by test.
    """
    lost = dict.fromkeys(gone, "gone")
    for result in report.results:
        tests = result.tests or {}
        hides = result.passed and not result.check.expected  # else its exit code counts for nothing
        for name, test in seen_failing:
            if name != result.check.name or tests.get(test) == PASSED:
                continue
            if tests.get(test) == FAILED:
                if hides:
                    lost[test] = "failing"
                continue
            within = [tests[other] for other in inside(test, tests)]
            if test in tests or (within and PASSED not in within):
                lost[test] = "skipped"
            elif not within:
                lost[test] = "gone"
    return dict(sorted(lost.items()))


def missing_tests_failure(lost: Mapping[str, str]) -> Failure:
    """The failure that lost tests amount to; ``lost`` is what `missing_tests` found, not empty."""
    (test, how), *_ = lost.items()
    message = f"{test} {_MESSAGES[how]}"
    listing = "\n".join(f"{name}: {what}" for name, what in lost.items())
    return Failure.of(
        message,
        tool="loki",
        error_code=f"test-{how}",
        tests=tuple(lost),
        excerpt=listing,
        pattern="test-failure",  # whatever the test's own name says
    )


_NOT_REMOVED = "a test that must pass may not be removed"
_MESSAGES = {
    "gone": f"was failing and is now gone: {_NOT_REMOVED}",
    "skipped": f"was failing and is now skipped or expected to fail: {_NOT_REMOVED}",
    "failing": "still fails, and the check ends with success all the same: mend what it tests, and "
    "let the check end as its tests do",
}


# --- The check ----------------------------------------------------------------------------------------

logger = logging.getLogger("loki")

DEPENDENTS = "dependents: "
"""Before the name of a run of tests that no check covers."""

NOTHING = "no test that passed before can be broken by the change"


@dataclass
class RegressionCheck:
    """Takes the baseline, extends it, and compares.

    Args:
        task_id: the task's id; checks: the task's checks.
        work: what the task has done to the project.
        runner: runs checks in it.
        store: where the baseline is kept.
        clock: the time.
        setting: how far to search, and where not.
        detected: tells the test command of a project, or None where none is found.
    """

    task_id: str
    checks: Sequence[Check]
    work: TaskChanges
    runner: CheckRunner
    store: Store
    clock: Clock
    setting: RegressionDetection = field(default_factory=RegressionDetection)
    detected: Callable[[Tree], tuple[str, ...] | None] = lambda _: None

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.baseline = Baseline()
        self._cache = Cache()
        self._tree: Tree | None = None
        self._tried: set[str] = set()

    def started(self, report: Report) -> None:
        """Take the results of the checks before the first attempt; they ran on the starting tree.

        Unless an earlier run of the task has left changes: then its baseline goes on.
        """
        if self.work.paths():
            self.baseline = Baseline.load(self.store, self.task_id) or Baseline()
            return
        self.baseline = Baseline(captured_at=isoformat(self.clock.now()))
        for run, results in _told(report).items():
            self.baseline.add(run, results)

    def restart(self) -> None:
        """The starting tree is another one: what is known of the old one tells nothing of it."""
        self.baseline = Baseline(captured_at=isoformat(self.clock.now()))
        self._tried = set()

    def prepare(self, paths: Sequence[str], tree: Tree) -> None:
        """Before a change: run the tests that it can break and that no check covers.

        Args:
            paths: what it will change.
            tree: the project that it is to.
        """
        self._extend((*self.work.paths(), *paths), tree)

    def compare(self, report: Report) -> Comparison:
        """Every test that the task can have broken, now and before it.

        Args:
            report: what the checks just said, all of which pass.
        """
        changed = self.work.paths()
        if not changed:
            return Comparison(skipped="nothing is different")
        self._extend(changed, Tree.scan(self.runner.root, self._tree), report)
        now = self._now(report)
        if self.runner.cancelled.is_set():
            return Comparison(skipped="cancelled")
        found = compare_results(self.baseline.results, now, self._affects())
        found = replace(self._without_flaky(found), unchecked=self._unchecked(now, changed))
        if not found.compared:
            return replace(found, skipped=found.unchecked or NOTHING)
        ways = {b.file: way for b in found.regressions if (way := self._way(b.file))}
        return replace(found, chains=ways, changed=changed)

    def _now(self, report: Report) -> dict[str, Results]:
        """Results of the runs that the baseline has, on the tree as it is; of one that tells none, none."""
        assert self._tree is not None
        asked = self.baseline.asked
        names = {result.check.name for result in report.results}
        names |= {check.name for check, _ in self._besides(asked)}
        now = {run: Results() for run in self.baseline.results.keys() & names}
        now.update(_told(report))
        # A runner that is told to test a file that is gone would test nothing at all.
        for check, _ in self._besides(path for path in asked if path in self._tree.entries):
            now[check.name] = _results(self.runner.run_one(check)) or Results()
        return now

    def _unchecked(self, now: Mapping[str, Results], changed: Sequence[str]) -> str:
        untold = self._untold(self._before())
        return unchecked(self.baseline.results, now, changed, untold)

    def _before(self) -> Files:
        """The project as the task found it."""
        assert self._tree is not None
        return self.work.before(self._tree)

    def _untold(self, before: Files) -> list[str]:
        """The files that the change can break, and that no result of the baseline stands for."""
        covered = self._covered(before)
        return [path for path in self._affected() if path in before and path not in covered]

    # --- The baseline ---

    def _extend(self, paths: Sequence[str], tree: Tree, report: Report | None = None) -> None:
        """See to it that the baseline covers all that these paths can break."""
        self._tree = tree
        before = self.work.before(tree)
        targets = tuple(dict.fromkeys((*self.baseline.targets, *paths)))
        ways = self._graph(before).dependents(targets, self.setting.search_depth)
        if self.work.paths():  # what has come to depend on them since
            now = self._graph(Files(tree.entries, tree.read, tree.hash_of))
            ways = {**now.dependents(targets, self.setting.search_depth), **ways}
        grown = replace(self.baseline, targets=targets, dependents=ways)
        is_new = grown != self.baseline
        self.baseline = grown
        missing = self._missing_checks(report) if report else []
        wanted = [path for path in self._untold(before) if path not in grown.asked]
        runs = [*missing, *(check for check, _ in self._besides(wanted))]
        if runs:
            self._run_before(tree, runs)
            asked = [p for check, files in self._besides(wanted) for p in files]
            self.baseline.asked = tuple(dict.fromkeys((*self.baseline.asked, *asked)))
        if runs or is_new:
            self.baseline.captured_at = self.baseline.captured_at or isoformat(self.clock.now())
            self.baseline.keep(self.store, self.task_id)

    def _missing_checks(self, report: Report) -> list[Check]:
        """Checks that tell results now, and of which the starting tree's are not known."""
        told = _told(report)
        missing = [
            result.check
            for result in report.results
            if result.check.name in told.keys() - self.baseline.results.keys() - self._tried
        ]
        self._tried |= {check.name for check in missing}
        return missing

    def _run_before(self, tree: Tree, runs: Sequence[Check]) -> None:
        """Run checks on the starting tree: in place while it is that, else in a copy of it."""
        names = ", ".join(check.name for check in runs)
        logger.info("[closed-loop] task=%s baseline runs=%d: %s", self.task_id, len(runs), names)
        if not self.work.paths():
            self._take(self.runner, runs)
            return
        with scratch_folder() as folder:
            try:
                root = self.work.copy_before(tree, os.path.join(folder, "tree"))
            except OSError as error:
                logger.warning("no copy of the starting tree, so no baseline of it: %s", error)
                return
            self._take(self.runner.in_copy(root), runs)

    def _take(self, runner: CheckRunner, runs: Sequence[Check]) -> None:
        for check in runs:
            results = _results(runner.run_one(check))
            if results is not None:
                self.baseline.add(check.name, results)

    def _graph(self, files: Files) -> ImportGraph:
        shared = tuple(name for how in narrowings() for name in how.shared)
        return ImportGraph(files, self.setting.exclude_patterns, shared, self._cache)

    # --- What is run besides the checks ---

    def _besides(self, files: Iterable[str]) -> list[tuple[Check, list[str]]]:
        """The runs that test some files, each with those that it tests."""
        left, found = list(files), []
        for check, narrowed in self._commands():
            mine = narrowed.tests(left)
            if mine:
                left = [path for path in left if path not in mine]
                named = narrowed.for_files(sorted(mine))
                name = DEPENDENTS + check.name
                found.append((replace(check, command=named, name=name, kind="test"), mine))
        return found

    def _commands(self) -> list[tuple[Check, Narrowed]]:
        """The test commands that can be told what to test: the task's, then the project's."""
        own = [check for check in self.checks if check.kind in {"test", "command"}]
        assert self._tree is not None
        words = self.detected(self._tree)
        if words and words not in [check.command for check in own]:
            own.append(Check(words, "test", " ".join(words)))
        found = [(check, Narrowed.of(check.command, self.runner.root)) for check in own]
        return [(check, narrowed) for check, narrowed in found if narrowed is not None]

    def _covered(self, files: Files) -> set[str]:
        """The files that the results of the baseline stand for."""
        checks = {check.name: check for check in self.checks}
        found: set[str] = set()
        for run, told in self.baseline.results.items():
            check = checks.get(run)
            if check is None:  # a run besides, whose files were asked for one by one
                asked = self._besides(self.baseline.asked)
                found |= {path for one, mine in asked if one.name == run for path in mine}
            else:
                found |= self._places(check, told, files)
        return found

    def _places(self, check: Check, told: Results, files: Files) -> set[str]:
        """The files that a check's results stand for; none where it picked single tests."""
        narrowed = Narrowed.of(check.command, self.runner.root)
        if narrowed is not None and narrowed.is_selective:
            return set()
        if narrowed is not None and not told.files:
            return set(narrowed.tests(files.paths)) if narrowed.is_whole else set()
        return {path for file in set(told.files.values()) for path in _paths(file, files)}

    # --- What to compare ---

    def _affected(self) -> list[str]:
        paths = dict.fromkeys((*self.baseline.targets, *self.baseline.dependents))
        return [path for path in paths if not matches(path, self.setting.exclude_patterns)]

    def _affects(self) -> Callable[[str], bool]:
        """Whether tests in a file can be broken; where that cannot be told, they can."""
        before = self._before()
        affected = frozenset(self._affected())

        def affects(file: str) -> bool:
            if matches(file, self.setting.exclude_patterns):
                return False
            paths = _paths(file, before)
            known = [path for path in paths if language_of(path) is not None]
            return not known or not affected.isdisjoint(known)

        return affects

    def _way(self, file: str) -> tuple[str, ...]:
        """How a test's file depends on the change."""
        paths = _paths(file, self._before())
        ways = [self.baseline.dependents[p] for p in paths if p in self.baseline.dependents]
        return min(ways, key=len, default=())

    def _without_flaky(self, found: Comparison) -> Comparison:
        """Run what fails now once more: what passes then was no regression."""
        failing = [b for b in found.regressions if b.now == FAILED]
        assert self._tree is not None
        now = Files(self._tree.entries, self._tree.read)
        files = sorted({path for b in failing for path in _paths(b.file, now)})
        if not files:
            return found
        again = Results()
        for check, _ in self._besides(files):
            again += _results(self.runner.run_one(check)) or Results()
        flaky = {b.test for b in failing if again.outcomes.get(b.test) == PASSED}
        if flaky:
            logger.warning("flaky, so no regressions: %s", ", ".join(sorted(flaky)))
        kept = tuple(b for b in found.regressions if b.test not in flaky)
        counts = {b.file: found.counts[b.file] for b in kept}
        return replace(found, regressions=kept, counts=counts, flaky=tuple(sorted(flaky)))


def _told(report: Report) -> dict[str, Results]:
    """Results by check, of the checks that tell them."""
    found = ((result.check.name, _results(result)) for result in report.results)
    return {name: results for name, results in found if results is not None}


def _results(result: CheckResult) -> Results | None:
    return None if result.tests is None else Results(result.tests, result.files)


def _paths(file: str, files: Files) -> tuple[str, ...]:
    """The project's files that a runner means: a file, or all tests of a folder or package."""
    if not file or file in files:
        return (file,) if file else ()
    folder = file
    if not files.is_folder(file):
        found = locate(Import(file, 1, 1), "x.go", files)  # a package, by its import path
        named = (*found.paths, *found.expected)
        if not named:
            return ()
        folder = posixpath.dirname(named[0])
    paths = (posixpath.join(folder, name) for name in sorted(files.names(folder)))
    return tuple(path for path in paths if path in files and path.endswith("_test.go"))
