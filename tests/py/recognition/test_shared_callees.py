"""Tests that assert on what one function returns are one cause where most tests of it fail."""

from __future__ import annotations

from collections.abc import Iterable

from loki.recognition.root_cause import Asserted, Call, Callee, candidates, shared_callees

SLUGIFY = Callee("text.py", 1, "slugify")
TITLE = Callee("text.py", 9, "title")
ENCODE = Callee("code.py", 1, "encode")
DECODE = Callee("code.py", 5, "decode")


def on(
    test: str, *callees: Callee, options: Iterable[str] | None = (), through: Iterable[Callee] = ()
) -> Asserted:
    """What one test asserts on."""
    given = None if options is None else frozenset(options)
    return Asserted(test, frozenset(Call(one, given) for one in callees), frozenset(through))


def groups(*failing: Asserted, **passing: int) -> list[tuple[str, list[int]]]:
    known = {one.name: one for one in (SLUGIFY, TITLE, ENCODE, DECODE)}
    counted = {known[name]: count for name, count in passing.items()}
    found = shared_callees(dict(enumerate(failing)), counted)
    return [(callee.name, members) for callee, members in found]


def test_tests_of_one_function() -> None:
    """They are one cause, those of another function are another."""
    assert groups(on("a", SLUGIFY), on("b", TITLE), on("c", SLUGIFY), on("d", TITLE)) == [
        ("slugify", [0, 2]),
        ("title", [1, 3]),
    ]


def test_one_test_alone() -> None:
    """It may be wrong itself, with however many parameters."""
    assert groups(on("a", SLUGIFY), on("b", TITLE)) == []
    assert groups(on("a", SLUGIFY), on("a", SLUGIFY), on("a", SLUGIFY)) == []
    assert candidates([on("a", SLUGIFY), on("a", SLUGIFY), on("b", TITLE), on("c", TITLE)]) == [
        TITLE
    ]


def test_a_function_that_most_tests_enter() -> None:
    """Where at least as many tests of it do not fail, it is not to blame."""
    two = on("a", SLUGIFY), on("b", SLUGIFY)
    assert groups(*two, slugify=1) == [("slugify", [0, 1])]
    assert groups(*two, slugify=2) == []


def test_two_functions_in_one_statement() -> None:
    """The one most of whose tests fail is meant; where both may be, none is."""
    both = on("c", SLUGIFY, TITLE)
    assert groups(on("a", SLUGIFY), on("b", SLUGIFY), both, title=3) == [("slugify", [0, 1, 2])]
    assert groups(on("a", SLUGIFY), on("b", SLUGIFY), both) == [("slugify", [0, 1])]
    assert groups(both, on("d", SLUGIFY, TITLE)) == []


def test_a_function_that_is_given_what_another_got_wrong() -> None:
    """It is no suspect, as long as nobody has seen it fail on other input."""
    wrong = on("a", ENCODE), on("b", ENCODE)
    back = on("c", DECODE, through=[ENCODE]), on("d", DECODE, through=[ENCODE])
    assert groups(*wrong, *back) == [("encode", [0, 1])]
    assert groups(*back) == [("decode", [0, 1])]
    itself = on("e", DECODE)
    assert groups(*wrong, *back, itself) == [("encode", [0, 1]), ("decode", [2, 3, 4])]


def test_options() -> None:
    """Each is a way of its own, unless the plainer call fails too."""
    upper = [on(test, SLUGIFY, options=["upper"]) for test in "ab"]
    strip = [on(test, SLUGIFY, options=["strip"]) for test in "cd"]
    both = on("e", SLUGIFY, options=["strip", "upper"])
    unknown = on("f", SLUGIFY, options=None)
    assert groups(*upper, *strip) == [("slugify", [0, 1]), ("slugify", [2, 3])]
    assert groups(*upper, *strip, both) == [("slugify", [0, 1]), ("slugify", [2, 3])]
    assert groups(*upper, both) == [("slugify", [0, 1, 2])]
    assert groups(*upper, unknown) == [("slugify", [0, 1])]
    assert groups(*upper, *strip, both, unknown, on("g", SLUGIFY)) == [
        ("slugify", [0, 1, 2, 3, 4, 5, 6])
    ]
