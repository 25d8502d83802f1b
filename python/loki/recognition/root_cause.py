"""Which failures of one test run have one root cause.

Unlike `loki.same_failure`, test ids do not separate: a broken helper fails a hundred tests. Each
failure gives evidence, and failures that share a piece of it are one: where it was raised and how it got
there; what it says is missing, beneath "a test failed"; which value that a fixture or a function gave is
wrong, as far as pytest shows it; and the function whose result a test asserts on, where most tests of that
function fail and nothing else can be meant. What counts, and why: ``docs/design/tests.md``. Cost grows with
failures times depth of stacks.
"""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from loki.recognition.failure import is_test_path
from loki.recognition.pattern import MEDIUM, Match
from loki.recognition.signature import normalize
from loki.recognition.similarity import overlap

if TYPE_CHECKING:
    from loki.recognition.failure import Failure


# --- What a failing test shows beneath "a test failed" ----------------------------------------------

TEST_FAILURE = "test-failure"

ASSERTIONS = frozenset({"", "AssertionError", "Failed", "ExceptionGroup", "XPASS(strict)"})
"""Types of failures in which the code said nothing: the test did. Words in them are its data."""

_MADE_UP = re.compile(r"^> +(?:raise\b|.*\.throw\(|.*\bside_effect\b)", re.MULTILINE)
_DOUBLES = re.compile(r"(?:^|/)(?:unittest/|mock/)mock\.py$|(?:^|/)(?:responses|respx|httpretty)/")


def underlying(failure: Failure) -> Match | None:
    """The best pattern that says more than that a test failed, or None.

    Args:
        failure: of a test.

    Example:
        >>> from loki.recognition.failure import recognize
        >>> said = "E   ConnectionRefusedError: [Errno 111] Connection refused"
        >>> underlying(recognize(said, command="pytest")).kind
        'network-error'
    """
    if (failure.error_type or "") in ASSERTIONS and failure.kind == TEST_FAILURE:
        return None
    return next(
        (one for one in failure.matches if one.kind != TEST_FAILURE and one.confidence >= MEDIUM),
        None,
    )


def is_infrastructure(failure: Failure) -> bool:
    """Whether infrastructure failed the test, not the code: what loki knows as such, and means it.

    An outage that a test makes up (a mock's, or one that it raises itself) is none: the code under
    test was to deal with it, and did not.

    Args:
        failure: of a test.
    """
    shown = underlying(failure)
    if shown is None or not shown.is_infrastructure:
        return False
    last = failure.frames[-1] if failure.frames else None
    if last is None:
        return True
    raised = last.in_project and _MADE_UP.search(failure.excerpt) and is_test_path(last.path)
    return not raised and not _DOUBLES.search(last.path)


# --- A wrong value that a failing test was given ----------------------------------------------------

