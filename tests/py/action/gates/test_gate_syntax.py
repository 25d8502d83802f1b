"""The syntax check: every language that it knows, by tool and by grammar, at the exact place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates import syntax_check, toolchain, tree_sitter_syntax
from loki.action.gates.gate import ADVISORY, BLOCKING, Violation
from loki.action.gates.gate_config import GateSetting
from loki.action.gates.gate_subject import Subject
from support.toolchain import need, need_node_modules


def subject(root: Path, files: dict[str, str | bytes | None], seconds: float = 30.0) -> Subject:
    tree = Tree.scan(root)
    change = Change.write(files).based_on(tree)
    return Subject(
        change, root, tree, GateSetting.model_validate({"timeout": f"{seconds * 1000:g}ms"})
    )


def check(root: Path, files: dict[str, str | bytes | None]) -> list[Violation]:
    return syntax_check.syntax_check(subject(root, files))


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any of the languages' own tools."""
    monkeypatch.setattr(toolchain, "is_there", lambda _command, _root: False)


@pytest.fixture
def no_grammars(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installation without the extra."""

    def missing(package: str, function: str) -> None:
        raise tree_sitter_syntax.NoGrammar(package)

    tree_sitter_syntax._parser.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(tree_sitter_syntax, "_parser", missing)
        yield


GRAMMAR_CASES = [
    ("a.js", "let a = 1;\nlet b = (;\n", (2, 7), "syntax error: unexpected '= ('"),
    ("a.js", "function f( {\n  return 1\n}\n", (2, 10), "syntax error: unexpected '1'"),
    ("a.jsx", "const é = <p>{(</p>;\n", None, "syntax error"),
    ("a.ts", "interface A { x: string\nlet y: = (1\n", None, "syntax error"),
    ("a.ts", "const x: number = (1;\n", (1, 21), "syntax error: expected ')'"),
    ("a.tsx", "const x = <A><B>{</A>;\n", None, "syntax error"),
    ("a.go", "package main\n\nfunc main() {\n\tx := \n}\n", None, "syntax error"),
    ("a.rs", "fn main() {\n    let x = ;\n}\n", None, "syntax error"),
    ("a.rs", "fn main() {\n    foo(1;\n}\n", (2, 10), "syntax error: expected ')'"),
]


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize(("path", "text", "place", "message"), GRAMMAR_CASES)
def test_by_grammar(
    project: Path, path: str, text: str, place: tuple[int, int] | None, message: str
) -> None:
    (violation,) = check(project, {path: text})
    assert (violation.gate, violation.severity, violation.file) == ("syntax_check", BLOCKING, path)
    assert violation.description.startswith(message)
    if place:
        assert (violation.line, violation.column) == place


RIGHT = {
    "a.js": "#!/usr/bin/env node\nimport a from './a.js' with { type: 'json' };\nexport default class { #x = a?.b ?? 1 }\n",
    "b.js": "if (x) { return }\nwith (a) b;\n",
    "c.js": "export const A = () => <p className='x'>it's</p>;\n",
    "a.jsx": "const A = () => <><B {...p}/></>;\n",
    "a.mjs": "const x = await import('y');\n",
    "a.cjs": "module.exports = require('x');\n",
    "a.ts": "const x = <T,>(y: T) => y satisfies unknown;\nenum A { B }\nabstract class C<T> { declare x: T; constructor(private y = 1) {} }\n",
    "b.ts": "const y = <string>x;\nimport type { A } from './a';\nexport * as ns from './b';\n@dec() class D { accessor z = 1 }\n",
    "a.tsx": "const f = <T,>(p: {x: T}) => <A<T> x={p.x} />;\n",
    "a.d.ts": "declare module 'x' { export = y; }\ndeclare global { var z: number }\n",
    "a.go": "package main\n\nfunc F[T any](x T) (y T, err error) { for range 10 { }; return }\n",
    "a.rs": "#![allow(x)]\npub(crate) async fn f<'a, const N: usize>(x: &'a [u8; N]) -> impl Fn() + '_ { let Some(y) = z else { return }; }\n",
    "a.jsonc": '{"a": [1,], // x\n}',
    ".vscode/settings.json": "// x\n{}",
    "tsconfig.build.json": '{"extends": "./x", /* y */}',
    "a.toml": "a = 1979-05-27\n",
    "a.yaml": "a: &b !x {c: *b}\n",
}  # fmt: skip


@pytest.mark.parametrize("path", RIGHT)
def test_what_is_right_passes(project: Path, path: str) -> None:
    assert check(project, {path: RIGHT[path]}) == []


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize("path", [path for path in RIGHT if path != "b.js"])
def test_what_is_right_passes_without_tools(project: Path, path: str) -> None:
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


def test_a_configuration_is_of_the_language_that_its_ending_says() -> None:
    names = [".eslintrc", ".eslintrc.json", ".eslintrc.cjs", ".eslintrc.yml", ".babelrc.js"]
    said = [syntax_check.language_of(name) for name in names]
    expected = ["JSON with comments"] * 2 + ["JavaScript", "YAML", "JavaScript"]
    assert [language.name for language in said if language] == expected


@pytest.mark.usefixtures("no_grammars")
@pytest.mark.parametrize("path", ["a.jsx", "a.ts", "a.tsx", "a.mts"])
def test_the_engine_does_not_judge_what_it_cannot_read(project: Path, path: str) -> None:
    judged = subject(project, {path: "const a: A = <A>b;\n"})
    assert syntax_check.syntax_check(judged) == []
    (warning,) = judged.warnings
    assert "is not checked" in warning


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


@pytest.mark.usefixtures("no_tools", "no_grammars")
def test_without_any_judge_the_warning_says_what_to_install(project: Path) -> None:
    judged = subject(project, {"a.ts": "let = ;", "b.ts": "let = ;", "c.rs": "fn"})
    assert syntax_check.syntax_check(judged) == []
    assert [w.split(":")[1].split()[0] for w in judged.warnings] == ["TypeScript", "Rust"]
    assert all("pip install 'loki-core[gates]'" in w for w in judged.warnings)


def test_flow_is_only_pointed_out(project: Path) -> None:
    flow = "/* @flow */\nfunction f(x: ?number): %checks { return (x: any); }\n"
    assert [v.severity for v in check(project, {"a.js": flow})] == [ADVISORY]


def test_a_tool_that_takes_too_long_is_ended_and_the_grammar_decides(project: Path) -> None:
    need("node")
    judged = subject(project, {"a.js": "let a = (;\n"}, seconds=0.0001)
    (violation,) = syntax_check.syntax_check(judged)
    assert violation.severity == BLOCKING
    assert violation.description.startswith("syntax error")


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


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("chart/values.yaml", "a: {{ .Values.a }}\n  b\n"),
        ("x.json", '{"a": {% if b %}1{% endif %}}'),
    ],
)
def test_templates_are_only_pointed_out(project: Path, path: str, text: str) -> None:
    assert [v.severity for v in check(project, {path: text})] == [ADVISORY]


def test_expressions_of_ci_are_no_template(project: Path) -> None:
    (violation,) = check(project, {".github/workflows/a.yml": "a: ${{ b }}\n c: d\n"})
    assert violation.severity == BLOCKING


def test_toml_says_where(project: Path) -> None:
    (violation,) = check(project, {"a.toml": "a = 1\nb = [1,\n"})
    assert violation.line is None  # the parser says "at end of document"
    (violation,) = check(project, {"a.toml": "a = 1\nb = ]\n"})
    assert (violation.line, violation.column) == (2, 5)


_PATHS = ["a.js", "a.ts", "a.tsx", "a.go", "a.rs", "a.json", "a.jsonc", "a.toml", "a.yml", "a.py"]


@pytest.mark.usefixtures("no_tools")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(st.sampled_from(_PATHS), st.binary(max_size=200))
def test_any_bytes_are_judged(project: Path, path: str, content: bytes) -> None:
    lines = content.count(b"\n") + 1
    for violation in check(project, {path: content}):
        assert violation.line is None or 1 <= violation.line <= lines + 1


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize("path", ["a.js", "a.ts", "a.go", "a.rs"])
@pytest.mark.parametrize("text", ["(" * 100_000, "<a" * 50_000, "`${" * 30_000, "\0" * 1000])
def test_hostile_text_ends(project: Path, path: str, text: str) -> None:
    assert len(check(project, {path: text})) <= 1


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


def test_a_grammar_that_lags_only_points_out(project: Path) -> None:
    found = check(project, {"a.ts": "export interface Ref<in out A> { a: A }\n"})
    assert [v.severity for v in found] == [ADVISORY]
