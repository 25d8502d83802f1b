"""Failures that one mistake explains are one, and no others; see benchmarks/root_causes.py for more."""

from __future__ import annotations

import dataclasses

import pytest

from loki.recognition.failure import Failure, Frame, recognize
from loki.recognition.root_cause import root_causes


def failed(
    said: str, *frames: str, error_type: str | None = "ValueError", excerpt: str = ""
) -> Failure:
    """A failure with a stack of ``path:line``, outermost first; ``lib:`` begins one of a library."""
    stack = []
    for one in frames:
        path, _, line = one.removeprefix("lib:").rpartition(":")
        stack.append(Frame(path, int(line), None, not one.startswith("lib:")))
    own = [frame for frame in stack if frame.in_project]
    bare = Failure.of(
        said,
        error_type=error_type,
        path=own[-1].path if own else None,
        line=own[-1].line if own else None,
        excerpt=excerpt,
    )
    return dataclasses.replace(bare, frames=tuple(stack))


def groups(*failures: Failure) -> list[tuple[int, ...]]:
    return [cause.members for cause in root_causes(failures)]


def test_nothing() -> None:
    """Where nothing failed there is no cause."""
    assert root_causes([]) == []


def test_a_broken_helper() -> None:
    """One line of the project that raises the same is one cause, whoever calls it."""
    assert groups(
        failed("negative amount: 3", "tests/test_a.py:3", "app/money.py:6"),
        failed("negative amount: 4", "tests/test_b.py:9", "app/page.py:2", "app/money.py:6"),
        failed("negative amount: 4", "tests/test_b.py:12", "app/other.py:6"),
    ) == [(0, 1), (2,)]


def test_messages_of_one_statement() -> None:
    """Other words of one raise are one cause, where one way leads there through the other's."""
    direct = failed("unknown currency EUR", "tests/test_a.py:3", "app/money.py:6")
    other = failed("unknown currency USD", "tests/test_a.py:5", "app/money.py:6")
    through = failed("unknown currency JPY", "t/test_b.py:5", "app/page.py:2", "app/money.py:6")
    assert groups(direct, other, through) == [(0, 1, 2)]


def test_a_guard() -> None:
    """What refuses the input of several callers, each for its own mistake, merges none of them."""
    user = failed("user is required", "tests/test_a.py:3", "app/user.py:2", "app/guard.py:6")
    order = failed("order is required", "tests/test_a.py:9", "app/order.py:2", "app/guard.py:6")
    assert groups(user, order, user) == [(0, 2), (1,)]


def test_a_library_that_says_differently() -> None:
    """One line that calls a library may fail there for two reasons."""
    assert groups(
        failed("Expecting value", "tests/test_a.py:3", "app/a.py:6", "lib:/lib/json.py:3"),
        failed("Extra data", "tests/test_a.py:4", "app/a.py:6", "lib:/lib/json.py:9"),
    ) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("error_type", "said", "other"),
    [
        ("ModuleNotFoundError", "No module named 'a'", "No module named 'b'"),
        ("ImportError", "cannot import name 'x' from 'a.b'", "cannot import name 'y' from 'a.b'"),
        (
            "AttributeError",
            "module 'a.b' has no attribute 'x'",
            "module 'a.b' has no attribute 'y'",
        ),
        (
            "AttributeError",
            "'Basket' object has no attribute 'x'",
            "'Till' object has no attribute 'x'",
        ),
        (
            "TypeError",
            "send() missing 1 required positional argument: 'to'",
            "get() takes no arguments",
        ),
        (None, "fixture 'user' not found", "fixture 'order' not found"),
        ("OperationalError", "no such table: users", "no such table: orders"),
        ("sqlite3.OperationalError", "database is locked", "disk I/O error"),
    ],
)
def test_what_is_said_to_be_missing(error_type: str | None, said: str, other: str) -> None:
    """A cause that the message names is one wherever it is named."""
    assert groups(
        failed(said, "tests/test_a.py:3", "app/a.py:4", error_type=error_type),
        failed(said, "tests/test_b.py:5", error_type=error_type),
        failed(other, "tests/test_b.py:7", error_type=error_type),
    ) == [(0, 1), (2,)]


@pytest.mark.parametrize(
    "said", ["'NoneType' object has no attribute 'x'", "'dict' object has no attribute 'x'"]
)
def test_what_any_code_says(said: str) -> None:
    """A built-in type without an attribute is no evidence across places."""
    assert groups(
        failed(said, "tests/test_a.py:3", "app/a.py:4", error_type="AttributeError"),
        failed(said, "tests/test_a.py:5", "app/b.py:4", error_type="AttributeError"),
    ) == [(0,), (1,)]


def test_quoted_errors_are_data() -> None:
    """An assertion that quotes an error does not say that it happened."""
    said = "assert \"No module named 'a'\" in 'ok'"
    assert groups(
        failed(said, "tests/test_a.py:3", error_type="AssertionError"),
        failed(said, "tests/test_b.py:3", error_type="AssertionError"),
    ) == [(0,), (1,)]


