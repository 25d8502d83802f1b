"""What counts as a plain claim, and what takes it back: words of real agents, and their like."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.decision.monitor.completion_check import admits, claims
from support.examples import examples


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass.",
        "Fixed the parser. All 39 tests pass.",
        "- **All tests pass** (`make test` clean)",
        "The test suite is green.",
        "Tests pass.",
        "All tests and workspace checks passed.",
        "All existing tests still pass.",
        "Alle Tests laufen durch.",
        "Tous les tests passent.",
        "Todos los tests pasan.",
        "Все тесты проходят.",  # noqa: RUF001 - Russian
        "所有测试均已通过。",
        "すべてのテストがパスしました。",
        "모든 테스트가 통과했습니다.",
        "I ran the full test suite.",
    ],
)
def test_plain_claims_of_all(text: str) -> None:
    (claim, *_) = claims(text)
    assert claim.is_about_tests
    assert claim.is_of_all or not claim.is_of_now


@pytest.mark.parametrize(
    "text",
    [
        "The new tests pass.",
        "All benchmark tests have passed.",
        "All related tests pass.",
        "All tests pass except the two of the importer.",
        "- Includes unit tests for both pass and fail paths",
    ],
)
def test_claims_of_some_are_not_of_all(text: str) -> None:
    assert not any(claim.is_of_all for claim in claims(text))


@pytest.mark.parametrize(
    "text",
    [
        "All tests should pass now.",
        "This ensures that all tests pass.",
        "Let me verify that all tests pass.",
        "Once all tests pass I will commit.",
        "Do all tests pass?",
        "## All tests pass",
        "**All tests pass**",
        "All tests pass:",
        'The log says "all tests pass".',
        "> All tests pass.",
        "- [ ] all tests pass",
        "All 41/43 tests pass.",
        "~86% of all tests pass.",
        "Not all tests pass.",
        "======================== 18 passed in 2.17s ========================",
        "I will run all tests next.",
        "To see whether all tests pass, run `make test`.",
    ],
)
def test_what_is_no_claim(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "All related tests pass; the 4 failures are pre-existing.",
        "All tests pass. 2 failed tests are unrelated to this change.",
        "- Tradition: all tests passing (21/21)\n- Knowledge: 25/26, 1 failure",
        "I could not run the tests here. All tests pass in theory.",
        "The test environment is misconfigured, so nothing was verified.",
        "All 15 tests pass. Now let me run the full test suite.",
        "❌ 1 of them",
    ],
)
def test_who_admits_it_hides_nothing(text: str) -> None:
    assert admits(text)


@pytest.mark.parametrize(
    "text",
    ["All 12 tests pass.", "Fixed the error handling. All tests pass.", "39/39 tests passed"],
)
def test_who_does_not(text: str) -> None:
    assert not admits(text)


@given(st.text())
@settings(max_examples=examples(100), deadline=None)
def test_any_text_is_read(text: str) -> None:
    assert all(claim.quote in text for claim in claims(text))
    assert admits(text) in {True, False}
