"""The regression check on real projects: what passed before a change still passes after it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loki
from loki.cli.app import app
from support.rust import use_rust
from support.toolchain import need, need_node_modules

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"

SHOP = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "cart.py": "def total(prices):\n    return sum(prices) + 1\n\n\ndef count(prices):\n    return len(prices)\n",
    "till.py": "from cart import count, total\n\n\ndef receipt(prices):\n    return f'{count(prices)} items'\n",
    "store.py": "import till\n\n\ndef sell(prices):\n    return till.receipt(prices)\n",
    "tests/test_cart.py": "from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    "tests/test_till.py": "from till import receipt\n\n\ndef test_receipt():\n"
    "    assert receipt([1, 2]) == '2 items'\n\n\ndef test_broken_before():\n    assert receipt([]) == 'none'\n",
    "tests/test_store.py": "from store import sell\n\n\ndef test_sell():\n    assert sell([1]) == '1 items'\n",
    "tests/test_other.py": "def test_other():\n    assert True\n",
}
"""``cart.total`` is wrong; a test of the till fails for another reason, and is nobody's task."""

RIGHT = SHOP["cart.py"].replace(" + 1", "")
BREAKS_COUNT = RIGHT.replace("len(prices)", "len(prices) - 1")


def write(root: Path, files: Mapping[str, str | None]) -> None:
    for path, content in files.items():
        target = root / path
        if content is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)


@pytest.fixture
def shop(project: Path) -> Path:
    write(project, SHOP)
    return project


def gates(root: Path, **setting: Any) -> None:
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in setting.items())
    text = f"version: 1\nextends: global\nregression_detection:\n{lines}"
    write(root, {".loki/verification-gates.yml": text})


def work(
    root: Path,
    changes: Sequence[Mapping[str, str | None]],
    checks: Sequence[str] = (f"{PYTEST} tests/test_cart.py",),
    **options: Any,
) -> tuple[loki.Outcome, list[str]]:
    """Propose changes one after the other; (the outcome, what the agent was told).

    Drift would send back what deletes a test before it could be seen to be gone.
    """
    told: list[str] = []
    config = root / ".loki" / "config.toml"
    if not config.exists():
        config.parent.mkdir(exist_ok=True)
        config.write_text("[drift]\ndetect = false\n")

    def agent(briefing: loki.Briefing) -> loki.Change:
        told.append(str(briefing))
        return loki.Change.write(changes[len(told) - 1])

    options = {"max_attempts": len(changes), "id": "t", **options}
    outcome = loki.run("mend the total", agent=agent, checks=checks, path=str(root), **options)
    return outcome, told


def attempts(root: Path) -> list[dict[str, Any]]:
    return [a.to_dict() for a in loki.Workspace(root).history("t").attempts()]


def test_a_test_of_a_dependent_that_breaks_is_a_regression(shop: Path) -> None:
    """The check of the task does not run it; the import graph finds it."""
    outcome, told = work(shop, [{"cart.py": BREAKS_COUNT}, {"cart.py": RIGHT}])
    assert (outcome.status, outcome.attempts) == ("success", 2)
    first, second = attempts(shop)
    assert (first["pattern_matched"], first["strategy_used"]) == (
        "regression-detected",
        "context_expand",
    )
    assert first["regression"] == {"ran": True, "skipped": False, "regressions": 1, "fixed": False}
    assert second["regression"] == {"ran": True, "skipped": False, "regressions": 0, "fixed": True}
    assert "| `tests/test_till.py` | 1/2 pass | 0/2 pass | 1 |" in told[1]
    assert "tests.test_till.test_receipt" in told[1]
    # The dependent between the change and the tests is shown.
    assert "def receipt(prices):" in told[1]
    assert "test_broken_before` - was passing" not in told[1]


