"""What became of each test of a run, read from what test runners report, and how two runs compare.

A format is read from a report's bytes, which may be cut short; one that a runner prints in place of its
text has a way back to the text that a person would have read. Runs are compared test by test: a count of
failures would miss a swap, one test mended and another broken.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loki.base import codec, documents
from loki.base.codec import IsoTime
from loki.base.documents import kept_as
from loki.base.markup import bullets, cell, code, inline
from loki.base.yaml_text import front_matter
from loki.memory.store import Store
from loki.recognition.failure import Failure
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from xml.etree import ElementTree


PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
"""A test that is expected to fail counts as skipped wherever its runner says so."""

SEPARATORS = (".", " > ", "::")
"""What stands between a file or package and the tests in it, in the ids of the formats here."""


@dataclass(frozen=True, slots=True)
class Results:
    """Outcome by test.

    Attributes:
        outcomes: passed, failed or skipped, by the test's id: as stable as its name.
        files: by test, the file or folder that it stands in, relative to the project; only of tests
            whose runner says so.
    """

    outcomes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: Results) -> Results:
        """Both; what failed in one of them failed."""
        collected = Collected()
        for results in (self, other):
            for test, outcome in results.outcomes.items():
                collected.add(test, outcome, results.files.get(test, ""))
        return collected.results()


class Collected:
    """Gathers results; a test that ran several times failed if it failed once."""

    def __init__(self) -> None:
        self._outcomes: dict[str, str] = {}
        self._files: dict[str, str] = {}

    def add(self, test: str, outcome: str, file: str = "") -> None:
        """One more result."""
        if outcome == FAILED or self._outcomes.get(test) not in {FAILED, PASSED}:
            self._outcomes[test] = outcome
        if file:
            self._files[test] = file

    def results(self) -> Results:
        """All of them."""
        return Results(self._outcomes, self._files)


def json_object(line: str) -> dict[str, Any]:
    """The object that a line holds; an empty one where it holds none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def inside(whole: str, tests: Iterable[str]) -> list[str]:
    """The tests of a file or package, by its id.

    Example:
        >>> inside("a", ["a.b", "ab.c", "a > c"])
        ['a.b', 'a > c']
    """
    heads = tuple(whole + separator for separator in SEPARATORS)
    return [test for test in tests if test.startswith(heads)]


def relative(path: str, root: str) -> str:
    """A path relative to the project where it is in it, with ``/``.

    Example:
        >>> relative("/srv/shop/a/b.py", "/srv/shop"), relative("./a.py", "/srv/shop")
        ('a/b.py', 'a.py')
    """
    path = posixpath.normpath(path.replace("\\", "/")) if path else ""
    return path.removeprefix(root.rstrip("/") + "/")


# --- JUnit XML, which most test runners can write -----------------------------------------------------
#
# https://github.com/testmoapp/junitxml


def _junit(content: bytes, root: str) -> Results | None:
    """Outcome by test; ids are ``classname.name``.

    Args:
        content: the report; one that was cut short by a crash of the runner holds no results.
        root: the project's folder.

    Example:
        >>> xml = b'<testsuite><testcase classname="a.b" name="c"><skipped/></testcase></testsuite>'
        >>> read("junit", xml, "/").outcomes
        {'a.b.c': 'skipped'}
    """
    collected = Collected()
    from xml.etree import ElementTree  # many read results, few of this form

    try:
        document = ElementTree.fromstring(content)  # noqa: S314 - expat limits expansion
    except ElementTree.ParseError:
        return None
    _junit_cases(document, root, "", collected)
    return collected.results()


def _junit_cases(element: ElementTree.Element, root: str, file: str, collected: Collected) -> None:
    file = element.get("file") or element.get("filepath") or file
    for child in element:
        if child.tag == "testcase":
            own = child.get("file") or file
            collected.add(_junit_id(child), _junit_outcome(child), relative(own, root))
        elif child.tag in {"testsuite", "testsuites"}:
            _junit_cases(child, root, file, collected)


