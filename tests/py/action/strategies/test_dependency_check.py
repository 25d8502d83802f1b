"""dependency_check: real environments, manifests of each language, conflicts, and what may be installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.strategies.dependency_check import dependency_check
from loki.action.strategies.strategy_context import StrategyNotApplicable
from support.strategy import situation, write

PIP_CONFLICT = """\
ERROR: Cannot install -r requirements.txt (line 1) and urllib3==2.0.0 because these package versions have conflicting dependencies.

The conflict is caused by:
    The user requested urllib3==2.0.0
    requests 2.28.0 depends on urllib3<1.27 and >=1.21.1

To fix this you could try to:
1. loosen the range of package versions you've specified

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/
"""
NPM_CONFLICT = """\
npm ERR! code ERESOLVE
npm ERR! ERESOLVE unable to resolve dependency tree
npm ERR!
npm ERR! While resolving: demo@1.0.0
npm ERR! Found: react@18.2.0
npm ERR! node_modules/react
npm ERR!   react@"^18.2.0" from the root project
npm ERR!
npm ERR! Could not resolve dependency:
npm ERR! peer react@"^16.8.0" from react-thing@1.0.0
"""
CARGO_CONFLICT = """\
error: failed to select a version for `libz-sys`.
    ... required by package `b v0.1.0 (/p/b)`
versions that meet the requirements `^1.0` are: 1.1.0

the package `a` depends on `libz-sys`, with features: `x` but `libz-sys` does not have these features.