def test_the_baseline_is_kept_for_people(shop: Path) -> None:
    work(shop, [{"cart.py": RIGHT}])
    page = (shop / ".loki" / "tasks" / "t" / "baseline-t.md").read_text()
    assert page.startswith("---\nentity_name: session.current.baseline.t\n")
    assert "category: regression-baseline" in page
    assert "| `tests/test_till.py` | 1/2 pass | 1 |" in page
    assert "`tests.test_till.test_broken_before`" in page
    assert "`store.py` imports `till.py` imports `cart.py`" in page


def test_a_swap_is_caught(shop: Path) -> None:
    """As many tests pass as before: another one."""
    swap = {
        "cart.py": RIGHT,
        "till.py": SHOP["till.py"].replace("f'{count(prices)} items'", "'none'"),
    }
    outcome, _ = work(shop, [swap, {**swap, "till.py": SHOP["till.py"]}])
    assert outcome.status == "success"
    first, _second = attempts(shop)
    assert first["pattern_matched"] == "regression-detected"
    assert first["failure"]["tests"] == [
        "tests.test_store.test_sell",
        "tests.test_till.test_receipt",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"tests/test_till.py": None},
        {
            "tests/test_till.py": SHOP["tests/test_till.py"]
            .replace("def test_receipt", "@pytest.mark.skip\ndef test_receipt")
            .replace("from till", "import pytest\n\nfrom till")
        },
        {"tests/test_till.py": "def test_broken_before():\n    pass\n"},
    ],
    ids=["deleted", "skipped", "renamed"],
)
def test_a_test_that_passed_may_not_vanish(shop: Path, change: dict[str, str | None]) -> None:
    outcome, told = work(
        shop, [{"cart.py": RIGHT, **change}, {"tests/test_till.py": SHOP["tests/test_till.py"]}]
    )
    assert outcome.status == "success"
    assert "tests.test_till.test_receipt" in told[1]
    assert attempts(shop)[0]["pattern_matched"] == "regression-detected"


def test_who_insists_on_deleting_a_test_is_stopped_all_the_same(shop: Path) -> None:
    """As projects are configured by default: drift sends it back once, then the checks decide."""
    write(shop, {".loki/config.toml": ""})
    deletes: dict[str, str | None] = {"cart.py": RIGHT, "tests/test_till.py": None}
    back = {"tests/test_till.py": SHOP["tests/test_till.py"]}
    outcome, _ = work(shop, [deletes, deletes, back])
    assert outcome.status == "success"
    assert [one["result"] for one in attempts(shop)] == ["drift", "failed", "success"]
    assert attempts(shop)[1]["pattern_matched"] == "regression-detected"


@pytest.mark.parametrize(("depth", "regressions"), [(1, 1), (2, 2), (3, 3)])
def test_the_depth_says_how_far_is_searched(shop: Path, depth: int, regressions: int) -> None:
    """till imports cart, and its test imports till; store imports till, and so on."""
    direct = "from cart import count\n\n\ndef test_count():\n    assert count([1]) == 1\n"
    write(shop, {"tests/test_count.py": direct})
    gates(shop, search_depth=depth)
    work(shop, [{"cart.py": BREAKS_COUNT}])
    assert attempts(shop)[0]["regression"]["regressions"] == regressions


def test_excluded_files_are_not_looked_at(shop: Path) -> None:
    gates(shop, exclude_patterns=["till.py", "**/test_till.py"])
    outcome, _ = work(shop, [{"cart.py": BREAKS_COUNT}])
    assert outcome.status == "success"


@pytest.mark.parametrize("complexity", ["low", "medium"])
def test_it_is_for_tasks_of_some_complexity(
    shop: Path, complexity: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "loki"):
        outcome, _ = work(shop, [{"cart.py": BREAKS_COUNT}], complexity=complexity)
    is_low = complexity == "low"
    assert outcome.status == ("success" if is_low else "failed")
    said = "skipped" if is_low else "failed"
    assert f"regression_check={said} complexity={complexity}" in caplog.text


