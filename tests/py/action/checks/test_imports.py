"""Imports: what files import, whatever they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.checks import imports
from loki.action.checks.imports import Import, imports_of, language_of, unread
from loki.action.checks.regression import unchecked
from loki.action.checks.results.suite_results import Results
from loki.action.gates import data_parsers

PYTHON = '''\
"""Doc: import nothing."""
from __future__ import annotations

import os, sys as system
import a.b.c
from ..pkg import (
    one,
    two as zwei,
)
from . import sibling
from .mod import *

if TYPE_CHECKING:
    from typing_only import T
else:
    T = None

try:
    import ujson as json
except ImportError:
    import json
finally:
    import always

with suppress(ModuleNotFoundError):
    import maybe

if sys.version_info >= (3, 11):
    import tomllib

def later():
    import inside; é = "é"; import behind
    plugin = importlib.import_module("plugins.first")
    other = importlib.import_module(name)
    np = pytest.importorskip("numpy")
'''

JAVASCRIPT = """\
#!/usr/bin/env node
// import no from 'comment';
/* require('comment') */
import def, { named as other, type Kind } from "./a.js";
import * as all from 'all';
import './effect';
import type { T } from "./types";
import { type A, type B } from './only-types';
import type from './named-type';
import legacy = require('legacy');
export { x } from './b';
export * as ns from '../c';
export type { U } from './u';
export { local };
export default function f() {}
const fs = require("fs"), t = `text ${ require('in-template') } import('no')`;
const re = /require('regex')/g, half = 4 / 2 / require('divisor');
if (x) /import "regex"/.test(y);
const lazy = () => import('./lazy');
const named = import(`./static`), dynamic = import(`./${name}`), computed = require(name);
import('top').catch(() => null);
try { require('optional') } catch { }
const s = "import './string'", p = x.require('method'), m = { import: 1, require: 2 };
const spread = [...require('spread')];
import json from './data.json' with { type: 'json' };
const el = <p>Don't</p>;
import after from './after';
"""

GO = """\
// Package main: import "nothing"
package main

import "fmt"
import (
\t"os"
\talias "example.com/mod/pkg" // import "no"
\t. "strings"
\t_ `embed`; "two"
)
import "C"

