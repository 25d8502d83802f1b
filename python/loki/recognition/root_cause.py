"""Which failures of one test run have one root cause.

Unlike `loki.same_failure`, test ids do not separate: a broken helper fails a hundred tests. Each
failure gives evidence (where it was raised and how it got there, what it says is missing, which
fixture was None), and failures that share a piece of it are one. What counts, and why:
``docs/design/tests.md``. Cost grows with failures times depth of stacks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loki.recognition.shared_callees import NO_ASSERTIONS, Assertions, Callee, shared_callees
from loki.recognition.shown_value import shown_values
from loki.recognition.signature import normalize
from loki.recognition.similarity import overlap
from loki.recognition.underlying_kind import ASSERTIONS, is_infrastructure, is_test_path

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from loki.recognition.failure import Failure

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


# --- what is said -----------------------------------------------------------------------------------


@cache
def _knowledge() -> tuple[
    tuple[tuple[str, re.Pattern[str], str], ...], tuple[re.Pattern[str], ...]
]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = yaml.load(FILE.read_text("utf-8"), Loader=loader)  # noqa: S506 - a safe loader
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


# --- where it was raised -----------------------------------------------------------------------------


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
