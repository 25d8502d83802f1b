"""Overlap against a slow reference; the decision of SPEC section 2 on sites."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loki
from loki import _core
from loki.recognition.similarity import larger_share


def folded(text: str) -> str:
    return "".join(c.casefold() if len(c.casefold()) == 1 else c for c in text)


def reference(text: str) -> set[str]:
    """Runs of letters, digits and _; placeholders are tokens."""
    found: set[str] = set()
    for part in re.split(r"(<[a-z]{1,11}>)", text):
        if re.fullmatch(r"<[a-z]{1,11}>", part):
            found.add(part)
        else:
            found |= set(
                "".join(c if c.isalnum() or c == "_" else " " for c in folded(part)).split()
            )
    return found


texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)


@given(texts)
def test_tokens_equal_the_reference(text: str) -> None:
    assert set(_core.tokens(text)) == reference(text)


words = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "eps", "zeta", "<int>"])).map(
    " ".join
)


@given(words, words)
def test_measures_equal_the_reference(a: str, b: str) -> None:
    x, y = reference(a), reference(b)
    both = len(x & y)
    if min(len(x), len(y)) < 3:
        expected = [float(x == y)] * 4
    else:
        expected = [
            both / len(x | y),
            both / len(x),
            2 * both / (len(x) + len(y)),
            both / max(len(x), len(y)),
        ]
    measures = (loki.overlap, loki.containment, loki.dice, larger_share)
    assert [measure(a, b) for measure in measures] == expected


def test_the_edges() -> None:
    assert loki.overlap("", "") == 1
    assert loki.overlap("", "one two three") == 0
    assert loki.overlap("one two", "one two") == 1
    assert loki.overlap("one two", "one two three") == 0


def test_different_tests_or_codes_are_different_failures() -> None:
    of = loki.Failure.of
    message = "the basket of the customer is empty again"
    assert not loki.same_failure(of(message, tests=["a"]), of(message, tests=["b"]))
    assert loki.same_failure(of(message, tests=["a", "b"]), of(message, tests=["b", "a"]))
    assert not loki.same_failure(of(message, error_code="E1"), of(message, error_code="E2"))


def test_equal_fingerprints_are_the_same_failure() -> None:
    assert loki.same_failure("KeyError: 'a'", "KeyError: 'a'")
    assert not loki.same_failure("KeyError: 'a'", "KeyError: 'b'")


def test_alike_needs_the_same_pattern_and_specific_sites() -> None:
    of = loki.Failure.of
    words = "one two three four five six seven eight nine ten eleven"
    a = of(words + " twelve", error_type="OddError", pattern="runtime-error")
    b = of(words + " thirteen", error_type="OddError", pattern="runtime-error")
    assert loki.same_failure(a, b)
    assert not loki.same_failure(a, b, threshold=0.99)
    assert not loki.same_failure(
        a, of(words + " thirteen", error_type="OddError", pattern="lint-error")
    )
    anonymous = of(words + " thirteen", pattern="runtime-error")
    assert not loki.same_failure(a, anonymous), "no anchor"


def test_what_is_specific() -> None:
    of = loki.Failure.of
    assert of("the basket is empty again", error_type="OddError").is_specific
    assert not of("the basket is empty again").is_specific
    assert not of("empty", error_type="E").is_specific


@pytest.mark.parametrize(
    "text",
    [
        "t.py::test_a - KeyError: 'x'",
        "FAILED t.py::test_a - KeyError: 'x'",
        "main.go:3:5: undefined: x",
        "Segmentation fault (core dumped)",
        "Killed",
        "bash: line 1: 77 Killed   ./a.out",
    ],
)
def test_short_failures_are_failures(text: str) -> None:
    failure = loki.recognize(text)
    assert failure.is_specific
    assert loki.same_failure(failure, loki.recognize(text))


def test_a_bare_assert_is_told_by_its_test_and_line() -> None:
    def fails(line: int, test: str = "test_a") -> loki.Failure:
        said = (
            f"=== FAILURES ===\n____ {test} ____\n\n    def {test}():\n>       assert f()\n"
            f"E       assert False\n\nt.py:{line}: AssertionError\n"
            f"=== short test summary info ===\nFAILED t.py::{test} - assert False\n"
        )
        return loki.recognize(said, command="pytest")

    assert loki.same_failure(fails(3), fails(3))
    assert not loki.same_failure(fails(3), fails(9))
    assert not loki.same_failure(fails(3), fails(3, "test_b"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows: 3\n^^^^^^^\n", "rows: 3"),
        ("it ended here\n=======\n12345\n", "it ended here"),
        ("=====\n^^^\n", "^^^"),
    ],
)
def test_no_line_without_letters_is_what_failed(text: str, message: str) -> None:
    assert loki.recognize(text).message == message


@given(st.lists(words, max_size=8), words)
def test_token_sets_equal_one_by_one(many: list[str], one: str) -> None:
    sets = loki.TokenSets(many)
    assert len(sets) == len(many)
    assert list(sets.overlaps(one)) == [loki.overlap(one, other) for other in many]
    assert sets.overlaps(one) == loki.TokenSets(many, threads=1).overlaps(one.encode())