def _junit_id(case: ElementTree.Element) -> str:
    classname, name = case.get("classname") or "", case.get("name") or ""
    return f"{classname}.{name}" if classname else name


def _junit_outcome(case: ElementTree.Element) -> str:
    children = {child.tag for child in case}
    if "skipped" in children:  # also of what failed as it was expected to
        return SKIPPED
    if children & {"failure", "error"}:
        return FAILED
    # googletest says so in an attribute, ctest of what is switched off, too.
    return SKIPPED if case.get("status") in {"notrun", "disabled"} else PASSED


# --- The JSON of jest, which vitest writes as well ----------------------------------------------------
#
# https://jestjs.io/docs/cli#--json

_JEST = {"passed": PASSED, "failed": FAILED}
"""Anything else did not run: pending, skipped, todo, disabled."""


def _jest(content: bytes, root: str) -> Results | None:
    """Outcome by test; ids are ``file > title > title``, a file's that could not be loaded its path.

    Args:
        content: the report.
        root: the project's folder.
    """
    try:
        data = json.loads(content)
        return _jest_suites(data["testResults"], root)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # cut short, or of another tool


def _jest_suites(suites: list[Mapping[str, Any]], root: str) -> Results:
    collected = Collected()
    for suite in suites:
        file = relative(str(suite["name"]), root)
        tests = suite["assertionResults"]
        for test in tests:
            titles = (file, *test["ancestorTitles"], test["title"])
            outcome = _JEST.get(test["status"], SKIPPED)
            collected.add(" > ".join(map(str, titles)), outcome, file)
        failed_itself = not any(test["status"] == "failed" for test in tests)
        if suite["status"] == "failed" and failed_itself:
            collected.add(file, FAILED, file)
    return collected.results()


# --- The events that ``go test -json`` prints ---------------------------------------------------------
#
# https://pkg.go.dev/cmd/test2json. Lines that are no events (of the compiler, of older versions, of the
# build cache) may stand between.

_GO = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}

_GO_FRAME = re.compile(r"^=== (?:RUN|PAUSE|CONT|NAME)\b|^\s*--- (?:PASS|SKIP): ")
"""Lines that only ``go test -v`` prints."""


def _go(content: bytes, _root: str) -> Results | None:
    """Outcome by test; ids are ``package.Test/subtest``, a package's that failed itself its path."""
    collected, failing = Collected(), set()
    for event in filter(None, map(_go_event, content.decode("utf-8", "replace").splitlines())):
        package, test = str(event.get("Package", "")), str(event.get("Test", ""))
        outcome = _GO.get(str(event.get("Action")))
        if outcome is None or not package:
            continue
        if test:
            collected.add(f"{package}.{test}", outcome, package)
            if outcome == FAILED:
                failing.add(package)
        elif outcome == FAILED and package not in failing:
            collected.add(package, FAILED, package)  # it did not build, or its main failed
    return collected.results()


def _go_plain(content: bytes) -> bytes:
    """What ``go test`` would have printed without ``-json``: what failed, and a line a package."""
    out: list[str] = []
    packages: dict[str, _GoPackage] = {}
    for line in content.decode("utf-8", "replace").splitlines(keepends=True):
        event = _go_event(line)
        if event is None:
            out.append(line)
            continue
        action, text = event.get("Action"), str(event.get("Output", ""))
        if action == "build-output":
            out.append(text)
        name = event.get("Package")
        if not isinstance(name, str):
            continue
        package = packages.setdefault(name, _GoPackage())
        package.take(str(event.get("Test", "")), str(action), text)
        if package.is_over:
            out += packages.pop(name).lines()
    # A package without an end: its process was killed.
    out += [line for package in packages.values() for line in package.lines()]
    return "".join(out).encode()


