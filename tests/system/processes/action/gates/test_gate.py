"""Gates: proposals are judged by their content before anything is written: with processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates.gate import ADVISORY, BLOCKING, Validation, validate
from loki.recognition.pattern import PatternSet


def judge(project: Path, files: dict[str, str | bytes | None]) -> Validation:
    tree = Tree.scan(project)
    return validate(Change.write(files).based_on(tree), project, tree)


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("a.py", "def f(:\n    pass\n", (1, 7)),
        ("a.py", "x = 1\n  y = 2\n", (2, 3)),
        ("a.json", '{"a": 1,}', (1, 9)),
        ("a.toml", "a = \n", None),
        ("a.yml", "a: [1\nb: 2\n", (2, 1)),
        ("a.yaml", "\ta: 1\n", None),
    ],
)
def test_what_does_not_parse_is_blocking(
    project: Path, name: str, content: str, where: tuple[int, int] | None
) -> None:
    (violation,) = judge(project, {name: content}).violations
    assert (violation.gate, violation.severity, violation.file) == ("syntax_check", BLOCKING, name)
    if where is not None:
        assert violation.line == where[0]


@pytest.mark.parametrize("content", ["[" * 100_000, "{" * 100_000, "a: [\0b"])
@pytest.mark.parametrize("name", ["a.py", "a.json", "a.yml", "a.toml"])
def test_hostile_content_is_refused_and_never_crashes(
    project: Path, name: str, content: str
) -> None:
    assert judge(project, {name: content}).violations


def test_a_file_that_never_parsed_is_only_pointed_out(project: Path) -> None:
    (project / "template.py").write_text("import {{ module }}\n")
    validation = judge(project, {"template.py": "import {{ package }}\n"})
    assert validation.passed
    assert [v.severity for v in validation.violations] == [ADVISORY]


def test_the_failure_of_a_validation_names_the_first_and_lists_all(project: Path) -> None:
    failure = judge(project, {"a.py": "def f(:\n", "b.py": "x = (\n"}).failure(PatternSet.default())
    assert (failure.path, failure.line) == ("a.py", 1)
    assert failure.match is not None
    assert failure.match.pattern == "syntax-error"
    assert "b.py" in failure.excerpt