def test_a_later_change_that_touches_more_has_its_baseline_too(shop: Path) -> None:
    """Taken on a copy of the starting tree: in the project the file is broken already."""
    write(
        shop,
        {
            "label.py": "def label():\n    return 'shop'\n",
            "tests/test_label.py": "from label import label\n\n\ndef test_label():\n"
            "    assert label() == 'shop'\n",
        },
    )
    wrong = SHOP["cart.py"].replace("+ 1", "+ 2")
    breaks = {"cart.py": RIGHT, "label.py": "def label():\n    return 'stop'\n"}
    mends = {"label.py": "def label():\n    return 'shop'  # as it was\n"}
    outcome, _ = work(shop, [{"cart.py": wrong}, breaks, mends])
    assert outcome.status == "success"
    found = [(a["result"], a["pattern_matched"]) for a in attempts(shop)]
    assert found[1] == ("failed", "regression-detected")
    assert attempts(shop)[1]["failure"]["tests"] == ["tests.test_label.test_label"]


def test_what_commands_and_callers_change_counts_as_well(shop: Path) -> None:
    """Nothing was validated, so the baseline is taken afterwards, on a copy."""
    workspace = loki.Workspace(shop)
    check = f"{PYTEST} tests/test_cart.py"
    with workspace.task("mend the total", checks=[check], max_attempts=1, id="t") as task:
        for attempt in task.attempts():
            write(shop, {"cart.py": BREAKS_COUNT})
            attempt.evaluate("edited by hand")
    assert task.outcome is not None
    assert task.outcome.status == "failed"
    assert attempts(shop)[0]["pattern_matched"] == "regression-detected"


def test_a_run_after_a_dead_letter_does_not_launder_a_regression(shop: Path) -> None:
    outcome, _ = work(shop, [{"cart.py": BREAKS_COUNT}])
    assert outcome.status == "failed"
    # Its check passes now: without the baseline there would be nothing to do.
    outcome, told = work(shop, [{"cart.py": RIGHT}])
    assert (outcome.status, outcome.attempts) == ("success", 1)
    assert "tests.test_till.test_receipt" in told[0]


def test_what_the_checks_cover_is_not_run_twice(shop: Path) -> None:
    write(
        shop,
        {
            "conftest.py": "import pathlib\n\n\ndef pytest_sessionstart(session):\n"
            "    with open(pathlib.Path(__file__).parent.parent / 'runs', 'a') as log:\n"
            "        log.write('x')\n",
            "tests/test_till.py": SHOP["tests/test_till.py"].partition("\n\n\ndef test_broken")[0]
            + "\n",
        },
    )
    outcome, _ = work(shop, [{"cart.py": RIGHT}], [PYTEST])
    assert outcome.status == "success"
    assert attempts(shop)[0]["regression"]["ran"]
    assert (shop.parent / "runs").read_text() == "xx"  # before the attempt, and after it


