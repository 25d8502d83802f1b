"""Self-review: it says what agents do wrong, and nothing about good code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates.added_lines import added_lines
from loki.action.gates.gate import BLOCKING, Violation, validate
from loki.action.gates.self_review import MAX_VIOLATIONS, knowledge, self_review
from loki.recognition.pattern import PatternSet

CASES = Path(__file__).parent / "reviewed"


@dataclass(frozen=True)
class Case:
    """A change, and what is to be said of it: nothing where it names no concern."""

    name: str
    after: dict[str, str | None]
    before: dict[str, str] = field(default_factory=dict)
    scope: tuple[str, ...] = ()
    concern: str = ""
    blocking: bool = False


def cases(kind: str) -> list[Any]:
    found = []
    for path in sorted(CASES.glob(f"{kind}-*.yml")):
        for said in yaml.safe_load(path.read_text("utf-8")):
            said["after"] = {p: t and whole(t) for p, t in said["after"].items()}
            said["scope"] = tuple(said.get("scope", ()))
            found.append(pytest.param(Case(**said), id=f"{path.stem}: {said['name']}"))
    return found


def whole(text: str) -> str:
    """The key that a `~` divides, so that no scanner takes the cases for leaks."""
    return text.replace("~", "")


def review(project: Path, case: Case) -> list[Violation]:
    for path, text in case.before.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    tree = Tree.scan(project)
    return self_review(Change.write(case.after).based_on(tree), tree, case.scope)


@pytest.mark.parametrize("case", cases("bad"))
def test_what_agents_do_wrong_is_said(project: Path, case: Case) -> None:
    title = knowledge().concerns[case.concern].title
    said = [v for v in review(project, case) if v.description.startswith(title)]
    assert said
    assert all(v.file in case.after and v.suggested_fix for v in said)
    assert any(v.severity == BLOCKING for v in said) or not case.blocking


@pytest.mark.parametrize("case", cases("innocent"))
def test_nothing_is_said_of_good_code(project: Path, case: Case) -> None:
    assert review(project, case) == []


def test_it_is_one_of_the_gates(project: Path) -> None:
    tree = Tree.scan(project)
    content = "def total(items):\n    # ... existing code ...\n    return sum(items)\n"
    validation = validate(Change.write({"shop/basket.py": content}), project, tree)
    assert not validation.passed
    assert [v.gate for v in validation.blocking] == ["self_review"]
    failure = validation.failure(PatternSet.default())
    assert (failure.path, failure.line) == ("shop/basket.py", 2)


SCRAPS = st.sampled_from(
    [
        *"\"'`/\\#{}()[]<>=:;,\n\t $*!@-",
        *(
            "def f():\n",
            "pass\n",
            ") {\n",
            "<<<<<<< a\n",
            "=======\n",
        ),
        *(
            ">>>>>>> b\n",
            "exec(`rm -rf ~",
            "throw new Error('not implemented')",
            "raise NotImplementedError\n",
        ),
        *(
            'r#"',
            "'''",
            '"""',
            "/*",
            "//",
            "<!--",
            "${",
            "password = 'Zx9-",
            "://a:b1c2d3e4@h",
            "\0",
        ),
        *(
            "#[cfg(test)]",
            "fn x() {",
            "-----BEGIN PRIVATE KEY-----",
            "TODO: implement",
        ),
    ]
)
NAMES = [
    "a.py",
    "a.ts",
    "a.go",
    "a.rs",
    "a.yml",
    "a.html",
    "a.css",
    "a.sh",
    "a.java",
    "a.json",
    "a",
]


@given(
    before=st.lists(SCRAPS | st.text(max_size=5)),
    after=st.lists(SCRAPS | st.text(max_size=5)),
    tail=st.binary(max_size=20),
    name=st.sampled_from(NAMES),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_bytes_are_read(
    project: Path, before: list[str], after: list[str], tail: bytes, name: str
) -> None:
    (project / name).write_bytes("".join(before).encode("utf-8", "surrogatepass"))
    content = "".join(after).encode("utf-8", "surrogatepass") + tail
    tree = Tree.scan(project)
    change = Change.write({name: content, "b/" + name: content}).based_on(tree)
    for violation in self_review(change, tree, ["b"]):
        assert violation.file in change.paths
        assert violation.line is None or 0 < violation.line <= content.count(b"\n") + 1


def test_a_larger_file_is_generated_and_not_looked_at(project: Path) -> None:
    content = "pytest || true\n" * (1_000_000 // 15)
    tree = Tree.scan(project)
    assert self_review(Change.write({"a.sh": content}), tree) == []


def test_many_violations_are_cut_short(project: Path) -> None:
    content = "".join(f"pytest tests/{n} || true\n" for n in range(200))
    tree = Tree.scan(project)
    found = self_review(Change.write({"a.sh": content}), tree)
    assert len(found) == MAX_VIOLATIONS + 1
    assert found[-1].description == f"and {200 - MAX_VIOLATIONS} concerns more"


def test_no_secret_is_repeated(project: Path) -> None:
    secret = whole("ghp_~9aK2mQ7xW4eRt8yUi3oPb6nLc5vZd1sFg0hJ")
    tree = Tree.scan(project)
    (found,) = self_review(Change.write({"a.py": f"TOKEN = '{secret}'\n"}), tree)
    assert (found.line, found.column) == (1, 9)
    assert secret not in str(found)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("", "a\nb\n", [1, 2]),
        ("a\nb\nc\n", "a\nx\nb\nc\n", [2]),
        ("a\nb\n", "b\na\n", []),
        ("if x:\n    a\n", "a\n", []),
        ("a\n", "a\na\n", [2]),
        ("a\nb\n", "a\n", []),
    ],
)
def test_lines_that_a_change_adds(before: str, after: str, lines: list[int]) -> None:
    assert sorted(added_lines(before, after)) == lines