@dataclass
class _GoPackage:
    """What one package printed, until its end."""

    printed: dict[str, list[str]] = field(default_factory=lambda: {"": []})
    outcomes: dict[str, str] = field(default_factory=dict)

    def take(self, test: str, action: str, text: str) -> None:
        if action == "output":
            self.printed.setdefault(test, []).append(text)
        elif action in _GO:
            self.outcomes[test] = action

    @property
    def is_over(self) -> bool:
        return "" in self.outcomes

    def lines(self) -> list[str]:
        own = [line for line in self.printed[""] if not _GO_FRAME.match(line)]
        if self.outcomes.get("") in {"pass", "skip"}:
            return [line for line in own if line != "PASS\n"]
        tests = [test for test in self.printed if test and "/" not in test]
        return [*(line for test in tests for line in self._of(test, 0)), *own]

    def _of(self, test: str, depth: int) -> Iterator[str]:
        """A test: the line that says that it failed, what it printed, its subtests."""
        printed = [line for line in self.printed[test] if not _GO_FRAME.match(line)]
        is_cut_short = test not in self.outcomes
        heads = [line for line in printed if line.lstrip().startswith("--- FAIL: ")]
        indent = "    " * depth
        for line in heads:
            yield indent + line.lstrip()
        passed = self.outcomes.get(test) in {"pass", "skip"}
        for line in printed:
            # Of what passed, its log is not shown; what it printed by itself is.
            is_log = line.startswith("    ")
            if line not in heads and not (passed and is_log):
                yield indent + line if is_log else line
        if not passed or is_cut_short:
            for other in self.printed:
                if other.rpartition("/")[0] == test:
                    yield from self._of(other, depth + 1)


def _go_event(line: str) -> Mapping[str, Any] | None:
    event = json_object(line) if line.startswith('{"') else {}
    return event if "Action" in event and ("Package" in event or "ImportPath" in event) else None


# --- What Rust's libtest prints by way of cargo, as text or as JSON -----------------------------------
#
# https://doc.rust-lang.org/rustc/tests/index.html. JSON is unstable and printed where it was asked for.

_BINARY = re.compile(
    r"^\s+Running (?:unittests )?(\S+) \(\S*?([\w-]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)$"
)
_DOCUMENTATION = re.compile(r"^\s+Doc-tests (\S+)$")
_TEST = re.compile(r"^test (\S.*?) \.\.\. (?:(ok|FAILED|ignored)\b|.* (ok|FAILED)$)?")
_LATER = re.compile(r"^(ok|FAILED)$")
_LINE = re.compile(r" \(line \d+\)")
_LIBTEST = {"ok": PASSED, "FAILED": FAILED, "failed": FAILED, "ignored": SKIPPED}


def _libtest(content: bytes, _root: str) -> Results | None:
    """Outcome by test; ids are ``binary file::path::of::test``.

    A documentation test is called after its item, without its line, which moves. ``should panic``
    stays part of a name: a test that is expected to fail now is another one.
    """
    collected = Collected()
    binary = file = pending = ""
    for line in content.decode("utf-8", "replace").splitlines():
        if found := _BINARY.match(line):
            file, binary, pending = found[1], found[2], ""
        elif found := _DOCUMENTATION.match(line):
            file, binary, pending = "", f"doc {found[1]}", ""
        elif found := _TEST.match(line):
            name = _LINE.sub("", found[1])
            outcome = found[2] or found[3]
            pending = "" if outcome else name
            if outcome:
                _add_libtest(collected, binary, file, name, outcome)
        elif pending and (found := _LATER.match(line)):  # with --nocapture its output came between
            _add_libtest(collected, binary, file, pending, found[1])
            pending = ""
        elif (event := _libtest_event(line)) is not None:
            name = _LINE.sub("", str(event["name"]))
            _add_libtest(collected, binary, file, name, str(event["event"]))
    return collected.results()


def _libtest_plain(content: bytes) -> bytes:
    """What libtest would have printed without JSON; text stays as it is."""
    lines = content.decode("utf-8", "replace").splitlines(keepends=True)
    return "".join(_libtest_shown(line) for line in lines).encode()


def _add_libtest(collected: Collected, binary: str, file: str, name: str, outcome: str) -> None:
    if outcome in _LIBTEST:
        # Documentation tests begin with their file: "src/lib.rs - add".
        own = file or name.partition(" - ")[0]
        source = f"{binary} {file}".strip()
        collected.add(f"{source}::{name}" if source else name, _LIBTEST[outcome], own)


