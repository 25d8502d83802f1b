"""Which files depend on a change, in three languages."""

from __future__ import annotations

import pytest

from loki.action.checks.imports import Files
from loki.action.checks.regression import RELATIVE, ImportGraph, words_of

PYTHON = {
    "shop/__init__.py": "from .cart import total\n",
    "shop/cart.py": "def total(): ...\n",
    "shop/till.py": "from shop.cart import total\n",
    "shop/store.py": "from . import till\n",
    "tests/conftest.py": "",
    "tests/test_cart.py": "import shop.cart\n",
    "tests/test_till.py": "from shop import till\n",
    "tests/test_store.py": "from shop.store import x\n",
    "tests/test_package.py": "import shop\n",
    "tests/test_other.py": "import os\n",
    "cart.txt": "import shop.cart",
}

TYPESCRIPT = {
    "package.json": '{"name": "shop"}',
    "src/cart.ts": "export const total = 1;\n",
    "src/index.ts": "export * from './cart';\n",
    "src/till.ts": "import { total } from './cart.js';\n",
    "src/mocks/cart.ts": "import { total } from '../cart';\n",
    "src/cart.test.ts": "import { total } from './cart';\n",
    "src/till.test.tsx": "const { x } = await import('./till');\n",
    "src/all.test.ts": "import { total } from '.';\n",
    "src/mock.test.ts": "import { total } from './mocks/cart';\n",
    "src/other.test.ts": "import fs from 'node:fs';\n",
}

GO = {
    "go.mod": "module example.com/shop\n\ngo 1.21\n",
    "cart/cart.go": "package cart\n",
    "cart/cart_test.go": 'package cart\n\nimport "testing"\n',
    "till/till.go": 'package till\n\nimport "example.com/shop/cart"\n',
    "till/rest.go": "package till\n",
    "till/till_test.go": 'package till\n\nimport "testing"\n',
    "store/store.go": 'package store\n\nimport "example.com/shop/till"\n',
    "other/other_test.go": "package other\n",
}


def graph(
    texts: dict[str, str], exclude: tuple[str, ...] = (), shared: tuple[str, ...] = ()
) -> ImportGraph:
    return ImportGraph(Files(texts, lambda path: texts[path].encode()), exclude, shared)


@pytest.mark.parametrize(
    ("texts", "target", "first", "second"),
    [
        (
            PYTHON,
            "shop/cart.py",
            {"shop/__init__.py", "shop/till.py", "tests/test_cart.py"},
            {"shop/store.py", "tests/test_till.py", "tests/test_package.py"},
        ),
        (
            TYPESCRIPT,
            "src/cart.ts",
            {"src/index.ts", "src/till.ts", "src/mocks/cart.ts", "src/cart.test.ts"},
            {"src/till.test.tsx", "src/all.test.ts", "src/mock.test.ts"},
        ),
        (
            GO,
            "cart/cart.go",
            {"cart/cart_test.go", "till/till.go"},
            {"till/till_test.go", "store/store.go"},
        ),
    ],
    ids=["python", "typescript", "go"],
)
def test_dependents_by_depth(
    texts: dict[str, str], target: str, first: set[str], second: set[str]
) -> None:
    assert set(graph(texts).dependents([target], 1)) == first
    assert set(graph(texts).dependents([target], 2)) == first | second


def test_a_chain_leads_from_the_dependent_to_the_change() -> None:
    chains = graph(PYTHON).dependents(["shop/cart.py"], 3)
    assert chains["tests/test_store.py"] == (
        "tests/test_store.py",
        "shop/store.py",
        "shop/till.py",
        "shop/cart.py",
    )


def test_what_is_excluded_is_not_followed() -> None:
    chains = graph(TYPESCRIPT, exclude=("**/mocks/**", "**/*.test.tsx")).dependents(
        ["src/cart.ts"], 5
    )
    assert not {"src/mocks/cart.ts", "src/mock.test.ts", "src/till.test.tsx"} & chains.keys()


def test_shared_files_are_above_all_below_them() -> None:
    chains = graph(PYTHON, shared=("conftest.py",)).dependents(["tests/conftest.py"], 1)
    assert chains["tests/test_other.py"] == ("tests/test_other.py", "tests/conftest.py")
    assert "shop/till.py" not in chains


def test_a_package_that_is_imported_without_its_name() -> None:
    chains = graph({"p/__init__.py": "x = 1\n", "p/a.py": "from . import x\n"}).dependents(
        ["p/__init__.py"], 1
    )
    assert set(chains) == {"p/a.py"}


def test_a_file_with_another_name() -> None:
    """A workspace's package is imported by the name that its manifest gives it."""
    texts = {
        "packages/cart/package.json": '{"name": "@shop/cart", "main": "lib/start.js"}',
        "packages/cart/lib/start.js": "",
        "packages/till/till.js": "require('@shop/cart')\n",
    }
    found = graph(texts).dependents(["packages/cart/lib/start.js"], 1)
    assert set(found) == {"packages/till/till.js"}


def test_circles_end_and_targets_that_are_gone_have_no_dependents() -> None:
    circle = {"a.py": "import b\n", "b.py": "import a\n"}
    assert graph(circle).dependents(["a.py"], 20) == {"b.py": ("b.py", "a.py")}
    assert graph(circle).dependents(["gone.py", "notes.md"], 2) == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.py", "from a.b import (\n  other,  # not ) the end\n  cart as c,\n)"),
        ("x.py", "from a.b \\\n  import \\\n cart"),
        ("x.py", "if x: import a.b.cart"),
        ("x.py", "importlib.import_module(\n  'a.b.cart')"),
        ("x.py", "from . import y"),
        ("x.ts", "jest.mock(`./a/cart.js`)"),
        ("x.ts", "import {\n  total,\n} from '@/a/cart'"),
        ("x.js", "import '..'"),
    ],
)
def test_a_glance_sees_every_way_to_import(path: str, text: str) -> None:
    language = "python" if path.endswith(".py") else "javascript"
    assert words_of(text.encode(), language) & {"cart", RELATIVE}


def test_a_file_is_extracted_once_as_long_as_it_stays_the_same() -> None:
    first = graph(PYTHON)
    first.dependents(["shop/cart.py"], 2)
    kept = dict(first.cache.imports)
    again = ImportGraph(Files(PYTHON, lambda path: PYTHON[path].encode()), cache=first.cache)
    again.dependents(["shop/cart.py"], 2)
    assert first.cache.imports == kept
    assert len(kept) < len(PYTHON) - 2
