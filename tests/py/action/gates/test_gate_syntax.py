"""The syntax check: every language that it knows, by tool and by grammar, at the exact place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loki.action.gates import syntax_check
from loki.action.gates.gate import ADVISORY, BLOCKING
from support.gate_syntax import RIGHT, check, subject


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any of the languages' own tools."""
    monkeypatch.setattr(syntax_check, "find_program", lambda _name, _root: None)


@pytest.fixture
def no_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra."""
    monkeypatch.setattr(syntax_check, "parse", lambda _grammar, _content: None)


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


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize("path", [path for path in RIGHT if path != "b.js"])
def test_what_is_right_passes_without_tools(project: Path, path: str) -> None:
    assert check(project, {path: RIGHT[path]}) == []


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


@pytest.mark.usefixtures("no_tools", "no_grammars")
def test_without_any_judge_the_warning_says_what_to_install(project: Path) -> None:
    judged = subject(project, {"a.ts": "let = ;", "b.ts": "let = ;", "c.rs": "fn"})
    assert syntax_check.syntax_check(judged) == []
    assert [w.split(":")[1].split()[0] for w in judged.warnings] == ["TypeScript", "Rust"]
    assert all("pip install 'loki-core[gates]'" in w for w in judged.warnings)


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
@pytest.mark.parametrize("text", ["(" * 50_000, "<a" * 20_000, "`${" * 30_000, "\0" * 1000])
def test_hostile_text_ends(project: Path, path: str, text: str) -> None:
    assert len(check(project, {path: text})) <= 1


def test_a_grammar_that_lags_only_points_out(project: Path) -> None:
    found = check(project, {"a.ts": "export interface Ref<in out A> { a: A }\n"})
    assert [v.severity for v in found] == [ADVISORY]