var s = "import \\"no\\""
func main() { fmt.Println(`import "no"`) }
"""


def written(path: str, text: str) -> list[str]:
    return [i.written for i in imports_of(path, text.encode())]


def named(path: str, text: str) -> dict[str, Import]:
    return {i.written: i for i in imports_of(path, text.encode())}


def test_python() -> None:
    found = named("a.py", PYTHON)
    assert list(found) == [
        "__future__", "os", "sys", "a.b.c", "..pkg", ".", ".mod", "typing_only", "ujson", "json",
        "always", "maybe", "tomllib", "inside", "behind", "plugins.first", "numpy",
    ]  # fmt: skip
    assert found["..pkg"] == Import("pkg", 6, 6, 2, ("one", "two"))
    assert found["."] == Import("", 10, 6, 1, ("sibling",))
    assert found[".mod"].names == ("*",)
    assert (found["sys"].line, found["sys"].column) == (4, 12)
    assert (found["behind"].line, found["behind"].column) == (32, 36)
    assert (found["plugins.first"].line, found["plugins.first"].column) == (33, 38)
    assert [n for n, i in found.items() if i.is_type_only] == ["typing_only"]
    assert [n for n, i in found.items() if i.is_optional] == [
        "ujson", "json", "maybe", "tomllib", "plugins.first", "numpy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import x\nexcept (ImportError, OSError):\n    pass\n",
        "try:\n    import x\nexcept:\n    pass\n",
        "try:\n    import a\nexcept Exception as e:\n    import x\n",
        "try:\n    import a\nexcept builtins.ImportError:\n    pass\nelse:\n    import x\n",
        "for n in names:\n    import x\n",
        "match n:\n    case 1:\n        import x\n",
        "if a:\n    pass\nelif b:\n    import x\n",
    ],
)
def test_what_may_fail_or_never_run_is_optional_in_python(text: str) -> None:
    assert named("a.py", text)["x"].is_optional


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import x\nexcept ValueError:\n    pass\n",
        "try:\n    pass\nfinally:\n    import x\n",
        "with open(f):\n    import x\n",
        "class A:\n    import x\n",
        "async def f():\n    import x\n",
    ],
)
def test_what_runs_is_not(text: str) -> None:
    assert not named("a.py", text)["x"].is_optional


def test_javascript() -> None:
    found = named("a.tsx", JAVASCRIPT)
    assert list(found) == [
        "./a.js", "all", "./effect", "./types", "./only-types", "./named-type", "legacy", "./b",
        "../c", "./u", "fs", "in-template", "divisor", "./lazy", "./static", "top", "optional",
        "spread", "./data.json", "./after",
    ]  # fmt: skip
    assert found["./a.js"] == Import("./a.js", 4, 48, names=("default", "named", "Kind"))
    assert found["all"].names == found["../c"].names == ("*",)
    assert (found["./effect"].line, found["./effect"].column) == (6, 8)
    assert [n for n, i in found.items() if i.is_type_only] == ["./types", "./only-types", "./u"]
    assert found["./named-type"].names == ("default",)
    assert [n for n, i in found.items() if i.is_optional] == [
        "in-template", "divisor", "./lazy", "top", "optional", "spread",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import{a}from'./a';import b from'b';", ["./a", "b"]),
        ("export{a as default}from'./a'", ["./a"]),
        ("import a, * as b from 'c'", ["c"]),
        ("import { default as a, 'odd name' as b } from 'c'", ["c"]),
        ("import { from } from 'from'", ["from"]),
        ("import from from 'x'", ["x"]),
        ("import a from '.'\nimport b from 'x'", [".", "x"]),
        ("import a\n  from\n  'x'", ["x"]),
        ("export { a }\nimport b from 'x'", ["x"]),
        ("export const from = 'x'", []),
        ("import.meta.url; import /* c */ ('x')", ["x"]),
        ("function f() { return /'/.test(a) ? require('x') : 1 }", ["x"]),
        ("a = b;\n/re'/g.test(a); require('x')", ["x"]),
        ("`${`${require('x')}`}` + require('y')", ["x", "y"]),
        ("const a = {}; a / 2; require('x') / 2", ["x"]),
        ("const a = <A b={'/'}>it's\n <B /> {require('x')}</A>", ["x"]),
        ("// '\nrequire('x')", ["x"]),
        ("'\\'' + require('x')", ["x"]),
        ("require('a\\u{62}c')", []),  # nobody writes a module's name so
        ("declare module 'm' { import a from 'x'; }", ["x"]),
        ("type T = import('./t').T", ["./t"]),
        ("import 'unterminated", []),
        ("import {a, b", []),
        ("class A { #x = require('x') }", ["x"]),
        ("@decorated() class A {}\nimport 'x'", ["x"]),
        ("$require('no'); require$('no'); _import('no')", []),
    ],
)  # fmt: skip
def test_javascript_as_it_is_written(text: str, expected: list[str]) -> None:
    assert written("a.tsx", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'import(/* webpackChunkName: "x" */ "./x");',
        'require(\n  // why\n  "./x"\n);',
        'exports.b = 1, exports.a = require("./x");',
        'const a = require("./x") as any;',
        'const a = require("./x")!;',
        'const a = require("./x") satisfies A;',
    ],
)
def test_a_call_that_runs_takes_no_names(text: str) -> None:
    (found,) = imports_of("a.ts", text.encode())
    assert (found.written, found.names, found.is_optional) == ("./x", (), False)


def test_a_file_of_one_line() -> None:
    found = imports_of("a.js", b'require("a");' * 3_000 + 'é;import "b"'.encode())
    assert len(found) == 3_001
    assert {i.line for i in found} == {1}
    assert [i.column for i in found[:-1]] == [9 + 13 * n for n in range(3_000)]
    assert found[-1].column == 13 * 3_000 + len("é;import ") + 1


def test_go() -> None:
    found = named("a.go", GO)
    assert list(found) == ["fmt", "os", "example.com/mod/pkg", "strings", "embed", "two", "C"]
    assert found["example.com/mod/pkg"] == Import("example.com/mod/pkg", 7, 8, names=("alias",))
    assert found["strings"].names == (".",)
    assert (found["fmt"].line, found["fmt"].column) == (4, 8)


def test_without_their_grammars_imports_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "is_installed", lambda _grammar: False)
    assert written("a.ts", JAVASCRIPT) == written("a.go", GO) == []
    assert [language_of(path) for path in ("a.ts", "a.go", "a.py")] == [None, None, "python"]
    assert [unread(path) is None for path in ("a.ts", "a.go", "a.py")] == [False, False, True]
    before = {"tests": Results({"a": "passed"})}
    assert "what uses a.ts is not known" in unchecked(before, ["tests"], ["a.ts"], [])
    assert unchecked(before, ["tests"], ["a.py"], []) == ""


def test_what_is_of_no_known_language_or_no_text_imports_nothing() -> None:
    assert imports_of("a.rs", b"use std::fs;") == ()
    assert imports_of("a.py", b"import os\n\xff") == ()
    assert imports_of("a.py", b"import os\ndef f(:\n") == ()
    assert language_of("README.md") is None


@given(st.binary(max_size=300), st.sampled_from(["a.py", "a.ts", "a.jsx", "a.go"]))
def test_any_bytes_give_imports_inside_the_text(content: bytes, path: str) -> None:
    for found in imports_of(path, content):
        assert found.line >= 1
        assert found.column >= 1


_WORDS = st.sampled_from(
    ["import", "export", "from", "require", "(", ")", "{", "}", "'", '"', "`", "${", "/", "*", "//",
     "/*", "\\", "\n", " ", "x", "'x'", ",", "=", ".", "<", ">", "type", "as", "[", "]"]
)  # fmt: skip


@given(st.lists(_WORDS, max_size=40).map("".join))
def test_what_looks_like_javascript_gives_what_stands_there(text: str) -> None:
    lines = text.split("\n")
    for found in imports_of("a.js", text.encode()):
        rest = lines[found.line - 1][found.column - 1 :]
        assert "\\" in text or rest[1:].startswith(found.module.split("\n")[0])


@pytest.mark.parametrize("depth", [2_000, 200_000])
def test_deep_python_ends_well(depth: int) -> None:
    imports_of("a.py", b"(" * depth)
    imports_of("a.py", ("if a:\n    pass\n" + "elif a:\n    pass\n" * depth).encode())


@given(st.text(alphabet='{}[],:"\\/* \n1a', max_size=60))
def test_comments_become_blanks_and_nothing_moves(text: str) -> None:
    plain = data_parsers.plain_json(text)
    assert len(plain) == len(text)
    assert plain.count("\n") == text.count("\n")
    assert all(a in {b, " "} for a, b in zip(plain, text, strict=True))


def test_comments_in_strings_stay() -> None:
    text = '{"a": "//no", /* yes ,} */ "b": ["/*", ], // ]\n}'
    assert data_parsers.plain_json(text) == '{"a": "//no",              "b": ["/*"  ]      \n}'
