"""What became of each test of a run, read from what test runners report.

A format is read from a report's bytes, which may be cut short; one that a runner prints in place of its
text has a way back to the text that a person would have read.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
