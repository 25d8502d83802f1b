"""What a path says: places, stems, and whether a task is about it."""

from __future__ import annotations

import pytest

from loki.decision.drift import any_glob, in_scope, kinds_of_path, path_kinds, stem_of


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("tests/test_cart.py", "cart"),
        ("cart_test.go", "cart"),
        ("src/CartTests.cs", "Cart"),
        ("src/cart.spec.ts", "cart"),
        ("src/cart/index.ts", "cart"),
        ("src/cart/__init__.py", "cart"),
        ("src/net/mod.rs", "net"),
        ("test.py", "test"),
        (".env", "env"),
        ("latest.py", "latest"),
    ],
)
def test_stems(path: str, stem: str) -> None:
    assert stem_of(path) == stem


@pytest.mark.parametrize(
    ("path", "scope", "expected"),
    [
        ("shop/money.py", ["shop/money.py"], True),
        ("shop/deep/money.py", ["shop/"], True),
        ("shop/deep/money.py", ["shop"], True),
        ("shop2/money.py", ["shop"], False),
        ("web/a.ts", ["**/*.ts"], True),
        ("tests/test_money.py", ["shop/money.py"], True),
        ("tests/test_tax.py", ["shop/money.py"], False),
        ("CHANGELOG.md", ["shop/money.py"], True),
    ],
)
def test_scope(path: str, scope: list[str], expected: bool) -> None:
    assert in_scope(path, scope) is expected


def test_places_and_kinds() -> None:
    assert "lock" in kinds_of_path("web/package-lock.json")
    assert "test" in kinds_of_path("src/__tests__/a.js")
    assert not kinds_of_path("src/app.py")
    assert path_kinds()["licences"].search("LICENSE")
    assert any_glob(["(?i)^a$", "^b$"]).search("A")
    assert not any_glob(["(?i)^a$", "^b$"]).search("B")