_ARGUMENT = re.compile(r"^(?P<pairs>\w+ = .+)$", re.MULTILINE)
_PAIR = re.compile(r"(?:^|, )(\w+) = (None|<[^>]*>)(?=,|$)")
_FAILING = re.compile(r"^> +(.+)$", re.MULTILINE)
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(")
_RETURNED_NONE = re.compile(r"where None = (?:<function (\w+) at 0x|(\w+)\()")
_DEFINED = re.compile(r"^(?:async )?def \w+\(.*?\)(?: -> [^:]+)?: *")
_ATTRIBUTE = re.compile(
    r"\+ +where (?P<value>[^\n=]{1,80}) = (?P<object><[^>]*>)\.(?P<name>\w+)$", re.MULTILINE
)
_MEMORY_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def shown_values(failure: Failure) -> list[tuple[str, ...]]:
    """What a failure shows of a wrong value; tests that show the same were given the same.

    Args:
        failure: of a test; only one that failed in its own body shows anything.
    """
    own = [frame for frame in failure.frames if frame.in_project]
    if len(own) != 1 or not is_test_path(own[0].path):
        return []
    if "NoneType" in failure.message:
        return _none(failure)
    return [*_returned_none(failure), *_attributes(failure)]


def _none(failure: Failure) -> list[tuple[str, ...]]:
    given = [name for name, value in _arguments(failure).items() if value == "None"]
    line = _failing_line(failure)
    if given and len(given) == 1 and re.search(rf"\b{given[0]}\b", line):
        return [("fixture is None", given[0])]
    called = [name for name in _CALLED.findall(line) if not hasattr(builtins, name)]
    if len(called) == 1 and not given:
        return [("returned None", called[0])]
    return []


def _returned_none(failure: Failure) -> list[tuple[str, ...]]:
    match = _RETURNED_NONE.search(failure.excerpt)
    if match is None:
        return []
    name = match[1] or match[2]
    is_method = re.search(rf"where {name} = ", failure.excerpt)
    return [] if is_method else [("returned None", name)]


def _attributes(failure: Failure) -> list[tuple[str, ...]]:
    """The value of an attribute of a fixture, where an assertion failed for it."""
    match = _ATTRIBUTE.search(failure.excerpt)
    if (
        match is None or match["value"] == match["name"]
    ):  # a method: nothing is wrong with it as such
        return []
    shown = _MEMORY_ADDRESS.sub("", match["object"])
    names = [
        n for n, value in _arguments(failure).items() if _MEMORY_ADDRESS.sub("", value) == shown
    ]
    if len(names) != 1 or not re.search(
        rf"\b{names[0]}\.{match['name']}\b", _failing_line(failure)
    ):
        return []
    return [("fixture has", names[0], shown, match["name"], match["value"])]


def _arguments(failure: Failure) -> dict[str, str]:
    """What a test was given by fixtures, as far as it is shown; not by its parameters."""
    head = failure.excerpt.split("\n>", 1)[0]
    if "parametrize(" in head:
        return {}
    return {name: value for line in _ARGUMENT.findall(head) for name, value in _PAIR.findall(line)}


def _failing_line(failure: Failure) -> str:
    lines = _FAILING.findall(failure.excerpt)
    return _DEFINED.sub("", lines[-1]) if lines else ""


# --- Tests that assert on what one function returns -------------------------------------------------

FEWEST = 2
"""Test functions that fail, from which what they have in common is no chance: one alone may be wrong
itself. Chosen."""


@dataclass(frozen=True, slots=True, order=True)
class Callee:
    """A function or method of the project.

    Attributes:
        path: of its file, relative to the project.
        line: of its ``def``.
        name: as one would say it: ``slugify()``, ``User.full_name()``, of a property ``User.initials``.
    """

    path: str
    line: int
    name: str

    @property
    def word(self) -> str:
        """Its bare name, as it stands in a test.

        Example:
            >>> Callee("user.py", 3, "User.full_name()").word
            'full_name'
        """
        return self.name.rpartition(".")[2].removesuffix("()")

    @property
    def where(self) -> str:
        """``path:line`` of its definition."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the project, as it is written in a test.

    Attributes:
        callee: the function.
        options: its parameters with a default that the call gives a value; None: not known.
    """

    callee: Callee
    options: frozenset[str] | None = frozenset()


@dataclass(frozen=True, slots=True)
class Asserted:
    """What the failing statement of a test is about.

    Attributes:
        test: the test's function: of all its parameters.
        calls: of the project, whose results it looks at.
        through: functions of the project whose results those calls were given.
    """

    test: str
    calls: frozenset[Call]
    through: frozenset[Callee] = frozenset()

    @property
    def callees(self) -> frozenset[Callee]:
        """The functions that are called."""
        return frozenset(call.callee for call in self.calls)


@dataclass(frozen=True, slots=True)
class Assertions:
    """What the tests of a run assert on, as far as their source says.

    Attributes:
        failing: by place in the sequence of failures; those whose source does not say are left out.
        passing: how many tests name a function and do not fail.
        calls: which of those functions a function calls, directly or through others.
    """

    failing: Mapping[int, Asserted] = field(default_factory=dict)
    passing: Mapping[Callee, int] = field(default_factory=dict)
    calls: Mapping[Callee, frozenset[Callee]] = field(default_factory=dict)

    def deeper(self, callee: Callee, suspects: Iterable[Callee]) -> list[Callee]:
        """Those of some functions that a function calls, and that do not call it.

        Args:
            callee: the function.
            suspects: the others.
        """
        called = self.calls.get(callee, frozenset())
        return sorted(o for o in set(suspects) & called if callee not in self.calls.get(o, ()))


NO_ASSERTIONS = Assertions()


def candidates(failing: Iterable[Asserted]) -> list[Callee]:
    """The functions that enough failing tests assert on to be asked about.

    Args:
        failing: what failing tests assert on.
    """
    tests: dict[Callee, set[str]] = defaultdict(set)
    for one in failing:
        for callee in one.callees:
            tests[callee].add(one.test)
    return sorted(callee for callee, names in tests.items() if len(names) >= FEWEST)


def shared_callees(
    failing: Mapping[int, Asserted], passing: Mapping[Callee, int]
) -> list[tuple[Callee, list[int]]]:
    """Which failing tests assert on what one function returns, where that function is to blame.

    It is where more than half of the tests that name it fail by what it returns. Calls with options
    of a function are told apart unless plainer calls of it fail too: each option is a way of its own.

    Args:
        failing: what failing tests assert on; only such as nothing else explains.
        passing: how many other tests name a function.

    Returns:
        The function and its failures, ascending, for each group of at least two test functions.

    Example:
        >>> slugify = Callee("text.py", 1, "slugify()")
        >>> one, two = (Asserted(test, frozenset([Call(slugify)])) for test in ("a", "b"))
        >>> [(callee.name, members) for callee, members in shared_callees({0: one, 4: two}, {})]
        [('slugify()', [0, 4])]
    """
    suspects = _suspects(failing, passing)
    calls: dict[Callee, dict[int, Call]] = defaultdict(dict)
    for index, one in sorted(failing.items()):
        wrong = one.callees & suspects
        if len(wrong) == 1:
            (callee,) = wrong
            options = [call.options for call in one.calls if call.callee == callee]
            calls[callee][index] = Call(callee, options[0] if len(options) == 1 else None)
    return [
        (callee, members)
        for callee, found in sorted(calls.items())
        for members in _by_options(found)
        if len({failing[index].test for index in members}) >= FEWEST
    ]


def _suspects(failing: Mapping[int, Asserted], passing: Mapping[Callee, int]) -> set[Callee]:
    """Functions most of whose tests fail; not those that were only ever given what another got wrong."""
    own: dict[Callee, list[Asserted]] = defaultdict(list)
    for one in failing.values():
        for callee in one.callees:
            own[callee].append(one)
    mostly = {callee for callee, tests in own.items() if len(tests) > passing.get(callee, 0)}
    return {
        callee
        for callee in mostly
        if not frozenset.intersection(*(one.through for one in own[callee])) & (mostly - {callee})
    }


def _by_options(calls: Mapping[int, Call]) -> list[list[int]]:
    """Groups of calls of one function: with its options, a call joins the one plainest call like it."""
    forms: dict[frozenset[str] | None, list[int]] = defaultdict(list)
    for index, call in calls.items():
        forms[call.options].append(index)
    groups: dict[frozenset[str] | None, list[int]] = {}
    for form in sorted(forms, key=lambda form: (form is None, len(form or ()), sorted(form or ()))):
        plainer = [known for known in groups if _is_plainer(known, form)]
        home = plainer[0] if len(plainer) == 1 else form
        groups.setdefault(home, []).extend(forms[form])
    return [sorted(members) for members in sorted(groups.values(), key=min)]


def _is_plainer(known: frozenset[str] | None, form: frozenset[str] | None) -> bool:
    """Whether all that one call asks for, the other does too; an unknown one has nothing in common."""
    return known is not None and (not known if form is None else known < form)


# --- Which failures have one root cause -------------------------------------------------------------

FILE = Path(__file__).with_name("root-causes.yml")

RESEMBLANCE = 0.5
"""Overlap of two messages of one ``raise`` statement, reached on one way, from which one mistake said
both: half of the words are the statement's own. Chosen on benchmarks/root_causes.yml."""

MOST_WAYS = 20
"""Messages of one way to a line that others are held against: so many that differ are no mistake of the
line's own. Chosen."""

_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
_OS = re.compile(r"(?:^|[/\\])os\.py$|^<frozen os>$")
_DETAIL = re.compile(r"^E +(\S.*)$", re.MULTILINE)
_WORD = re.compile(
    r"(?<![\w'\"])(?!(?:assert|and|or|not|in|is|where|True|False|None)\b)[A-Za-z_]{2,}"
)

_OWN = frozenset({"test", "helper"})
"""Kinds of evidence that say no more than where a test failed."""

Stack = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class RootCause:
    """Failures that one mistake explains.

    Attributes:
        failure: the one that shows it best.
        members: places in the sequence that was passed, ascending.
        callee: the function on whose results all of them assert, where their source says so.
        is_shared: that function is what makes them one: it is to be looked at first.
    """

    failure: Failure
    members: tuple[int, ...]
    callee: Callee | None = None
    is_shared: bool = False


def root_causes(
    failures: Sequence[Failure], assertions: Assertions = NO_ASSERTIONS
) -> list[RootCause]:
    """The failures of one test run, grouped by root cause.

    A false merge is worse than a false split: what is not shown to be one stays apart.

    Args:
        failures: what failed in the run, in any order.
        assertions: what failing tests assert on, where their source was read.

    Returns:
        A group for each cause, most members first, then in the order of their first member. Each
        failure is in one of them.

    Example:
        >>> from loki.recognition.failure import recognize
        >>> lost = [recognize(f"ModuleNotFoundError: No module named '{m}'") for m in ("a", "b", "a")]
        >>> [cause.members for cause in root_causes(lost)]
        [(0, 2), (1,)]
    """
    groups = _Groups(len(failures))
    raised: dict[Hashable, list[tuple[int, Stack]]] = {}
    for index, failure in enumerate(failures):
        for key in evidence(failure):
            groups.join(index, key)
        place = _raised_at(failure)
        if place is not None:
            raised.setdefault(place, []).append((index, _stack(failure)))
    for members in raised.values():
        _join_ways(groups, failures, members)
    shared = _join_callees(groups, failures, assertions)
    found = groups.members()
    ordered = sorted(found, key=lambda members: (-len(members), members[0]))
    return [
        RootCause(
            _clearest([failures[m] for m in members]),
            tuple(members),
            shared.get(members[0]) or _callee(members, assertions),
            members[0] in shared,
        )
        for members in ordered
    ]


def fails_by_itself(failure: Failure) -> bool:
    """Whether a test failed in its own body, or in a helper of tests, and shows no more than that.

    Args:
        failure: of a test.
    """
    own = [frame.path for frame in failure.frames if frame.in_project]
    in_tests = bool(own) and all(map(is_test_path, own))
    return in_tests and all(key[0] in _OWN for key in evidence(failure))


def evidence(failure: Failure) -> list[tuple[Hashable, ...]]:
    """What shows a failure's root cause: failures that have one of these in common are one.

    Args:
        failure: of a test.
    """
    said = f"{failure.error_type or ''}: {failure.message}"
    found: list[tuple[Hashable, ...]] = list(_said(failure, said))
    if not found:
        found += _endpoint(failure, said)
        found += [("value", *value) for value in shown_values(failure)]
        found += _place(failure)
    return found


# --- What is said -----------------------------------------------------------------------------------


@cache
def _knowledge() -> tuple[
    tuple[tuple[str, re.Pattern[str], str], ...], tuple[re.Pattern[str], ...]
]:
    from loki.base.yaml_text import load_file  # YAML is much to load

    data = load_file(FILE)
    said = tuple(
        (one["cause"], re.compile(one["regex"]), one.get("in", "")) for one in data["said"]
    )
    return said, tuple(map(re.compile, data["endpoints"]))


def _said(failure: Failure, said: str) -> Iterable[tuple[Hashable, ...]]:
    """A cause that the message names: a module, a name, a table."""
    if (failure.error_type or "") == "AssertionError":
        return  # it quotes what the code said, perhaps of another failure that it was to deal with
    for cause, regex, where in _knowledge()[0]:
        match = regex.search(failure.excerpt if where == "excerpt" else said)
        if match is not None:
            yield (cause, *match.groups(), *((failure.path,) if where == "file" else ()))
            return
    variable = _environment_variable(failure)
    if variable:
        yield ("environment variable", variable)


def _environment_variable(failure: Failure) -> str:
    """The variable that is not set, where `os.environ` was asked for it."""
    asked = any(_OS.search(frame.path) and not frame.in_project for frame in failure.frames)
    return failure.message if asked and failure.error_type == "KeyError" else ""


def _endpoint(failure: Failure, said: str) -> Iterable[tuple[Hashable, ...]]:
    """The service that could not be reached."""
    if not is_infrastructure(failure):
        return
    text = f"{said}\n{failure.excerpt}"
    for regex in _knowledge()[1]:
        match = regex.search(text)
        if match is not None:
            yield ("service", match["host"], match["port"])
            return


# --- Where it was raised ----------------------------------------------------------------------------


def _stack(failure: Failure) -> Stack:
    """The project's own frames below the test's, outermost first; a recursion once."""
    own = [(frame.path, frame.line) for frame in failure.frames if frame.in_project]
    own = [frame for place, frame in enumerate(own) if frame not in own[:place]]
    while own and is_test_path(own[0][0]) and len(own) > 1:
        own = own[1:]
    return tuple(own)


def _place(failure: Failure) -> Iterable[tuple[Hashable, ...]]:
    """Where it was raised, with what it said there."""
    own = [frame for frame in failure.frames if frame.in_project]
    if failure.path and not (own and own[-1].path == failure.path):
        # A file that cannot be compiled is in no frame.
        yield ("at", failure.path, failure.line, failure.error_type, failure.normalized)
    if not own:
        return
    last = own[-1]
    if len(own) > 1 and is_test_path(last.path):
        # A helper of tests says the same of anything: only the very same words count.
        words = _detail(failure)
        if failure.error_type not in ASSERTIONS or _WORD.search(words):
            yield ("helper", last.path, last.line, failure.error_type, words)
        return
    if len(own) == 1 and last.path.endswith(".py") and is_test_path(last.path):
        yield ("test", last.path, last.line, failure.error_type, _template(failure))
        return
    yield ("place", last.path, last.line, failure.error_type, failure.normalized)


def _raised_at(failure: Failure) -> Hashable | None:
    """The project's own line that a failure comes from, where that is not a test's."""
    own = [frame for frame in failure.frames if frame.in_project]
    if not own or is_test_path(own[-1].path):
        return None
    return own[-1].path, own[-1].line, failure.error_type


def _join_ways(
    groups: _Groups, failures: Sequence[Failure], members: Sequence[tuple[int, Stack]]
) -> None:
    """Join failures of one line that say differently, where one way leads there through the other's.

    A helper that is broken fails however it is called, straight from a test, too; one that checks what
    others give it fails each of them in its own way.
    """
    said: dict[Stack, dict[str, int]] = {}
    for index, stack in members:
        ways = said.setdefault(stack, {})
        if len(ways) < MOST_WAYS:
            ways.setdefault(_template(failures[index]), index)
    for index, stack in members:
        for start in range(len(stack)):
            for other in said.get(stack[start:], {}).values():
                if _resemble(failures[index], failures[other]):
                    groups.link(index, other)
                    break


def _join_callees(
    groups: _Groups, failures: Sequence[Failure], assertions: Assertions
) -> dict[int, Callee]:
    """Join tests that assert on what one function returns; that function by each group's first."""
    known = assertions.failing
    alone = {
        index: known[index]
        for members in groups.members()
        for index in members
        if all(m in known and fails_by_itself(failures[m]) for m in members)
        and len({known[m].calls for m in members}) == 1
    }
    found = shared_callees(alone, assertions.passing)
    for _, members in found:
        for index in members[1:]:
            groups.link(members[0], index)
    return {members[0]: callee for callee, members in found}


def _callee(members: Sequence[int], assertions: Assertions) -> Callee | None:
    """The one function that all of some failures assert on, if there is one."""
    known = [assertions.failing.get(index) for index in members]
    callees = {callee for one in known if one is not None for callee in one.callees}
    return callees.pop() if len(callees) == 1 and None not in known else None


def _resemble(a: Failure, b: Failure) -> bool:
    if _template(a) == _template(b):
        return True
    last = a.frames[-1].in_project and b.frames[-1].in_project
    return last and overlap(a.normalized, b.normalized) >= RESEMBLANCE


@cache
def _templated(message: str) -> str:
    return normalize(message, "template")


def _template(failure: Failure) -> str:
    return _templated(failure.message)


def _detail(failure: Failure) -> str:
    """All that pytest says of a failure, without addresses."""
    lines = _DETAIL.findall(failure.excerpt) or [failure.message]
    return _ADDRESS.sub("0x", "\n".join(lines))


def _clearest(failures: Sequence[Failure]) -> Failure:
    """The failure that shows a cause best: the shortest way to it, among those the first."""
    return min(failures, key=lambda failure: sum(frame.in_project for frame in failure.frames))


class _Groups:
    """Sets that grow together (union-find, with path halving)."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))
        self._first: dict[Hashable, int] = {}

    def join(self, index: int, key: Hashable) -> None:
        """Put one to all that have this key."""
        self.link(index, self._first.setdefault(key, index))

    def link(self, a: int, b: int) -> None:
        """Put two and all of theirs together."""
        a, b = self._root(a), self._root(b)
        self._parents[max(a, b)] = min(a, b)

    def members(self) -> list[list[int]]:
        """The sets."""
        found: dict[int, list[int]] = {}
        for index in range(len(self._parents)):
            found.setdefault(self._root(index), []).append(index)
        return list(found.values())

    def _root(self, index: int) -> int:
        while self._parents[index] != index:
            self._parents[index] = self._parents[self._parents[index]]
            index = self._parents[index]
        return index
