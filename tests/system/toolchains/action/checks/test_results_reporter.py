"""Results per test from real runners, asked for in the way that their tool files say: with real tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from loki.action.checks.check import Check, CheckResult
from loki.action.checks.check_runner import CheckRunner
from loki.recognition.pattern import PatternSet
from support.rust import use_rust
from support.toolchain import need, need_node_modules

GO = """\
package calc

import "testing"

func TestGood(t *testing.T) { t.Log("seen by nobody") }

func TestBad(t *testing.T) { t.Error("not right") }

func TestLater(t *testing.T) { t.Skip() }
"""

RUST = """\
#[test]
fn good() {}
#[test]
fn bad() { assert_eq!(1, 2); }
#[test]
#[ignore]
fn later() {}
"""

VITEST = """\
import { expect, it } from "vitest";
it("is good", () => {});
it("is bad", () => expect(1).toBe(2));
it.skip("comes later", () => {});
"""

NODE = """\
const test = require("node:test");
test("good", () => {});
test("bad", () => { throw new Error("not right"); });
test("later", { skip: true }, () => {});
"""


def write(project: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        target = project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)


def run(project: Path, command: str, **more: object) -> CheckResult:
    runner = CheckRunner(project, PatternSet.default(), **more)  # type: ignore[arg-type]
    return runner.run_one(Check.of(command, timeout="5m"))


def test_go(project: Path) -> None:
    need("go")
    write(project, {"go.mod": "module example.com/shop\n\ngo 1.21\n", "calc/calc_test.go": GO})
    result = run(project, "go test ./...")
    assert result.tests == {
        "example.com/shop/calc.TestGood": "passed",
        "example.com/shop/calc.TestBad": "failed",
        "example.com/shop/calc.TestLater": "skipped",
    }
    assert "--- FAIL: TestBad" in result.output
    assert "seen by nobody" not in result.output
    assert '"Action"' not in result.output
    assert result.failure is not None
    assert (result.failure.line, result.failure.tests) == (7, ("TestBad",))


def test_cargo(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("cargo")
    use_rust(monkeypatch, tmp_path / "target")
    manifest = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'
    write(project, {"Cargo.toml": manifest, "src/lib.rs": "", "tests/calc.rs": RUST})
    told = {
        "calc tests/calc.rs::good": "passed",
        "calc tests/calc.rs::bad": "failed",
        "calc tests/calc.rs::later": "skipped",
    }
    for command in ("cargo test", "cargo test -q", "cargo test -- --quiet"):
        assert run(project, command).tests == told


@pytest.mark.parametrize("command", ["npx vitest run", "npm test", "npm run outer"])
def test_vitest(project: Path, command: str) -> None:
    """Also behind scripts that run scripts; what it prints for people stays."""
    modules = need_node_modules("vitest")
    (project / "node_modules").symlink_to(modules)
    scripts = {"test": "vitest run", "outer": "npm run test -- --silent"}
    write(
        project,
        {
            "package.json": json.dumps({"type": "module", "scripts": scripts}),
            "calc.test.js": VITEST,
        },
    )
    result = run(project, command)
    assert result.tests == {
        "calc.test.js > is good": "passed",
        "calc.test.js > is bad": "failed",
        "calc.test.js > comes later": "skipped",
    }
    assert set(result.files.values()) == {"calc.test.js"}
    assert "expected 1 to be 2" in result.output
    assert "loki-results" not in result.output


def test_node(project: Path) -> None:
    need("node")
    write(project, {"calc.test.js": NODE})
    result = run(project, "node --test")
    if result.tests is None:
        pytest.skip("this node has no JUnit reporter")
    assert result.tests == {"test.good": "passed", "test.bad": "failed", "test.later": "skipped"}


def test_reports_that_a_check_writes_anyway(project: Path) -> None:
    """Only those of this run: an old report says nothing."""
    case = '<testsuite><testcase classname="{}" name="t"/></testsuite>'
    write(project, {"out/old.xml": case.format("old")})
    code = f"open('out/new.xml', 'w').write('''{case.format('new')}''')"
    check = Check((sys.executable, "-c", code))
    runner = CheckRunner(project, PatternSet.default(), reports=("out/*.xml",))
    assert runner.run_one(check).tests == {"new.t": "passed"}
    assert run(project, f"{sys.executable} -c pass", reports=("out/*.xml",)).tests is None


def test_a_tool_that_does_not_know_the_reporter_runs_as_it_is(project: Path) -> None:
    """Here it is a program of the project's own, of the runner's name."""
    script = '#!/bin/sh\necho run "$#" >> log\n[ $# -eq 1 ] || { echo unknown option; exit 2; }\n'
    write(project, {"jest": script})
    (project / "jest").chmod(0o755)
    runner = CheckRunner(project, PatternSet.default())
    check = Check(("PATH=.:/usr/bin:/bin", "jest", "x"), "test", "jest")
    assert runner.run_one(check).passed
    assert runner.run_one(check).passed
    # Asked once; from then on it runs as it is.
    assert (project / "log").read_text().split() == ["run", "3", "run", "1", "run", "1"]


def test_a_command_that_only_lacks_a_word_runs_once(project: Path) -> None:
    """Its program knows all the others: that it ends badly without results is its answer."""
    write(project, {"cargo": "#!/bin/sh\necho run >> log\necho 'error: no such crate'; exit 101\n"})
    (project / "cargo").chmod(0o755)
    check = Check(("PATH=.:/usr/bin:/bin", "cargo", "test", "-q"), "test", "cargo")
    assert not CheckRunner(project, PatternSet.default()).run_one(check).passed
    assert (project / "log").read_text() == "run\n"