def test_a_flaky_test_is_no_regression(shop: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It passes, fails, and passes when it is run once more."""
    write(
        shop,
        {
            "tests/test_till.py": "import pathlib\n\nfrom till import receipt\n\n\n"
            "def test_receipt():\n"
            "    log = pathlib.Path(__file__).parents[2] / 'flaky'\n"
            "    with open(log, 'a') as file:\n        file.write('x')\n"
            "    assert receipt([1])\n"
            "    assert log.read_text() != 'xx'\n"
        },
    )
    with caplog.at_level("WARNING", "loki"):
        outcome, _ = work(shop, [{"cart.py": RIGHT}])
    assert outcome.status == "success"
    assert "flaky, so no regressions: tests.test_till.test_receipt" in caplog.text


# --- Go -----------------------------------------------------------------------------------------------

GO = {
    "go.mod": "module example.com/shop\n\ngo 1.21\n",
    "cart/cart.go": "package cart\n\nfunc Total(a, b int) int { return a - b }\n\nfunc Count(n int) int { return n }\n",
    "cart/cart_test.go": 'package cart\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {\n'
    '\tif Total(1, 2) != 3 {\n\t\tt.Error("wrong total")\n\t}\n}\n',
    "till/till.go": 'package till\n\nimport "example.com/shop/cart"\n\nfunc Items() int { return cart.Count(2) }\n',
    "till/till_test.go": 'package till\n\nimport "testing"\n\nfunc TestItems(t *testing.T) {\n'
    '\tif Items() != 2 {\n\t\tt.Error("wrong items")\n\t}\n}\n',
}
GO_RIGHT = GO["cart/cart.go"].replace("a - b", "a + b")
GO_BREAKS = GO_RIGHT.replace("return n ", "return n + 1 ")


def test_go_dependents(project: Path) -> None:
    need("go")
    write(project, GO)
    outcome, told = work(
        project, [{"cart/cart.go": GO_BREAKS}, {"cart/cart.go": GO_RIGHT}], ["go test ./cart"]
    )
    assert (outcome.status, outcome.attempts) == ("success", 2)
    first, _second = attempts(project)
    assert first["pattern_matched"] == "regression-detected"
    assert first["failure"]["tests"] == ["example.com/shop/till.TestItems"]
    assert "cart.Count(2)" in told[1]


@pytest.mark.parametrize(
    "test",
    [None, GO["till/till_test.go"].replace("{\n\tif", '{\n\tt.Skip("later")\n\tif')],
    ids=["deleted", "skipped"],
)
def test_go_tests_may_not_vanish(project: Path, test: str | None) -> None:
    need("go")
    write(project, GO)
    change = {"cart/cart.go": GO_BREAKS, "till/till_test.go": test}
    back = {"cart/cart.go": GO_RIGHT, "till/till_test.go": GO["till/till_test.go"]}
    outcome, _ = work(project, [change, back], ["go test ./cart"])
    assert outcome.status == "success"
    assert attempts(project)[0]["failure"]["tests"] == ["example.com/shop/till.TestItems"]


def test_a_go_test_that_was_failing_may_not_be_skipped(project: Path) -> None:
    need("go")
    write(project, GO)
    skips = GO["cart/cart_test.go"].replace("{\n\tif", "{\n\tt.Skip()\n\tif")
    outcome, _ = work(
        project,
        [{"cart/cart_test.go": skips}, {**GO, "cart/cart.go": GO_RIGHT}],
        ["go test ./..."],
        complexity="low",
    )
    assert outcome.status == "success"
    assert "was failing and is now skipped" in attempts(project)[0]["error"]


# --- JavaScript ---------------------------------------------------------------------------------------


def test_vitest_dependents(project: Path) -> None:
    """By way of a script, and on a copy that borrows the original's dependencies."""
    modules = need_node_modules("vitest")
    (project / "node_modules").symlink_to(modules)
    head = 'import { expect, it } from "vitest";\n'
    write(
        project,
        {
            "package.json": json.dumps({"type": "module", "scripts": {"test": "vitest run"}}),
            "cart.js": "export const total = (a, b) => a - b;\nexport const count = (n) => n;\n",
            "till.js": 'import { count } from "./cart";\nexport const items = () => count(2);\n',
            "cart.test.js": head
            + 'import { total } from "./cart";\nit("adds", () => expect(total(1, 2)).toBe(3));\n',
            "till.test.js": head
            + 'import { items } from "./till";\nit("counts", () => expect(items()).toBe(2));\n',
        },
    )
    right = "export const total = (a, b) => a + b;\nexport const count = (n) => n;\n"
    breaks = right.replace("=> n;", "=> n + 1;")
    wrong = right.replace("a + b", "a * b")
    outcome, _ = work(
        project,
        [{"cart.js": wrong}, {"cart.js": breaks}, {"cart.js": right}],
        ["npx vitest run cart.test.js"],
    )
    assert outcome.status == "success"
    second = attempts(project)[1]
    assert second["pattern_matched"] == "regression-detected"
    assert second["failure"]["tests"] == ["till.test.js > counts"]


MOCHA = {
    "package.json": '{"scripts": {"test": "mocha"}}',
    "lib/cart.js": "exports.total = (a, b) => a - b;\nexports.count = (n) => n;\n",
    "lib/till.js": "exports.items = () => require('./cart').count(2);\n",
    "test/cart.test.js": "const assert = require('assert'), { total } = require('../lib/cart');\n"
    "describe('cart', () => it('adds', () => assert.equal(total(1, 2), 3)));\n",
    "test/till.test.js": "const assert = require('assert'), { items } = require('../lib/till');\n"
    "describe('till', () => it('counts', () => assert.equal(items(), 2)));\n",
}


MOCHA_RIGHT = MOCHA["lib/cart.js"].replace("a - b", "a + b")


def test_mocha_dependents(project: Path) -> None:
    """It has no reporter that prints for people and writes a report: loki brings one."""
    (project / "node_modules").symlink_to(need_node_modules("mocha"))
    write(project, MOCHA)
    breaks = MOCHA_RIGHT.replace("=> n;", "=> n + 1;")
    changes = [{"lib/cart.js": breaks}, {"lib/cart.js": MOCHA_RIGHT}]
    outcome, told = work(project, changes, ["npx mocha test/cart.test.js"])
    assert (outcome.status, outcome.attempts) == ("success", 2)
    first = attempts(project)[0]
    assert first["pattern_matched"] == "regression-detected"
    assert first["failure"]["tests"] == ["test/till.test.js > till > counts"]
    assert "counts" in told[1]


@pytest.mark.parametrize("arguments", ["", " -- --reporter dot", " -- --parallel"])
def test_a_whole_run_of_mocha_by_way_of_a_script(project: Path, arguments: str) -> None:
    (project / "node_modules").symlink_to(need_node_modules("mocha"))
    write(project, MOCHA)
    outcome, _ = work(project, [{"lib/cart.js": MOCHA_RIGHT}], [f"npm test{arguments}"])
    assert outcome.status == "success"
    said = {"ran": True, "skipped": False, "regressions": 0, "fixed": False}
    assert attempts(project)[0]["regression"] == said


NODE = {
    "package.json": '{"scripts": {"test": "node --test"}}',
    "lib/cart.js": "exports.total = (a, b) => a - b;\nexports.count = (n) => n;\n",
    "lib/till.js": "exports.items = () => require('./cart').count(2);\n",
    "test/cart.test.js": "const test = require('node:test'), assert = require('node:assert');\n"
    "const { total } = require('../lib/cart');\ntest('adds', () => assert.equal(total(1, 2), 3));\n",
    "test/till.test.js": "const test = require('node:test'), assert = require('node:assert');\n"
    "const { items } = require('../lib/till');\ntest('counts', () => assert.equal(items(), 2));\n",
}
NODE_RIGHT = NODE["lib/cart.js"].replace("a - b", "a + b")
NODE_BREAKS = NODE_RIGHT.replace("=> n;", "=> n + 1;")


def test_node_dependents(project: Path) -> None:
    """The runner does not say in which file a test stands; the file is run by itself."""
    need("node")
    write(project, NODE)
    changes = [{"lib/cart.js": NODE_BREAKS}, {"lib/cart.js": NODE_RIGHT}]
    outcome, told = work(project, changes, ["node --test test/cart.test.js"])
    assert (outcome.status, outcome.attempts) == ("success", 2)
    assert attempts(project)[0]["pattern_matched"] == "regression-detected"
    assert "counts" in told[1]


def test_a_whole_run_of_node_is_not_repeated_for_dependents(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    need("node")
    write(project, NODE)
    with caplog.at_level("INFO", "loki"):
        outcome, _ = work(project, [{"lib/cart.js": NODE_RIGHT}], ["node --test"])
    assert outcome.status == "success"
    said = {"ran": True, "skipped": False, "regressions": 0, "fixed": False}
    assert attempts(project)[0]["regression"] == said
    assert "dependents: " not in caplog.text


SILENT = (
    "import sys, subprocess\nsys.exit(subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL))\n"
)
"""A program that starts another: what loki asks of the runner does not reach it."""


def _says_not_checked(
    project: Path, caplog: pytest.LogCaptureFixture, change: Mapping[str, str], check: str
) -> str:
    with caplog.at_level("INFO", "loki"):
        outcome, _ = work(project, [change], [check])
    assert outcome.status == "success"
    assert "can be broken" not in caplog.text
    said = str(attempts(project)[0]["regression"]["unchecked"])
    assert said.startswith("not checked")
    assert f"regression_check: {said}" in caplog.text
    shown = CliRunner().invoke(app, ["show", "t", "--project", str(project)]).output
    assert said in " ".join(shown.split())
    return said


def test_a_runner_that_tells_nothing_is_not_checked(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its dependent breaks, and nothing says that it cannot."""
    need("node")
    write(project, {**NODE, "package.json": "{}", "silent.py": SILENT})
    check = f"{sys.executable} silent.py node --test test/cart.test.js"
    said = _says_not_checked(project, caplog, {"lib/cart.js": NODE_BREAKS}, check)
    assert said == (
        "not checked: no results per test are known of test/cart.test.js, test/till.test.js"
    )


def test_a_script_that_tells_nothing_is_not_checked(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"add.sh": "echo $(($1 - $2))\n", "use.sh": "test $(sh add.sh 2 0) = 2\n"}
    write(project, files)
    check = "sh -c 'test $(sh add.sh 1 2) = 3'"
    said = _says_not_checked(project, caplog, {"add.sh": "echo 3\n"}, check)
    assert said == "not checked: no check told results per test, before the work and after it"


def test_rust_with_tests_picked_is_not_checked_beyond_them(
    project: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who uses the changed function is not known, and its test was not run."""
    use_rust(monkeypatch, project.parent / "target")
    write(project, RUST)
    change = {
        "src/lib.rs": RUST["src/lib.rs"].replace("a - b", "a + b").replace("{ n }", "{ n + 1 }")
    }
    said = _says_not_checked(project, caplog, change, "cargo test --offline adds")
    assert said == "not checked beyond the checks' own tests: what uses src/lib.rs is not known"


RUST = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn total(a: i32, b: i32) -> i32 { a - b }\npub fn count(n: i32) -> i32 { n }\n"
    "#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n"
    "    fn adds() { assert_eq!(total(1, 2), 3); }\n    #[test]\n"
    "    fn counts() { assert_eq!(count(2), 2); }\n}\n",
}


@pytest.mark.parametrize("quiet", ["", " -q"])
def test_a_run_of_cargo_is_checked_quiet_or_not(
    project: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, quiet: str
) -> None:
    """Each of its tests is known; what else uses the library is not."""
    use_rust(monkeypatch, project.parent / "target")
    write(project, RUST)
    change = {"src/lib.rs": RUST["src/lib.rs"].replace("a - b", "a + b")}
    said = _says_not_checked(project, caplog, change, f"cargo test --offline{quiet}")
    assert said == "not checked beyond the checks' own tests: what uses src/lib.rs is not known"


def test_node_by_a_script_is_checked(project: Path) -> None:
    need("node", "npm")
    write(project, NODE)
    work(project, [{"lib/cart.js": NODE_RIGHT}], ["npm test"])
    regression = attempts(project)[0]["regression"]
    assert (regression["ran"], regression.get("unchecked")) == (True, None)


def test_a_reporter_that_somebody_chose_stays(project: Path) -> None:
    need("node")
    write(project, NODE)
    outcome, _ = work(
        project,
        [{"lib/cart.js": NODE_RIGHT}],
        ["node --test --test-reporter=dot test/cart.test.js"],
    )
    assert outcome.status == "success"
