"""The words of tasks, paths and code."""

from __future__ import annotations

import pytest

from loki.decision.drift.task_relation import (
    alike,
    defined_in,
    imported_in,
    is_module,
    is_telling,
    modules_in,
    path_words,
    stem,
    synonyms,
    words_of,
)


def test_words_that_say_nothing_are_left_out() -> None:
    assert words_of("Fix the failing tests of the build") == frozenset()
    assert words_of("Return 404 for v2.17") == {"return", "404"}
    assert "freebsd" in words_of("Build on FreeBSD")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("translation", "translate"),
        ("retries", "retry"),
        ("invoices", "invoice"),
        ("scheduler", "schedule"),
        ("permissions", "permission"),
    ],
)
def test_forms_of_a_word_are_one(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_words_are_alike_where_one_begins_or_ends_with_the_other() -> None:
    assert alike({"pyyaml"}, {"yaml"}) == {"pyyaml"}
    assert alike({"cart"}, {"shopcartitem"}) == set()
    assert alike({"log"}, {"login"}) == set()


def test_synonyms() -> None:
    assert stem("dockerfile") in synonyms(words_of("a container image"))
    assert synonyms({"cart"}) == frozenset()


def test_modules_that_a_failure_names() -> None:
    found = modules_in("ModuleNotFoundError: No module named 'report.tables'")
    assert found == {("report", "tables")}
    assert is_module("src/report/tables.py", ("report", "tables"))
    assert is_module("src/report/tables/__init__.py", ("report", "tables"))
    assert not is_module("src/report/chairs.py", ("report", "tables"))


def test_names_in_code() -> None:
    go = 'func (s *Store) Get(id string) error {\nimport "app/store"\n'
    assert "Get" in defined_in(go)
    assert {"app", "store"} <= imported_in(go)
    assert "x" not in imported_in("x = 1\n")
    assert is_telling("fetch_user")
    assert is_telling("fetchUser")
    assert not is_telling("user")
    assert path_words("src/shop/cartItem.test.ts") >= {"shop", "cart"}
