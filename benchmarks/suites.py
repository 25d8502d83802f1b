"""Real test suites of real packages, in which changes are planted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runners import (
    JS,
    MOCHA,
    Run,
    cargo,
    crate,
    go,
    go_module,
    js,
    maven,
    npm,
    pytest,
    sdist,
    surefire,
    unittest,
)


@dataclass(frozen=True)
class Suite:
    """A package with its tests.

    Attributes:
        name: what the pairs are counted under.
        tools: programs that must be there.
        prepare: makes the package in a folder; needs a registry.
        sources: globs of files in which a change is planted.
        flags: ways to call the tool, each a list of arguments.
        run: calls it.
    """

    name: str
    tools: tuple[str, ...]
    prepare: Callable[[Path], None]
    sources: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...]
    run: Callable[[Path, tuple[str, ...]], Run]


_PYTEST = ((), ("-rA",), ("-q", "--tb=short"), ("-v", "--tb=line"), ("-q", "--tb=no"), ("-x",))

SUITES = (
    Suite("pytest/toolz", (), sdist("toolz==1.0.0"), ("toolz/*.py",), _PYTEST, pytest("toolz")),
    Suite(
        "pytest/more-itertools",
        (),
        sdist("more-itertools==10.5.0"),
        ("more_itertools/more.py",),
        _PYTEST,
        pytest("tests/test_more.py"),
    ),
    Suite(
        "unittest/markdown",
        (),
        sdist("Markdown==3.7"),
        ("markdown/*.py", "markdown/extensions/*.py"),
        ((), ("-v",), ("-b",)),
        unittest("-m", "unittest", "discover", "-s", "tests", "-t", "."),
    ),
    Suite(
        "unittest/more-itertools",
        (),
        sdist("more-itertools==10.5.0"),
        ("more_itertools/*.py",),
        ((), ("-v",), ("-f",)),
        unittest("-m", "unittest", "discover", "-s", "tests", "-t", "."),
    ),
    Suite(
        "django/own tests",
        (),
        sdist("Django==4.2.16", "asgiref", "sqlparse"),
        ("django/utils/text.py", "django/utils/html.py", "django/utils/http.py"),
        (("--verbosity", "2"), (), ("--verbosity", "0")),
        unittest(
            *("tests/runtests.py", "--settings=test_sqlite", "--parallel", "1"),
            *("utils_tests.test_text", "utils_tests.test_html", "utils_tests.test_http"),
        ),
    ),
    Suite(
        "go/semver",
        ("go",),
        go_module("github.com/Masterminds/semver/v3@v3.2.1"),
        ("*.go",),
        ((), ("-v",)),
        go,
    ),
    Suite(
        "go/cast",
        ("go",),
        go_module("github.com/spf13/cast@v1.6.0"),
        ("caste.go",),
        ((), ("-v",), ("-count=1",)),
        go,
    ),
    Suite("cargo/semver", ("cargo",), crate("semver", "1.0.23"), ("src/*.rs",), ((),), cargo),
    Suite(
        "jest/lodash",
        ("npx",),
        npm("lodash@4.17.21", "lodash/lodash.js", JS, "jest@29"),
        ("subject.js",),
        ((), ("--verbose",)),
        js("jest", "--json", "--outputFile=report.json", "--silent=false"),
    ),
    Suite(
        "vitest/lodash",
        ("npx",),
        npm(
            "lodash@4.17.21",
            "lodash/lodash.js",
            JS,
            "vitest@1",
        ),
        ("subject.js",),
        ((), ("--reporter=verbose",)),
        js(
            *("vitest", "run", "--globals", "--reporter=default", "--reporter=json"),
            "--outputFile=report.json",
        ),
    ),
    Suite(
        "mocha/lodash",
        ("npx",),
        npm("lodash@4.17.21", "lodash/lodash.js", MOCHA + JS, "mocha@10"),
        ("subject.js",),
        ((), ("--reporter=dot",)),
        js("mocha", "subject.test.js"),
    ),
    Suite(
        "junit/commons-cli",
        ("mvn", "javac"),
        maven("commons-cli", "commons-cli", "1.6.0"),
        ("src/main/java/**/*.java",),
        ((),),
        surefire,
    ),
)


def source_files(folder: Path, suite: Suite) -> list[Path]:
    """Files in which a change may be planted, in a fixed order; tests are left alone."""
    found = {path for pattern in suite.sources for path in folder.glob(pattern) if path.is_file()}
    return sorted(
        path for path in found if not re.search(r"test|__init__", path.name, re.IGNORECASE)
    )
