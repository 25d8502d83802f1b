"""The syntax check: every language that it knows, by tool and by grammar, at the exact place: with real tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.gates import syntax_check
from loki.action.gates.gate import ADVISORY, BLOCKING
from support.gate_syntax import RIGHT, check, subject
from support.toolchain import need, need_node_modules


@pytest.fixture
def no_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra."""
    monkeypatch.setattr(syntax_check, "parse", lambda _grammar, _content: None)


@pytest.mark.parametrize("path", RIGHT)
def test_what_is_right_passes(project: Path, path: str) -> None:
    assert check(project, {path: RIGHT[path]}) == []


@pytest.mark.usefixtures("no_grammars")
@pytest.mark.parametrize("path", ["a.js", "b.js", "a.mjs", "a.cjs"])
def test_what_is_right_passes_without_grammars(project: Path, path: str) -> None:
    need("node")
    assert check(project, {path: RIGHT[path]}) == []


_CUT = "export function f(a) {\n  return [a;\n}\n"


@pytest.mark.usefixtures("no_grammars")
@pytest.mark.parametrize(
    ("path", "text", "place", "message"),
    [
        ("a.mjs", "let é = ;\n", (1, 9), "SyntaxError: Unexpected token ';'"),
        ("a.js", "let a = 1;\nlet a = 2;\n", (2, 5), "SyntaxError: Identifier 'a' has"),
        # Of the two ways to read it, the one that comes farther is meant.
        ("a.js", "import a from './a.js';\n\nlet b = {;\n", (3, 10), "SyntaxError: Unexpected"),
        ("a.js", "with (process) {\n  exit(;\n}\n", (2, 8), "SyntaxError: Unexpected"),
        ("a.cjs", "const a = require('./a');\nif (a < 1 {\n}\n", (2, 11), "SyntaxError"),
        ("a.js", _CUT, (2, 12), "SyntaxError: Unexpected token ';'"),
    ],
)
def test_the_engines_word_is_enough_without_the_grammar(
    project: Path, path: str, text: str, place: tuple[int, int], message: str
) -> None:
    need("node")
    (violation,) = check(project, {path: text})
    assert violation.severity == BLOCKING
    assert (violation.line, violation.column) == place
    assert violation.description.startswith(message)


@pytest.mark.usefixtures("no_grammars")
@pytest.mark.parametrize(
    ("manifest", "path", "text"),
    [
        ("{}", "a.js", "export const A = () => <p class='a'>{1}</p>;\n"),
        ("{}", "a.js", "export const A = () => (\n  <>\n    :) (\n  </>\n);\n"),
        ("{}", "a.js", "@store\nexport class A { @observed b = 1 }\n"),
        ("{}", "a.js", "/* @flow */\nfunction f(x: ?number) { return x; }\n"),
        ('{"devDependencies": {"flow-bin": "1"}}', "src/a.js", "import type { A } from './b';\n"),
        ('{"dependencies": {"react-native": "1"}}', "a.js", "type A = { b: number };\n"),
    ],
)
def test_without_the_grammar_a_dialect_is_only_pointed_out(
    project: Path, manifest: str, path: str, text: str
) -> None:
    need("node")
    (project / "package.json").write_text(manifest)
    assert [v.severity for v in check(project, {path: text})] == [ADVISORY]


def test_a_rule_beyond_grammar_is_blocking(project: Path) -> None:
    need("node")
    (violation,) = check(project, {"a.js": "let a = 1;\nlet a = 2;\n"})
    assert violation.severity == BLOCKING
    assert (violation.line, violation.column) == (2, 5)


def test_gofmt_says_where(project: Path) -> None:
    need("gofmt")
    (violation,) = check(project, {"a.go": "package main\n\nfunc main() {\n\tx := \n}\n"})
    assert (violation.line, violation.column) == (5, 1)
    assert "expected operand" in violation.description


def test_flow_is_only_pointed_out(project: Path) -> None:
    flow = "/* @flow */\nfunction f(x: ?number): %checks { return (x: any); }\n"
    assert [v.severity for v in check(project, {"a.js": flow})] == [ADVISORY]


def test_the_projects_python_has_the_last_word(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = project / ".venv" / "bin"
    newer.mkdir(parents=True)
    (project / ".venv" / "pyvenv.cfg").touch()
    (newer / "python3").write_text("#!/bin/sh\nexit 0\n")
    (newer / "python3").chmod(0o755)
    assert check(project, {"a.py": "def f(:\n"}) == []
    (newer / "python3").write_text("#!/bin/sh\nexit 1\n")
    (violation,) = check(project, {"a.py": "def f(:\n"})
    assert (violation.line, violation.column) == (1, 7)


@pytest.fixture
def with_typescript(project: Path) -> Path:
    """A project that has its compiler installed."""
    (project / "node_modules").symlink_to(need_node_modules("typescript"))
    return project


@pytest.mark.parametrize(
    ("path", "text", "place", "message"),
    [
        ("a.ts", "let x: = 1;\n", (1, 8), "Type expected"),
        ("a.ts", "class A {\n  f( {}\n}\n", (3, 1), "expected"),
        ("a.tsx", "const é = <A><B></A>;\n", (1, 15), "no corresponding closing tag"),
        ("a.mts", "export const a = ;", (1, 18), "Expression expected"),
    ],
)
def test_the_projects_compiler_says_where(
    with_typescript: Path, path: str, text: str, place: tuple[int, int], message: str
) -> None:
    (violation,) = check(with_typescript, {path: text})
    assert violation.severity == BLOCKING
    assert (violation.line, violation.column) == place
    assert message in violation.description


@pytest.mark.parametrize(
    "text",
    [
        "export interface Ref<in out A> { a: A }\n",
        "export type * from './a';\n",
        "let a: number = 'types are not looked at';\nimport './gone';\n",
        "abstract class A { abstract accessor x: number; using = 1 }\n",
    ],
)
def test_the_compiler_is_believed_where_the_grammar_lags(with_typescript: Path, text: str) -> None:
    assert check(with_typescript, {"a.ts": text}) == []


def test_a_tool_that_takes_too_long_is_ended_and_the_grammar_decides(project: Path) -> None:
    need("node")
    judged = subject(project, {"a.js": "let a = (;\n"}, seconds=0.0001)
    (violation,) = syntax_check.syntax_check(judged)
    assert violation.severity == BLOCKING
    assert violation.description.startswith("syntax error")