def _libtest_shown(line: str) -> str:
    event = _libtest_event(line)
    if event is None:
        return "" if line.startswith('{ "type": ') else line
    name, what = event["name"], str(event["event"])
    if what not in _LIBTEST:
        return ""
    head = f"test {name} ... {'FAILED' if what == 'failed' else what}\n"
    printed = str(event.get("stdout", ""))
    return f"{head}---- {name} stdout ----\n{printed}\n" if what == "failed" else head


def _libtest_event(line: str) -> Mapping[str, Any] | None:
    event = json_object(line) if line.startswith('{ "type": "test"') else {}
    return event if {"name", "event"} <= event.keys() else None


# --- Any of them --------------------------------------------------------------------------------------

_READERS: Mapping[str, Callable[[bytes, str], Results | None]] = {
    "junit": _junit,
    "jest": _jest,
    "go": _go,
    "libtest": _libtest,
}
_PLAIN = {"go": _go_plain, "libtest": _libtest_plain}


def read(format_: str, content: bytes, root: str) -> Results | None:
    """The results in a report; None where it holds none, or is damaged.

    Args:
        format_: junit, jest, go or libtest.
        content: of the report, or what the runner printed.
        root: the project's folder; files are named relative to it.

    Example:
        >>> read("go", b'{"Action":"pass","Package":"p","Test":"TestA"}', "/").outcomes
        {'p.TestA': 'passed'}
    """
    found = _READERS[format_](content, root)
    return found if found is not None and found.outcomes else None


def plain(format_: str, content: bytes) -> bytes:
    """What a runner printed, without the format that it was asked for.

    Args:
        format_: go or libtest; others print text anyway.
        content: what it printed.
    """
    to_text = _PLAIN.get(format_)
    return to_text(content) if to_text else content


# --- Results before and after a change ----------------------------------------------------------------

PATTERN = "regression-detected"
GONE = "gone"

MAX_LISTED = 40
"""Tests that a report names; chosen, not measured."""

UNTOLD = "(not told by the runner)"
"""What stands for a file that is not known."""

_NOW = {FAILED: "now failing", GONE: "now gone", "skipped": "now skipped"}


@dataclass(frozen=True, slots=True)
class Broken:
    """A test that passed on the starting tree and does not any more.

    Attributes:
        run: the check, or other run, that told.
        test: its id.
        file: where it stands, as far as that is known.
        now: failed, skipped or gone.
    """

    run: str
    test: str
    file: str
    now: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many of a file's tests pass, before and after."""

    passed_before: int = 0
    before: int = 0
    passed_after: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of the tests that a change can have broken.

    Attributes:
        regressions: tests that passed and do not any more.
        counts: by file, of the files with regressions.
        compared: number of tests that passed before and were looked at again.
        flaky: tests that failed once and passed when they were run again: no regressions.
        chains: by file with regressions, the files through which it depends on the change, itself
            first, the changed file last.
        changed: the files that the change touched.
        skipped: why nothing was compared, or "".
        unchecked: why a test may be broken all the same, unseen, or "".
    """

    regressions: tuple[Broken, ...] = ()
    counts: Mapping[str, Count] = field(default_factory=dict)
    compared: int = 0
    flaky: tuple[str, ...] = ()
    chains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    skipped: str = ""
    unchecked: str = ""

    @property
    def tests(self) -> frozenset[str]:
        """Ids of the tests with regressions."""
        return frozenset(broken.test for broken in self.regressions)

    @property
    def outcome(self) -> str:
        """In a word: passed, failed or skipped."""
        return "skipped" if self.skipped else "failed" if self.regressions else "passed"

    def record(self, *, fixed: bool) -> dict[str, Any]:
        """What is kept of it in the attempt's record; ``fixed``: what was broken before is well."""
        said = {
            "ran": not self.skipped,
            "skipped": bool(self.skipped),
            "regressions": len(self.tests),
            "fixed": fixed,
        }
        return {**said, "unchecked": self.unchecked} if self.unchecked else said

    @property
    def dependents(self) -> tuple[str, ...]:
        """Files between the change and the broken tests: where to look first."""
        between = (chain[-2] for chain in self.chains.values() if len(chain) > 1)
        return tuple(dict.fromkeys(between))

    def failure(self, patterns: PatternSet) -> Failure | None:
        """The failure that the regressions amount to; None where there are none."""
        if not self.regressions:
            return None
        count = len(self.regressions)
        first = self.regressions[0]
        many = f"{count} tests" if count > 1 else "1 test"
        return Failure.of(
            f"regression: {many} that passed before the change no longer pass: {first.test}",
            tool="loki",
            error_code=PATTERN,
            pattern=PATTERN if PATTERN in patterns.patterns else None,
            patterns=patterns,
            path=next(iter((*self.dependents, first.file)), None) or None,
            tests=tuple(broken.test for broken in self.regressions),
            excerpt=comparison_report(self),
        )


