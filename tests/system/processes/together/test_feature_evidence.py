"""A feature counts as done where something was red before it and is green with it; else a person looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loki
from loki import Workspace
from loki.testing import ScriptedAgent
from support.project import CHECK, QUICK, RIGHT, make_project
from support.rust import use_rust
from support.toolchain import need

SUB = f"{RIGHT}\n\ndef sub(a, b):\n    return a - b\n"
TEST = "from calc import sub\n\n\ndef test_sub():\n    assert sub(5, 3) == 2\n"
JS = """\
import test from "node:test";
import assert from "node:assert/strict";
import {{ {name} }} from "../calc.js";
test("{name}", () => assert.equal({name}(2, 3), {result}));
"""
IDLE = "def test_sub():\n    assert True\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Its checks pass; there is no `sub` in it."""
    folder = make_project(tmp_path / "calc", git=True)
    (folder / "calc.py").write_text(RIGHT)
    return folder


def run(project: Path, *answers: Any, **options: Any) -> loki.Outcome:
    given = {"checks": [CHECK], "kind": "feature", "path": str(project), **options}
    return loki.run("add sub", agent=ScriptedAgent(answers), **given)


def test_a_new_test_that_fails_without_the_change_shows_it(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    outcome = run(project, {"calc.py": SUB, "tests/test_sub.py": TEST})
    assert (outcome.status, outcome.attempts) == ("success", 1), outcome.reason
    (attempt,) = Workspace(project).history(outcome.task_id).attempts()
    said = [check.output for check in attempt.checks if check.name == "feature_evidence"]
    assert said == ["tests.test_sub.test_sub is new, and fails without the change"]


NODE = {
    "package.json": '{"type": "module", "scripts": {"test": "node --test"}}',
    "calc.js": "export const add = (a, b) => a + b;\n",
    "test/add.test.js": JS.format(name="add", result=5),
}
RUST = """\
pub fn add(a: i32, b: i32) -> i32 {
    a + b
}
{sub}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(2, 3), 5);
    }
{test}}
"""


def rust(sub: str = "", test: str = "") -> str:
    return RUST.replace("{sub}", sub).replace("{test}", test)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize("command", ["npm test", "node --test"])
def test_a_new_file_of_tests_of_node(tmp_path: Path, command: str) -> None:
    need("node", "npm")
    write(tmp_path, NODE)
    sub = f"{NODE['calc.js']}export const sub = (a, b) => a - b;\n"
    change = {"calc.js": sub, "test/sub.test.js": JS.format(name="sub", result=-1)}
    assert run(tmp_path, change, checks=[command]).status == "success"


@pytest.mark.parametrize(("test", "status"), [("sub(3, 2)", "success"), ("1", "escalated")])
def test_tests_in_the_file_that_they_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, status: str
) -> None:
    need("cargo")
    use_rust(monkeypatch, tmp_path / "target")
    write(
        tmp_path, {"Cargo.toml": '[package]\nname = "c"\nversion = "0.1.0"\n', "src/lib.rs": rust()}
    )
    sub = "pub fn sub(a: i32, b: i32) -> i32 {\n    a - b\n}\n"
    new = f"\n    #[test]\n    fn subs() {{\n        assert_eq!({test}, 1);\n    }}\n"
    assert run(tmp_path, {"src/lib.rs": rust(sub, new)}, checks=["cargo test"]).status == status


@pytest.mark.parametrize(
    "change",
    [
        {"calc.py": SUB},
        {"calc.py": SUB, "tests/test_sub.py": IDLE},
        {"tests/test_sub.py": IDLE},
        {
            "calc.py": SUB,
            "tests/test_sub.py": "def test_sub():\n    import os\n    assert os.environ['HOME']\n",
        },
    ],
)
def test_else_a_person_looks(project: Path, change: dict[str, str]) -> None:
    outcome = run(project, change)
    assert (outcome.status, outcome.trigger) == ("escalated", "approval")
    assert outcome.awaiting == ("feature_evidence",)
    assert "nothing shows that the feature is there" in outcome.reason
    workspace = Workspace(project)
    with workspace.resume(outcome.task_id) as task:
        assert task.run(ScriptedAgent([])).status == "escalated", "who goes on has not approved it"
    workspace.approve(outcome.task_id, "feature_evidence", by="ann")
    with workspace.resume(outcome.task_id) as task:
        assert task.run(ScriptedAgent([])).status == "success"


def test_a_check_that_failed_before_shows_it(project: Path) -> None:
    check = f"{QUICK} sub"
    (project / "check.py").write_text("import calc\n\nassert calc.sub(5, 3) == 2\n")
    assert run(project, {"calc.py": SUB}, checks=[check]).status == "success"


def test_what_an_attempt_broke_by_itself_does_not(project: Path) -> None:
    broken = RIGHT.replace("+", "*")
    outcome = run(project, {"calc.py": broken}, {"calc.py": SUB})
    assert (outcome.attempts, outcome.status) == (2, "escalated")


def test_it_is_known_after_a_restart(project: Path) -> None:
    (project / "check.py").write_text("import calc\n\nassert calc.sub(5, 3) == 2\n")
    first = run(project, {"calc.py": f"{SUB}\n1 / 0\n"}, KeyboardInterrupt(), checks=[QUICK])
    assert first.status == "interrupted"
    assert run(project, {"calc.py": SUB}, checks=[QUICK]).status == "success"
    again = run(project, {"calc.py": f"{SUB}# more\n"}, checks=[QUICK])
    assert again.status in {"success", "escalated"}


def test_a_reviewer_or_a_person_who_is_asked_anyway_is_enough(project: Path) -> None:
    outcome = run(project, {"calc.py": SUB}, checks=[CHECK, "approval: it reads well"])
    assert outcome.awaiting == ("it reads well",)


def test_a_project_may_do_without(project: Path) -> None:
    (project / ".loki").mkdir()
    (project / ".loki/config.toml").write_text("[review]\nfeature = false\n")
    assert run(project, {"calc.py": SUB}).status == "success"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"failed": 3, "tests": 3}'])
def test_a_damaged_record_shows_nothing(project: Path, text: str) -> None:
    first = run(project, {"calc.py": SUB, "tests/test_sub.py": IDLE}, max_attempts=1)
    (project / f".loki/tasks/{first.task_id}/before.json").write_text(text)
    with Workspace(project).resume(first.task_id) as task:
        assert task.run(ScriptedAgent([])).status == "escalated"
