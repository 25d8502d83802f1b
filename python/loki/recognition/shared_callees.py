"""Tests that fail by their own assertions, and assert on what one function of the project returns.

Such tests fail each in a line of its own, with values of its own: what they show joins none of them.
What they have in common stands in their source: the function whose result they look at. That is
evidence only where most tests of that function fail, and where nothing else can be meant. Why it is
so: ``docs/design/tests.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
    return [sorted(members) for members in _ordered(groups.values())]


def _is_plainer(known: frozenset[str] | None, form: frozenset[str] | None) -> bool:
    """Whether all that one call asks for, the other does too; an unknown one has nothing in common."""
    return known is not None and (not known if form is None else known < form)


def _ordered(groups: Iterable[Sequence[int]]) -> list[Sequence[int]]:
    return sorted(groups, key=min)