def compare_results(
    before: Mapping[str, Results],
    after: Mapping[str, Results],
    affects: Callable[[str], bool] = lambda _: True,
) -> Comparison:
    """Results on the starting tree beside those of now; runs that only one of both has are left out.

    Args:
        before: results by run, on the starting tree.
        after: results by the same runs, now.
        affects: whether the change can have broken tests in a file; asked with "" where the runner
            does not say where a test stands.

    Example:
        >>> before = {"pytest": Results({"a.t": "passed", "a.u": "failed"})}
        >>> swapped = {"pytest": Results({"a.t": "failed", "a.u": "passed"})}
        >>> [broken.test for broken in compare_results(before, swapped).regressions]
        ['a.t']
    """
    found, compared = [], 0
    runs = before.keys() & after.keys()
    for run in runs:
        then, now = before[run], after[run]
        for test, outcome in then.outcomes.items():
            file = then.files.get(test, "")
            if outcome != PASSED or not affects(file):
                continue
            compared += 1
            is_now = now.outcomes.get(test, GONE)
            if is_now != PASSED:
                found.append(Broken(run, test, file, is_now))
    found.sort(key=lambda broken: (broken.file, broken.test, broken.run))
    old, new = _by_file(before[run] for run in runs), _by_file(after[run] for run in runs)
    counts = {
        file: Count(
            old[file].count(PASSED), len(old[file]), new[file].count(PASSED), len(new[file])
        )
        for file in dict.fromkeys(broken.file for broken in found)
    }
    return Comparison(tuple(found), counts, compared)


def _by_file(runs: Iterable[Results]) -> dict[str, list[str]]:
    """The outcomes of the tests in each file."""
    found: dict[str, list[str]] = defaultdict(list)
    for results in runs:
        for test, outcome in results.outcomes.items():
            found[results.files.get(test, "")].append(outcome)
    return found


def comparison_report(comparison: Comparison) -> str:
    """The regressions as Markdown: files with their counts, the tests, and where to look."""
    files = list(comparison.counts)
    many = f"{len(files)} files have" if len(files) > 1 else "1 file has"
    table = ["| File | Baseline | Current | New Failures |"]
    table.append("|------|----------|---------|--------------|")
    for file, c in comparison.counts.items():
        passing = f"{c.passed_before}/{c.before} pass | {c.passed_after}/{c.after} pass"
        table.append(f"| {_shown(file)} | {passing} | {len(_of(comparison, file))} |")
    parts = [
        "## Regression Detected",
        f"{many} tests that passed before the change and do not any more:",
        "\n".join(table),
        "### Affected Tests",
        *(_listed(comparison, file) for file in files),
        "### Suggested Investigation",
        _advice(comparison),
    ]
    return "\n\n".join(parts) + "\n"


def _shown(file: str) -> str:
    return cell(code(file)) if file else UNTOLD


def _of(comparison: Comparison, file: str) -> Sequence[Broken]:
    return [broken for broken in comparison.regressions if broken.file == file]


