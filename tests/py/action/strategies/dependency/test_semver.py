"""Ranges as node-semver and Cargo document them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from loki.action.strategies.dependency.manifest_requirements import satisfies


@pytest.mark.parametrize(
    ("wanted", "inside", "outside"),
    [
        ("1.2.3", ["1.2.3"], ["1.2.4", "1.2.2"]),
        ("=1.2.3", ["1.2.3"], ["1.2.4"]),
        ("v1.2.3", ["1.2.3"], ["1.2.4"]),
        ("^1.2.3", ["1.2.3", "1.9.0"], ["2.0.0", "1.2.2", "2.0.0-alpha"]),
        ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0", "0.2.2"]),
        ("^0.0.3", ["0.0.3"], ["0.0.4"]),
        ("^0.0", ["0.0.9"], ["0.1.0"]),
        ("^0", ["0.9.9"], ["1.0.0"]),
        ("^1.x", ["1.0.0", "1.9.9"], ["2.0.0"]),
        ("~1.2.3", ["1.2.3", "1.2.9"], ["1.3.0"]),
        ("~1.2", ["1.2.0", "1.2.9"], ["1.3.0"]),
        ("~1", ["1.9.9"], ["2.0.0"]),
        ("1.2.x", ["1.2.0", "1.2.9"], ["1.3.0"]),
        ("1", ["1.0.0", "1.9.0"], ["2.0.0"]),
        ("*", ["0.0.1", "9.9.9"], []),
        ("", ["1.0.0"], []),
        (">=1.2 <2", ["1.2.0", "1.9.9"], ["1.1.9", "2.0.0"]),
        (">1.2", ["1.3.0"], ["1.2.9"]),
        ("<=1.2", ["1.2.9"], ["1.3.0"]),
        (">= 1.2.3", ["1.2.3"], ["1.2.2"]),
        ("1.2.3 - 2.3.4", ["1.2.3", "2.3.4"], ["1.2.2", "2.3.5"]),
        ("1.2 - 2.3", ["1.2.0", "2.3.9"], ["2.4.0"]),
        ("^16.8.0 || ^17 || >=18.1", ["16.9.0", "17.0.1", "18.2.0"], ["18.0.0", "15.0.0"]),
        (">=1.2, <1.5", ["1.4.9"], ["1.5.0"]),
        ("^1.2.3-beta.2", ["1.2.3-beta.2", "1.2.3-beta.10", "1.2.3"], ["1.2.3-beta.1", "1.2.4-beta.3"]),
        (">1.0.0-alpha", ["1.0.0-alpha.1", "1.0.0"], ["1.0.0-alpha"]),
    ],
)  # fmt: skip
def test_ranges(wanted: str, inside: list[str], outside: list[str]) -> None:
    assert [v for v in inside if satisfies(v, wanted) is not True] == []
    assert [v for v in outside if satisfies(v, wanted) is not False] == []


def test_a_bare_version_is_a_caret_in_cargo() -> None:
    assert satisfies("1.9.0", "1.2.3", bare="^") is True
    assert satisfies("2.0.0", "1.2.3", bare="^") is False
    assert satisfies("0.3.0", "0.2", bare="^") is False


@pytest.mark.parametrize(
    "wanted", ["latest", "git+https://x/y.git", "file:../x", "workspace:*", "npm:a@1"]
)
def test_what_is_no_range_is_not_judged(wanted: str) -> None:
    assert satisfies("1.2.3", wanted) is None


@pytest.mark.parametrize("version", ["", "1.2", "main", "1.2.3.4"])
def test_what_is_no_version_is_not_judged(version: str) -> None:
    assert satisfies(version, "^1") is None


def test_order_of_pre_releases() -> None:
    """https://semver.org/#spec-item-11"""
    order = ["alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1"]
    for lower, higher in pairwise(order):
        assert satisfies(f"1.0.0-{higher}", f">1.0.0-{lower}")
        assert not satisfies(f"1.0.0-{lower}", f">1.0.0-{higher}")
    assert satisfies("1.0.0", ">1.0.0-rc.1")