@pytest.mark.parametrize("environ", ["lib:/usr/lib/python3.10/os.py:679", "lib:<frozen os>:679"])
def test_environment_variables(environ: str) -> None:
    """A variable that is not set is one cause wherever it is read, a key of a dict is not."""
    assert groups(
        failed("'TOKEN'", "test_a.py:3", "app/a.py:4", environ, error_type="KeyError"),
        failed("'TOKEN'", "test_a.py:5", "app/b.py:4", environ, error_type="KeyError"),
        failed("'TOKEN'", "test_a.py:7", "app/c.py:4", error_type="KeyError"),
        failed("'TOKEN'", "test_a.py:9", "app/d.py:4", "app/os.py:9", error_type="KeyError"),
    ) == [(0, 1), (2,), (3,)]


def test_tests_of_their_own() -> None:
    """Two tests that fail in their own bodies are two, however alike; one with parameters is one."""
    assert groups(
        failed("assert 1 == 2", "tests/test_a.py:3", error_type="AssertionError"),
        failed("assert 1 == 2", "tests/test_a.py:6", error_type="AssertionError"),
        failed("assert 4 == 2", "tests/test_a.py:6", error_type="AssertionError"),
    ) == [(1, 2), (0,)]


def test_helpers_of_tests() -> None:
    """A helper of tests that compares says the same of anything: only the very same words count."""
    same = "E   assert 500 == 200\nE    +  where 500 = <Response 500>.status"
    bare = "E   assert 1 == 0"
    assert groups(
        failed(
            "assert 500 == 200",
            "t/test_a.py:3",
            "tests/help.py:6",
            error_type="AssertionError",
            excerpt=same,
        ),
        failed(
            "assert 500 == 200",
            "t/test_a.py:5",
            "tests/help.py:6",
            error_type="AssertionError",
            excerpt=same,
        ),
        failed(
            "assert 1 == 0",
            "t/test_a.py:7",
            "tests/help.py:9",
            error_type="AssertionError",
            excerpt=bare,
        ),
        failed(
            "assert 1 == 0",
            "t/test_a.py:9",
            "tests/help.py:9",
            error_type="AssertionError",
            excerpt=bare,
        ),
    ) == [(0, 1), (2,), (3,)]


def test_values_of_fixtures() -> None:
    """An attribute with the same value is one cause; a method that both call is no value."""

    def shown(test: str, line: int, *why: str) -> Failure:
        lines = [f"client = <Client>\n\n    def {test}(client):", "", "E       assert 0 == 1"]
        lines[1] = f">       assert client.{'size' if 'size' in why[-1] else f'find({line})'} == 1"
        lines += [f"E        +  where {one}" for one in why]
        place = f"tests/test_a.py:{line}"
        return failed("assert 0 == 1", place, error_type="AssertionError", excerpt="\n".join(lines))

    sizes = [shown(f"test_{n}", n, "0 = <Client>.size") for n in (3, 6)]
    found = [shown(f"test_{n}", n, f"0 = find({n})", "find = <Client>.find") for n in (9, 12)]
    assert groups(*sizes, *found) == [(0, 1), (2,), (3,)]


def test_services() -> None:
    """A service that nobody reaches is one cause, another port is another service."""

    def refused(place: str, port: int) -> Failure:
        text = (
            "============ FAILURES ============\n____________ test_x ____________\n"
            f"tests/test_a.py:{port}: in test_x\n    net.{place}()\napp/{place}.py:3: in {place}\n"
            "    connect()\n"
            f"E   requests.exceptions.ConnectionError: HTTPConnectionPool(host='db', port={port}): "
            "Max retries exceeded with url: /\n\n/usr/lib/python3/site-packages/r.py:9: ConnectionError\n"
        )
        return recognize(text, command="pytest")

    assert groups(refused("a", 80), refused("b", 80), refused("c", 81)) == [(0, 1), (2,)]


def test_order_does_not_matter() -> None:
    """The groups are the same in whatever order failures come."""
    failures = [
        failed("unknown currency EUR", "tests/test_a.py:3", "app/money.py:6"),
        failed("No module named 'x'", "tests/test_a.py:9", error_type="ModuleNotFoundError"),
        failed("unknown currency JPY", "t/test_b.py:5", "app/page.py:2", "app/money.py:6"),
        failed("No module named 'x'", "tests/test_c.py:9", error_type="ModuleNotFoundError"),
        failed("assert 1", "tests/test_c.py:19", error_type="AssertionError"),
    ]

    def named(order: list[int]) -> set[frozenset[int]]:
        found = root_causes([failures[place] for place in order])
        return {frozenset(order[member] for member in cause.members) for cause in found}

    assert named([0, 1, 2, 3, 4]) == named([4, 3, 2, 1, 0]) == named([2, 4, 0, 3, 1])


def test_nothing_known() -> None:
    """Failures of which nothing but a message is known stay apart; every one is in one group."""
    said = [Failure.of("it broke"), Failure.of("it broke"), Failure.of("")]
    assert groups(*said) == [(0,), (1,), (2,)]


def test_many_failures() -> None:
    """Thousands of failures of one line, each in words of its own, are not each held against each."""
    letters = "ghijklmnopqrstuvwxyz"
    words = [a + b + c for a in letters[:3] for b in letters for c in letters]
    many = [failed(f"{w}a {w}b {w}c", f"tests/test_{w}.py:3", "app/m.py:6") for w in words]
    assert len(root_causes(many)) == len(words)
