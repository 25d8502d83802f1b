"""Where imports lead in a project: files, something that is missing, or elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.checks.imports import (
    EXTERNAL,
    FOUND,
    MISSING,
    Files,
    Location,
    imports_of,
    locate,
    resolve,
)


def project(*paths: str, **contents: object) -> Files:
    """Files by path; keyword arguments would not hold slashes, so contents come as a mapping."""
    texts = contents.pop("texts", {})
    assert isinstance(texts, Mapping)
    assert not contents

    def read(path: str) -> bytes:
        text = texts.get(path, "")
        return (text if isinstance(text, str) else json.dumps(text)).encode()

    return Files([*paths, *texts], read)


def where(importer: str, statement: str, files: Files) -> Location:
    (import_,) = imports_of(importer, statement.encode())
    return locate(import_, importer, files)


PACKAGE = project(
    "setup.py",
    "src/pkg/__init__.py",
    "src/pkg/a.py",
    "src/pkg/sub/__init__.py",
    "src/pkg/sub/b.py",
    "src/pkg/fast.cpython-311-x86_64-linux-gnu.so",
    "src/pkg/types.pyi",
    "src/pkg/data/x.json",
    "src/space/inner/mod.py",
    "tests/conftest.py",
    "tests/helper.py",
    "tests/unit/test_a.py",
    "tools/lonely.py",
    "tools/logging.py",
)


@pytest.mark.parametrize(
    ("importer", "statement", "paths"),
    [
        ("src/pkg/a.py", "from . import sub", ["src/pkg/sub/__init__.py"]),
        (
            "src/pkg/a.py",
            "from . import sub, VERSION",
            ["src/pkg/sub/__init__.py", "src/pkg/__init__.py"],
        ),
        ("src/pkg/a.py", "from .sub import b", ["src/pkg/sub/b.py"]),
        ("src/pkg/a.py", "from .sub.b import f", ["src/pkg/sub/b.py"]),
        ("src/pkg/a.py", "from .sub import *", ["src/pkg/sub/__init__.py"]),
        ("src/pkg/sub/b.py", "from ..a import f", ["src/pkg/a.py"]),
        ("src/pkg/sub/__init__.py", "from .b import f", ["src/pkg/sub/b.py"]),
        ("tests/unit/test_a.py", "import pkg.sub.b", ["src/pkg/sub/b.py"]),
        ("tests/unit/test_a.py", "from pkg import a", ["src/pkg/a.py"]),
        (
            "tests/unit/test_a.py",
            "from pkg import fast",
            ["src/pkg/fast.cpython-311-x86_64-linux-gnu.so"],
        ),
        ("tests/unit/test_a.py", "from pkg.types import T", ["src/pkg/types.pyi"]),
        ("tests/unit/test_a.py", "import helper", ["tests/helper.py"]),
        ("tests/unit/test_a.py", "from space.inner import mod", ["src/space/inner/mod.py"]),
        ("tests/unit/test_a.py", "import lonely", ["tools/lonely.py"]),
        ("tools/lonely.py", "import logging", ["tools/logging.py"]),
        ("setup.py", "importlib.import_module('pkg.a')", ["src/pkg/a.py"]),
    ],
)
def test_python(importer: str, statement: str, paths: list[str]) -> None:
    location = where(importer, statement, PACKAGE)
    assert (location.state, list(location.paths)) == (FOUND, paths)


@pytest.mark.parametrize(
    ("importer", "statement", "state", "missing"),
    [
        ("src/pkg/a.py", "from .gone import f", MISSING, ".gone"),
        ("src/pkg/a.py", "from .sub.gone import f", MISSING, ".sub.gone"),
        ("tests/unit/test_a.py", "import pkg.gone", MISSING, "pkg.gone"),
        ("setup.py", "from ... import f", EXTERNAL, ""),
        ("tests/unit/test_a.py", "from .gone import f", EXTERNAL, ""),
        ("tests/unit/test_a.py", "import space.gone", EXTERNAL, ""),
        # Names of a package may be anything that it defines.
        ("src/pkg/a.py", "from . import gone", FOUND, ""),
        # What hangs on a module may be there once it has run, as os.path is.
        ("tests/unit/test_a.py", "import pkg.a.gone", FOUND, ""),
        ("src/pkg/a.py", "from .data import x", FOUND, ""),
        ("src/pkg/a.py", "import requests", EXTERNAL, ""),
        # A file that is called like one of the standard library's, elsewhere.
        ("src/pkg/a.py", "import logging", EXTERNAL, ""),
    ],
)
def test_python_missing_or_elsewhere(
    importer: str, statement: str, state: str, missing: str
) -> None:
    location = where(importer, statement, PACKAGE)
    assert (location.state, location.missing) == (state, missing)


@pytest.mark.parametrize(
    "text",
    [
        "__path__ = extend_path(__path__, __name__)",
        "sys.modules[__name__ + '.x'] = y",
        "def __getattr__(n): ...",
    ],
)
def test_nothing_is_missing_of_a_package_that_says_where_to_look(text: str) -> None:
    files = project("a.py", texts={"pkg/__init__.py": text})
    assert where("a.py", "import pkg.gone", files).state == FOUND


def test_a_missing_python_module_says_where_it_should_be() -> None:
    location = where("src/pkg/a.py", "from .gone import f", PACKAGE)
    assert location.expected == ("src/pkg/gone.py", "src/pkg/gone/__init__.py")


NODE = project(
    "src/app.ts",
    "src/util.ts",
    "src/view.tsx",
    "src/old.js",
    "src/both.js",
    "src/both.ts",
    "src/mod.mts",
    "src/types.d.ts",
    "src/data.json",
    "src/my.config.ts",
    "src/lib/index.ts",
    "src/style.css",
    "src/legacy/main.js",
    "test/app.test.ts",
    "packages/ui/src/index.ts",
    "packages/ui/src/button.tsx",
    "packages/core/lib/core.js",
    "packages/core/feature/index.js",
    "generated/client.ts",
    texts={
        "src/legacy/package.json": {"main": "main"},
        "tsconfig.json": "{ /* shared */ \"extends\": \"./config/tsconfig.base.json\",\n"
        '  "references": [{"path": "./tsconfig.app.json"}],\n}',
        "config/tsconfig.base.json": {
            "compilerOptions": {"baseUrl": "..", "paths": {"@/*": ["src/*", "generated/*"], "~only": ["src/util"]}}
        },
        "tsconfig.app.json": {"compilerOptions": {"paths": {"$lib/*": ["./src/lib/*"]}}},
        "package.json": {
            "name": "root",
            "workspaces": ["packages/*"],
            "imports": {"#util": "./src/util.ts", "#lib/*": {"node": "./dist/lib/*.js"}, "#fs": "fs"},
        },
        "packages/ui/package.json": {
            "name": "@acme/ui",
            "exports": {".": {"types": "./dist/index.d.ts", "import": "./dist/index.js"}, "./*": "./dist/*.js"},
        },
        "packages/core/package.json": {"name": "core", "main": "./lib/core.js"},
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("./util", ["src/util.ts"]),
        ("./util.js", ["src/util.ts"]),
        ("./view.jsx", ["src/view.tsx"]),
        ("./mod.mjs", ["src/mod.mts"]),
        ("./old", ["src/old.js"]),
        ("./both.js", ["src/both.js"]),
        ("./both", ["src/both.ts"]),
        ("./types", ["src/types.d.ts"]),
        ("./data.json", ["src/data.json"]),
        ("./data", ["src/data.json"]),
        ("./my.config", ["src/my.config.ts"]),
        ("./lib", ["src/lib/index.ts"]),
        ("./lib/", ["src/lib/index.ts"]),
        ("./lib/index.js", ["src/lib/index.ts"]),
        ("./style.css?inline", ["src/style.css"]),
        ("./legacy", ["src/legacy/main.js"]),
        ("../test/app.test", ["test/app.test.ts"]),
        ("@/util", ["src/util.ts"]),
        ("@/client", ["generated/client.ts"]),
        ("~only", ["src/util.ts"]),
        ("$lib/index", ["src/lib/index.ts"]),
        ("src/util", ["src/util.ts"]),
        ("#util", ["src/util.ts"]),
        ("#lib/index", ["src/lib/index.ts"]),
        ("@acme/ui", ["packages/ui/src/index.ts"]),
        ("@acme/ui/button", ["packages/ui/src/button.tsx"]),
        ("core", ["packages/core/lib/core.js"]),
        ("core/feature", ["packages/core/feature/index.js"]),
    ],
)
def test_javascript(name: str, paths: list[str]) -> None:
    location = where("src/app.ts", f"import x from '{name}'", NODE)
    assert (location.state, list(location.paths)) == (FOUND, paths)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("./gone", MISSING),
        ("./gone.js", MISSING),
        ("./gone/", MISSING),
        ("@/gone", MISSING),
        ("$lib/gone", MISSING),
        ("#lib/gone", MISSING),
        ("~only/no", EXTERNAL),
        ("#fs", EXTERNAL),
        ("#nothing", EXTERNAL),
        ("../../outside", EXTERNAL),
        ("/absolute", EXTERNAL),
        ("https://example.com/x.js", EXTERNAL),
        ("node:fs", EXTERNAL),
        ("react", EXTERNAL),
        ("@scope/pkg/sub", EXTERNAL),
        ("core/gone", EXTERNAL),
    ],
)
def test_javascript_missing_or_elsewhere(name: str, state: str) -> None:
    assert where("src/app.ts", f"import x from '{name}'", NODE).state == state


def test_a_missing_javascript_module_says_where_it_should_be() -> None:
    assert where("src/app.ts", "import x from './gone.js'", NODE).expected == (
        "src/gone.js", "src/gone.ts", "src/gone.tsx", "src/gone.d.ts",
    )  # fmt: skip
    assert "src/gone/index.ts" in where("src/app.ts", "import x from './gone'", NODE).expected


@pytest.mark.parametrize(
    "config",
    [
        {
            "extends": "@tsconfig/node20/tsconfig.json",
            "compilerOptions": {"paths": {"@/*": ["src/*"]}},
        },
        {"compilerOptions": {"paths": {"*": ["types/*"]}}},
        {"extends": "./gone.json", "compilerOptions": {"paths": {"@/*": ["src/*"]}}},
    ],
)
def test_nothing_is_missing_where_the_configuration_does_not_say(config: object) -> None:
    files = project("src/a.ts", texts={"tsconfig.json": config})
    assert where("src/a.ts", "import '@/gone'", files).state == EXTERNAL


def test_configurations_that_extend_each_other_end() -> None:
    texts = {"tsconfig.json": {"extends": "./b.json"}, "b.json": {"extends": "./tsconfig.json"}}
    assert where("a.ts", "import 'x'", project("a.ts", texts=texts)).state == EXTERNAL


GO = project(
    "main.go",
    "internal/db/db.go",
    "internal/db/query.go",
    "internal/db/db_test.go",
    "docs/readme.md",
    "tools/gen/main.go",
    texts={
        "go.mod": "// the module\nmodule example.com/shop // comment\n\ngo 1.22\n",
        "tools/go.mod": 'module "example.com/shop/tools"\n',
    },
)


@pytest.mark.parametrize(
    ("name", "state", "paths"),
    [
        ("example.com/shop/internal/db", FOUND, ["internal/db/db.go", "internal/db/query.go"]),
        ("example.com/shop", FOUND, ["main.go"]),
        ("example.com/shop/tools/gen", FOUND, ["tools/gen/main.go"]),
        ("./internal/db", FOUND, ["internal/db/db.go", "internal/db/query.go"]),
        ("example.com/shop/docs", MISSING, []),
        ("example.com/shop/gone", MISSING, []),
        ("example.com/shopping", EXTERNAL, []),
        ("fmt", EXTERNAL, []),
    ],
)
def test_go(name: str, state: str, paths: list[str]) -> None:
    location = where("main.go", f'package main\nimport "{name}"\n', GO)
    assert (location.state, list(location.paths)) == (state, paths)


_NAMES = st.sampled_from(
    ["a", "b", ".", "..", "@/a", "#a", "/", "a/b", "./a", "../a", "a.b", "*", "", "src"]
)


@given(st.lists(_NAMES, min_size=1, max_size=5).map("/".join), st.sampled_from(["js", "py", "go"]))
def test_every_name_leads_somewhere_and_never_out_of_the_project(name: str, language: str) -> None:
    files = project("a.js", "a/b/index.js", "a/__init__.py", "b.py", texts={"go.mod": "module a\n"})
    statement = {
        "js": f"import '{name}'",
        "py": f"import {name}",
        "go": f'package a\nimport "{name}"',
    }
    importer = f"src/x.{language}"
    for found in imports_of(importer, statement[language].encode()):
        assert set(resolve(found, importer, files)) <= files.paths