failed to select a version for `libz-sys` which could resolve this conflict
"""


@pytest.mark.parametrize(
    "name", ["--registry=http://evil", "../evil", "git+https://evil/x", "http://evil/x.tgz", "a b"]
)
def test_what_is_no_name_is_never_installed(tmp_path: Path, name: str) -> None:
    """The name comes from output, which an agent or a test can print."""
    write(tmp_path, package_dot_json="{}", app_dot_js="require('x')\n")
    output = f"app.js(1,1): error TS2307: Cannot find module '{name}' or its corresponding type declarations.\n"
    ran: list[object] = []
    made = situation(tmp_path, output=output, command="tsc", allowed=["*"])
    object.__setattr__(made, "run_fix", ran.append)
    helped = dependency_check(made)
    assert ran == []
    assert not helped.acted


def test_of_modules_that_are_called_alike_the_one_that_is_meant_is_told(tmp_path: Path) -> None:
    models = {
        "app__admin__models_dot_py": "class Log: ...",
        "app__shop__models_dot_py": "class Ordr: ...",
    }
    write(tmp_path, **models)
    output = (
        "ImportError: cannot import name 'Order' from 'app.shop.models' (/p/app/shop/models.py)\n"
    )
    helped = dependency_check(situation(tmp_path, output=output, command="python -m app"))
    assert "- app/shop/models.py has no Order; it has: Ordr" in helped.context


# --- other languages ------------------------------------------------------------------------------


def tsc(module: str) -> str:
    return (
        f"src/app.ts(1,20): error TS2307: Cannot find module '{module}' or its corresponding type "
        "declarations.\n"
    )


def test_npm_required_installed_and_conflicting(tmp_path: Path) -> None:
    write(
        tmp_path,
        package_dot_json='{\n "dependencies": {\n  "lodash": "^4.17.0",\n  "react": "^18"\n }\n}\n',
        src__app_dot_ts="import x from 'lodash'\n",
        node_modules__react__package_dot_json='{"version": "17.0.2"}',
    )
    (tmp_path / ".gitignore").write_text("node_modules/\n")
    helped = dependency_check(situation(tmp_path, output=tsc("lodash/fp"), command="tsc"))
    assert "missing: lodash/fp (package lodash)" in helped.context
    assert "package.json:3 requires lodash ^4.17.0 (dependencies)" in helped.context
    assert "installed in node_modules: no" in helped.context
    assert "a person could run: npm install" in helped.context
    helped = dependency_check(situation(tmp_path, output=tsc("react"), command="tsc"))
    assert "package.json:4 requires react ^18 (dependencies)" in helped.context
    assert "installed in node_modules: version 17.0.2" in helped.context
    assert "this version may not fit" in helped.context


def test_npm_the_lock_file_tells_the_command(tmp_path: Path) -> None:
    write(tmp_path, package_dot_json="{}", src__app_dot_ts="x\n")
    (tmp_path / "pnpm-lock.yaml").write_text("")
    helped = dependency_check(situation(tmp_path, output=tsc("left-pad"), command="tsc"))
    assert "a person could run: pnpm add left-pad" in helped.context


def test_npm_missing_types(tmp_path: Path) -> None:
    write(tmp_path, package_dot_json="{}", src__app_dot_ts="x\n")
    output = "src/app.ts(1,1): error TS7016: Could not find a declaration file for module '@scope/pad'.\n"
    helped = dependency_check(situation(tmp_path, output=output, command="tsc"))
    assert "(package @types/scope__pad)" in helped.context


def test_a_relative_import_that_is_misspelt(tmp_path: Path) -> None:
    write(tmp_path, src__app_dot_ts="x\n", src__utils_dot_ts="", lib__money_dot_ts="")
    helped = dependency_check(situation(tmp_path, output=tsc("./utlis"), command="tsc"))
    assert "- there is src/utils.ts; that is not where it is looked for" in helped.context
    helped = dependency_check(situation(tmp_path, output=tsc("./money"), command="tsc"))
    assert "- there is lib/money.ts; that is not where it is looked for" in helped.context


def test_go(tmp_path: Path) -> None:
    write(
        tmp_path,
        go_dot_mod="module example.com/shop\n\nrequire example.com/lib v1.2.0\n",
        main_dot_go="package main\n",
        cart__cart_dot_go="package cart\n",
    )
    output = "main.go:4:2: no required module provides package github.com/pkg/errors; to add it:\n\tgo get github.com/pkg/errors\n"
    helped = dependency_check(situation(tmp_path, output=output, command="go build ./..."))
    assert "required nowhere; manifests looked in: go.mod" in helped.context
    assert "a person could run: go get github.com/pkg/errors" in helped.context
    output = "main.go:4:2: package example.com/shop/carts is not in std (/usr/lib/go/src/example.com/shop/carts)\n"
    helped = dependency_check(situation(tmp_path, output=output, command="go build ./..."))
    assert "- there is cart/cart.go; that is not where it is looked for" in helped.context


def test_rust(tmp_path: Path) -> None:
    write(
        tmp_path,
        Cargo_dot_toml='[dependencies]\nserde-json = "1.0"\n',
        Cargo_dot_lock='[[package]]\nname = "serde-json"\nversion = "0.9.0"\n',
        src__main_dot_rs="use serde_json::Value;\n",
        src__cart_dot_rs="",
    )
    output = "error[E0432]: unresolved import `serde_json`\n --> src/main.rs:1:5\n"
    helped = dependency_check(situation(tmp_path, output=output, command="cargo build"))
    assert "Cargo.toml:2 requires serde-json 1.0 (dependencies)" in helped.context
    assert "installed in Cargo.lock: version 0.9.0" in helped.context
    output = "error[E0432]: unresolved import `crate::carts`\n --> src/main.rs:1:5\n"
    helped = dependency_check(situation(tmp_path, output=output, command="cargo build"))
    assert "- there is src/cart.rs" in helped.context


# --- conflicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "command", "sides"),
    [
        (PIP_CONFLICT, "pip install -r requirements.txt", ["- The user wants urllib3==2.0.0", "- requests 2.28.0 wants urllib3<1.27 and >=1.21.1"]),
        (NPM_CONFLICT, "npm install", ["- react@18.2.0", '- the root project wants react@"^18.2.0"', '- react-thing@1.0.0 wants react@"^16.8.0"']),
        (CARGO_CONFLICT, "cargo build", ["- b v0.1.0", "- ^1.0"]),
    ],
)  # fmt: skip
def test_both_sides_of_a_conflict(
    output: str, command: str, sides: list[str], tmp_path: Path
) -> None:
    write(tmp_path, package_dot_json='{"dependencies": {"react": "^18.2.0"}}')
    helped = dependency_check(situation(tmp_path, output=output, command=command))
    for side in sides:
        assert side in helped.context
    if command == "npm install":
        assert "package.json:1 requires react ^18.2.0 (dependencies)" in helped.context


def test_what_names_neither_is_told(tmp_path: Path) -> None:
    with pytest.raises(StrategyNotApplicable, match="names no module"):
        dependency_check(situation(tmp_path, output="it is broken"))