def _listed(comparison: Comparison, file: str) -> str:
    broken = _of(comparison, file)
    lines = [
        f"- {code(b.test)} - was passing, {_NOW.get(b.now) or inline(b.now)}"
        for b in broken[:MAX_LISTED]
    ]
    if len(broken) > MAX_LISTED:
        lines.append(f"- and {len(broken) - MAX_LISTED} more")
    chain = comparison.chains.get(file, ())
    if len(chain) > 1:
        lines.append(f"\n{' imports '.join(code(path) for path in chain)}, which was changed.")
    head = f"{code(file)}:\n\n" if file else ""
    return head + "\n".join(lines)


def _advice(comparison: Comparison) -> str:
    look = ", ".join(map(code, comparison.dependents)) or "the code under these tests"
    changed = ", ".join(map(code, comparison.changed)) or "the change"
    return (
        f"1. Read {look}: how does it use what was changed in {changed}?\n"
        "2. Check whether a contract changed: a signature, what is returned, what is done besides.\n"
        "3. Update what depends on it, or keep the contract. A test that passed may not be removed."
    )


# --- How tests did on the tree that a task began with -------------------------------------------------


@kept_as(r"tasks/[^/]+/baseline\.json")
@dataclass
class Baseline:
    """Results by test on the starting tree; it grows as changes touch more.

    Attributes:
        targets: files that the task changes.
        dependents: by file that imports them, the way from it to a target.
        asked: test files that were run for the baseline beside the checks.
        captured_at: when it was taken, ISO 8601 UTC.
        results: by the run that told them: a check's name, or that of a run of dependents' tests.
        flaws: what in the file does not fit.
    """

    targets: tuple[str, ...] = ()
    dependents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    captured_at: IsoTime = ""
    results: dict[str, Results] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()

    def add(self, run: str, results: Results) -> None:
        """Take a run's results in; what failed once failed."""
        self.results[run] = self.results[run] + results if run in self.results else results

    def keep(self, store: Store, task_id: str) -> None:
        """Write it, for people and for the next start."""
        data = {"version": 1, **codec.write(self)}
        store.write(_document(task_id), json.dumps(data, ensure_ascii=False))
        store.write(f"tasks/{task_id}/baseline-{task_id}.md", self.page(task_id))

    @classmethod
    def load(cls, store: Store, task_id: str) -> Baseline | None:
        """The baseline that was kept; None where there is none, or it is damaged."""
        found = documents.load_as(cls, store, _document(task_id))
        return None if found is None or found.flaws else found

    def page(self, task_id: str) -> str:
        """The page for people: front matter, files with their counts, tests that failed already."""
        baseline, rows = [], []
        for file, outcomes in sorted(_by_file(self.results.values()).items()):
            n, passed, failed = len(outcomes), outcomes.count(PASSED), outcomes.count(FAILED)
            baseline.append(
                {"file": file, "test_count": n, "pass_count": passed, "fail_count": failed}
            )
            rows.append(f"| {_shown(file)} | {passed}/{n} pass | {failed} |")
        failing = sorted(
            f"{code(test)} ({inline(run)})"
            for run, told in self.results.items()
            for test, outcome in told.outcomes.items()
            if outcome == FAILED
        )
        head = {
            "entity_name": f"session.current.baseline.{task_id}",
            "namespace": "session.current",
            "category": "regression-baseline",
            "task_id": task_id,
            "target_files": sorted(self.targets),
            "dependent_files": sorted(self.dependents),
            "baseline_results": baseline,
            "captured_at": self.captured_at,
        }
        listed = "\n".join(
            ("| File | Baseline | Failing |", "|------|----------|---------|", *rows)
        )
        return (
            f"{front_matter(head)}\n## Tests before the task\n\n"
            f"{listed if rows else 'No test reported its result.'}\n\n"
            f"### Failing already\n\n{bullets(failing)}\n\n"
            f"### Files that depend on the change\n\n{self._ways()}\n"
        )

    def _ways(self) -> str:
        ways = [" imports ".join(map(code, way)) for way in self.dependents.values()]
        return "\n".join(f"- {way}" for way in ways) or "None were found."


def _document(task_id: str) -> str:
    return f"tasks/{task_id}/baseline.json"
