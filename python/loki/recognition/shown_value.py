"""A value that a failing test was given, where what pytest shows says that it is wrong.

Tests that a fixture or function gives the wrong thing fail each in a line of its own, so that no stack
joins them. pytest shows a test's arguments above its source, and behind an assertion what its parts
were. Little of that is evidence: a fixture that is None in tests that fail for being given None, a
function that returned None to them, a fixture's attribute that has the same value in both.
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING

from loki.recognition.underlying_kind import is_test_path

if TYPE_CHECKING:
    from loki.recognition.failure import Failure

_ARGUMENT = re.compile(r"^(?P<pairs>\w+ = .+)$", re.MULTILINE)
_PAIR = re.compile(r"(?:^|, )(\w+) = (None|<[^>]*>)(?=,|$)")
_FAILING = re.compile(r"^> +(.+)$", re.MULTILINE)
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(")
_RETURNED_NONE = re.compile(r"where None = (?:<function (\w+) at 0x|(\w+)\()")
_DEFINED = re.compile(r"^(?:async )?def \w+\(.*?\)(?: -> [^:]+)?: *")
_ATTRIBUTE = re.compile(
    r"\+ +where (?P<value>[^\n=]{1,80}) = (?P<object><[^>]*>)\.(?P<name>\w+)$", re.MULTILINE
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


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
    shown = _ADDRESS.sub("", match["object"])
    names = [n for n, value in _arguments(failure).items() if _ADDRESS.sub("", value) == shown]
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
