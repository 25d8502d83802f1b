"""Gates: proposals are judged by their content before anything is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates import gate
from loki.action.gates.gate import Subject, Validation, Violation, validate
from loki.action.gates.syntax_check import broken_files
from loki.recognition.pattern import PatternSet


def judge(project: Path, files: dict[str, str | bytes | None]) -> Validation:
    tree = Tree.scan(project)
    return validate(Change.write(files).based_on(tree), project, tree)


@pytest.mark.parametrize(("name", "blocks"), [("self_review", False), ("change_check", True)])
def test_a_broken_gate_does_not_end_the_run(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, blocks: bool
) -> None:
    """It is silent, as in any doubt; but what keeps a change inside of the project has to answer."""

    def broken(_subject: Subject) -> list[Violation]:
        raise RecursionError("maximum recursion depth exceeded")

    gates = gate._gates()
    monkeypatch.setattr(gate, "_gates", lambda: {**gates, name: broken})
    validation = judge(project, {"a.py": "x = 1\n"})
    assert validation.passed is not blocks
    said = [*validation.warnings, *(v.description for v in validation.violations)]
    assert "RecursionError: maximum recursion depth exceeded" in said[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", "x = '\\d'\n"),
        ("a.py", "\ufeffx = 1\n"),
        ("a.py", ""),
        ("a.json", "[1, 2]"),
        ("a.toml", 'a = "b"\n'),
        ("a.yml", "a: !custom [1, *b]\n".replace(", *b", "")),
        ("a.yml", "---\na: 1\n---\nb: 2\n"),
        ("tsconfig.json", "{ /* a comment */ }"),
        ("notes.md", "def f(:"),
        ("logo.png", b"\x89PNG\xff\xfe"),
    ],
)
def test_what_parses_or_is_none_of_ours_passes(
    project: Path, name: str, content: str | bytes
) -> None:
    validation = judge(project, {name: content})
    assert validation.passed
    assert validation.gates[:2] == ("change_check", "syntax_check")


@pytest.mark.parametrize(
    "path",
    ["../x.py", "/etc/passwd", ".git/config", ".loki/config.toml", "a/../../b.py", "link/x.py"],
)
def test_a_path_that_leads_out_is_refused_with_its_reason(project: Path, path: str) -> None:
    os.symlink("/tmp", project / "link")
    validation = judge(project, {path: "x = 1\n"})
    assert not validation.passed
    assert validation.gates == ("change_check",)
    failure = validation.failure(PatternSet.default())
    assert failure.message.startswith(f"{path}: ")
    assert failure.error_code == "change_check"


def test_a_file_that_changed_meanwhile_is_refused(project: Path) -> None:
    (project / "a.py").write_text("x = 1\n")
    tree = Tree.scan(project)
    (project / "a.py").write_text("x = 2\n")
    validation = validate(Change.write({"a.py": "x = 3\n"}).based_on(tree), project, tree)
    assert not validation.passed
    assert "changed" in validation.violations[0].description


def test_configs_that_a_command_wrote_are_parsed_too(project: Path) -> None:
    (project / "package.json").write_text("{")
    (project / "ok.toml").write_text("a = 1\n")
    assert not broken_files(project, ["package.json", "ok.toml"]).passed
    assert broken_files(project, ["ok.toml", "gone.json"]).passed


def test_what_a_gate_suggests_reaches_whoever_mends_it(project: Path) -> None:
    (project / "pkg").mkdir()
    (project / "pkg" / "__init__.py").touch()
    (project / "pkg" / "helper.py").touch()
    validation = judge(project, {"pkg/a.py": "from .helpr import x\n"})
    failure = validation.failure(PatternSet.default())
    assert failure.match is not None
    assert failure.match.pattern == "import-not-found"
    assert "did you mean pkg/helper.py?" in failure.excerpt
