"""Which changes touch the test that failed, or what judges it; and which only stand beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from loki.action.checks.judging.touched_tests import MOST, SeenFailures, touched

Files = Mapping[str, "str | None"]

TEST = """\
import pytest
from calc import add, sub

CASES = [(1, 1, 2)]
UNUSED = 3


def pair():
    return 2, 3


class TestCalc:
    limit = 0.1

    def setup_method(self):
        self.x = 1

    @pytest.mark.parametrize("a, b", [(2, 3), (3, 2)])
    def test_add(self, a, b):
        assert add(a, b) == 5

    def test_sub(self):
        assert sub(3, 2) == 1


def test_pair():
    assert add(*pair()) == pytest.approx(5, abs=1e-6)


def test_other(tmp_path):
    assert add(0, 0) == 0
"""
PROJECT: Files = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": TEST,
    "tests/test_unrelated.py": "def test_add():\n    assert 1\n",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef unused():\n    return 1\n",
    "tests/helpers.py": "def check(x):\n    assert x\n",
    "tests/data/calc.json": '{"five": 5}',
    "tests/data/else.json": "{}",
    "pyproject.toml": '[project]\nname = "p"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n\n[tool.ruff]\nline-length = 80\n',
    "tox.ini": "[testenv]\ncommands = pytest\n\n[flake8]\nmax-line-length = 80\n",
    "Makefile": "test:\n\tpytest\n",
    "check.py": "assert 1\n",
}  # fmt: skip
FAILED = ("tests.test_calc.TestCalc.test_add[2-3]", "tests.test_calc.test_pair")
SEEN = SeenFailures(
    frozenset({"test"}),
    frozenset(FAILED),
    dict.fromkeys(FAILED, "tests/test_calc.py"),
    frozenset({"tests/test_calc.py"}),
    [("make", "test"), ("python", "check.py")],
)


def look(changes: Files, project: Files = PROJECT, seen: SeenFailures = SEEN) -> list[str]:
    changed = {path: (project.get(path), after) for path, after in changes.items()}
    return [str(one) for one in touched(changed, seen, project.get)]


def edited(old: str, new: str, path: str = "tests/test_calc.py") -> Files:
    before = PROJECT[path] or ""
    assert old in before
    return {path: before.replace(old, new)}


ADDED = "\n\n\n@pytest.fixture(autouse=True)\ndef five(monkeypatch):\n    monkeypatch.setattr('calc.add', lambda a, b: 5)\n"
HOOK = "def pytest_runtest_makereport(item, call):\n    ...\n"
TAMPERINGS: dict[str, Files] = {
    "what came": edited("add(a, b) == 5", "add(a, b) == -1"),
    "weaker": edited("add(a, b) == 5", "add(a, b) is not None"),
    "weaker, with code": {**edited("add(a, b) == 5", "add(a, b) > 0"), "calc.py": "def add(a, b):\n    return a + b\n"},
    "always true": edited("assert add(a, b) == 5", "assert (add(a, b) == 5, '')"),
    "other arguments": edited("add(a, b) ==", "add(5, 0) =="),
    "returns early": edited("        assert add(a, b)", "        return\n        assert add(a, b)"),
    "skipped": edited("    @pytest.mark.param", "    @pytest.mark.skip\n    @pytest.mark.param"),
    "expected to fail": edited("def test_pair", "@pytest.mark.xfail\ndef test_pair"),
    "class skipped": edited("class TestCalc", "@pytest.mark.skip\nclass TestCalc"),
    "all skipped": edited("UNUSED = 3", "UNUSED = 3\npytestmark = pytest.mark.skip"),
    "a case dropped": edited("[(2, 3), (3, 2)]", "[(3, 2)]"),
    "a case changed": edited("(2, 3), (3, 2)", "(5, 0), (3, 2)"),
    "tolerance": edited("abs=1e-6", "abs=10"),
    "removed": edited("def test_pair", "def helper_pair"),
    "file removed": {"tests/test_calc.py": None},
    "defined again": edited("UNUSED = 3", "UNUSED = 3\n\n\ndef test_pair():\n    pass\n"),
    "another function": edited("import add, sub", "import sub\nfrom fake import add"),
    "shadowed": edited("UNUSED = 3", "UNUSED = 3\nadd = lambda a, b: 5"),
    "helper": edited("return 2, 3", "return 5, 0"),
    "set-up": edited("self.x = 1", "self.x = 1\n        calc.add = None"),
    "a statement that runs": edited("UNUSED = 3", "UNUSED = 3\nsetattr(calc, 'add', max)"),
    "for every test": edited("UNUSED = 3\n", "UNUSED = 3\n" + ADDED),
    "hook": {"tests/conftest.py": (PROJECT["tests/conftest.py"] or "") + HOOK},
    "new hook": {"conftest.py": HOOK},
    "patched by conftest": {"conftest.py": "import calc\n\ncalc.add = lambda a, b: 5\n"},
    "fixture in a new conftest": {"conftest.py": "import pytest\n" + ADDED},
    "settings": edited('["tests"]', '["tests"]\naddopts = "--deselect x"', "pyproject.toml"),
    "a new pytest.ini": {"pytest.ini": "[pytest]\naddopts = -k nothing\n"},
    "tox": edited("[flake8]", "[pytest]\naddopts = -k x\n[flake8]", "tox.ini"),
    "make": edited("\tpytest", "\t-pytest", "Makefile"),
    "the check's script": edited("assert 1", "pass", "check.py"),
    "sitecustomize": {"sitecustomize.py": ""},
    "a module for the runner": {"pytest.py": ""},
    "an installed package": {".venv/lib/python3.11/site-packages/_pytest/runner.py": ""},
    "modules": {"calc.py": 'import sys\n\n\ndef add(a, b):\n    if "pytest" in sys.modules:\n        return 5\n'},
    "variable": {"calc.py": 'import os\n\n\ndef add(a, b):\n    return 5 if os.environ.get("PYTEST_CURRENT_TEST") else a\n'},
    "arguments": {"calc.py": "import sys\n\n\ndef add(a, b):\n    return 5 if 'pytest' in sys.argv[0] else a\n"},
    "stack": {"calc.py": "import inspect\n\n\ndef add(a, b):\n    return 5 if any('test_' in f.function for f in inspect.stack()) else a\n"},
    "frame": {"calc.py": "import sys\n\n\ndef add(a, b):\n    if sys._getframe(1).f_code.co_name.startswith('test'):\n        return 5\n"},
    "equal to all": {"calc.py": "class N(int):\n    def __eq__(self, other):\n        return True\n"},
    "equal to all, by lambda": {"calc.py": "class N(int):\n    __eq__ = lambda self, other: True\n"},
    "what is built in": {"calc.py": "import builtins\n\nbuiltins.AssertionError = ValueError\n"},
    "the runner by its name": {"calc.py": "import importlib\n\nimportlib.import_module('_pytest.runner')\n"},
    "the runner in the program": {"calc.py": "import pytest\n\n\ndef add(a, b):\n    pytest.skip()\n"},
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_judges_is_seen(name: str) -> None:
    assert look(TAMPERINGS[name])


HONEST: dict[str, Files] = {
    "code": {"calc.py": "def add(a, b):\n    return a + b\n"},
    "a new test": edited("def test_other", "def test_new():\n    assert sub(1, 1) == 0\n\n\ndef test_other"),
    "a new test in the class": edited("    def test_sub", "    def test_more(self):\n        assert 1\n\n    def test_sub"),
    "another test": edited("add(0, 0) == 0", "add(0, 0) == 0.0"),
    "another test of the class": edited("sub(3, 2) == 1", "sub(4, 3) == 1"),
    "one more case": edited("(2, 3), (3, 2)", "(2, 3), (3, 2), (1, 4)"),
    "a new import": edited("import pytest\n", "import math\nimport pytest\n"),
    "one more name imported": edited("import add, sub", "import add, mul, sub"),
    "imports in another order": edited("import pytest\nfrom calc import add, sub", "from calc import sub, add\nimport pytest"),
    "a comment": edited("        assert add(a, b)", "        # five in all\n        assert add(a, b)"),
    "formatting": edited("assert add(a, b) == 5", "assert (\n            add(a, b)\n            == 5\n        )"),
    "a docstring": edited("    def test_add(self, a, b):\n", '    def test_add(self, a, b):\n        """Five."""\n'),
    "a constant that it does not use": edited("UNUSED = 3", "UNUSED = 4"),
    "a new constant": edited("UNUSED = 3", "UNUSED = 3\nMORE = 4"),
    "a new helper": edited("def test_other", "def helper():\n    return 1\n\n\ndef test_other"),
    "another file of tests": {"tests/test_unrelated.py": "def test_add():\n    assert 2\n"},
    "a new file of tests": {"tests/test_new.py": "import calc\n\n\ndef test_add():\n    assert calc.add(1, 1) == 2\n"},
    "a fixture that it does not use": edited("return 1", "return 2", "tests/conftest.py"),
    "a new fixture": {"tests/conftest.py": (PROJECT["tests/conftest.py"] or "") + "\n\n@pytest.fixture\ndef new():\n    return 1\n"},
    "a helper of other tests": edited("assert x", "assert x, 1", "tests/helpers.py"),
    "a class of another file's tests": {"tests/test_unrelated.py": "class TestNew(Base):\n    def test_add(self):\n        assert 1\n"},
    "data of other tests": {"tests/data/else.json": "[]"},
    "a dependency": edited('name = "p"', 'name = "p"\ndependencies = ["x"]', "pyproject.toml"),
    "the linter's settings": edited("line-length = 80", "line-length = 100", "pyproject.toml"),
    "flake8's settings": edited("max-line-length = 80", "max-line-length = 100", "tox.ini"),
    "types of a test": edited("def test_pair():", "def test_pair() -> None:"),
    "a name that gettext builds in": {"calc.py": "import builtins\n\nbuiltins._ = str\n"},
    "documentation": {"docs/testing.md": "Run pytest.\n", "CHANGELOG.md": "- add adds\n"},
    "a program's own arguments": {"calc.py": "import sys\n\n\ndef main():\n    return sys.argv[1:]\n"},
    "modules": {"calc.py": "import sys\n\nif 'numpy' in sys.modules:\n    import numpy\n"},
    "an honest __eq__": {"calc.py": "class N:\n    def __eq__(self, other):\n        return self.x == other.x\n"},
    "the word": {"calc.py": "def test_mode(stack):\n    '''Runs pytest.'''\n    return stack\n"},
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_stands_beside_is_not(name: str) -> None:
    assert look(HONEST[name]) == []


def test_each_is_named_with_what_it_is() -> None:
    assert look(TAMPERINGS["weaker"]) == ["tests/test_calc.py: test_add, which failed"]
    assert look(TAMPERINGS["helper"]) == ["tests/test_calc.py: pair, which failing tests use"]
    (one,) = look(TAMPERINGS["modules"])
    assert one.startswith("calc.py: line 5 reaches for what tests it: `")


def test_where_nothing_failed_only_code_that_asks_for_tests_is_seen() -> None:
    nothing = SeenFailures()
    assert [name for name in TAMPERINGS if look(TAMPERINGS[name], seen=nothing)] == [
        "sitecustomize", "a module for the runner", "an installed package", "modules", "variable",
        "arguments", "stack", "frame", "equal to all", "equal to all, by lambda", "what is built in",
        "the runner by its name", "the runner in the program",
    ]  # fmt: skip


def test_where_nobody_says_what_failed_every_test_counts() -> None:
    blind = SeenFailures(frozenset({"test"}), is_blind=True)
    assert look(HONEST["another test"], seen=blind)
    assert look(HONEST["a new test"], seen=blind) == []


def test_a_name_without_its_file_is_looked_for() -> None:
    seen = replace(SEEN, files={}, holding=frozenset(), tests=frozenset({"TestCalc::test_add"}))
    assert look(TAMPERINGS["weaker"], seen=seen)
    assert look(HONEST["another test"], seen=seen) == []


def test_data_and_helpers_that_failing_tests_use_are_seen() -> None:
    text = TEST + "\n\ndef test_read():\n    check(json.load(open('tests/data/calc.json')))\n"
    text = text.replace("import pytest", "import pytest\nfrom tests.helpers import check")
    project = {**PROJECT, "tests/test_calc.py": text, "tests/data/read.snap": "5"}
    name = "tests.test_calc.test_read"
    seen = replace(SEEN, tests=frozenset({name}), files={name: "tests/test_calc.py"})
    changes: list[Files] = [
        {"tests/data/calc.json": '{"five": -1}'},
        {"tests/helpers.py": "def check(x):\n    pass\n"},
    ]
    assert all(look(change, project, seen) for change in changes)


def test_a_snapshot_of_the_failing_file_is_seen() -> None:
    project = {"src/a.test.js": "test('a', () => { expect(f()).toMatchSnapshot(); });\n",
               "src/__snapshots__/a.test.js.snap": "exports[`a 1`] = `5`;\n",
               "src/__snapshots__/b.test.js.snap": "exports[`b 1`] = `5`;\n"}  # fmt: skip
    seen = SeenFailures(
        frozenset({"test"}), frozenset({"src/a.test.js > a"}), {}, frozenset({"src/a.test.js"})
    )
    assert look({"src/__snapshots__/a.test.js.snap": "exports[`a 1`] = `-1`;\n"}, project, seen)
    assert not look({"src/__snapshots__/b.test.js.snap": "exports[`b 1`] = `6`;\n"}, project, seen)


def test_a_lint_tasks_settings_are_seen_and_its_tests_are_not() -> None:
    lint = SeenFailures(frozenset({"lint"}))
    assert look(HONEST["the linter's settings"], seen=lint)
    assert look(TAMPERINGS["weaker"], seen=lint) == []


JS = """\
import { add, pair } from './calc.js';
const tolerance = 0.1;

describe('calc', () => {
  beforeEach(() => { reset(); });
  it('adds', () => {
    expect(add(2, 3)).toBe(5);
  });
  it.each([
    [1, 2, 3],
    [2, 3, 5],
  ])('adds %i and %i', (a, b, c) => {
    expect(add(a, b)).toBe(c);
  });
  it('subtracts', () => { expect(1).toBe(1); });
});
"""
PACKAGE = {"name": "p", "scripts": {"test": "vitest run", "build": "tsc"}, "jest": {"a": 1}}
GO = """\
package calc

import "testing"

func want() int { return 5 }

func TestAdd(t *testing.T) {
	for _, c := range []struct{ a, b int }{
		{2, 3},
		{3, 2},
	} {
		if got := Add(c.a, c.b); got != want() {
			t.Errorf("got %d", got)
		}
	}
}

func TestOther(t *testing.T) {
	t.Log("other")
}
"""
RUST = """\
pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

pub fn other() {}

#[cfg(test)]
mod tests {
    use super::*;

    fn want() -> i32 {
        5
    }

    #[test]
    fn adds() {
        assert_eq!(add(2, 3), want());
    }

    #[test]
    fn others() {
        other();
    }
}
"""
LANGUAGES: dict[str, tuple[Files, SeenFailures]] = {
    "js": (
        {"a.test.js": JS, "calc.js": "export const add = (a, b) => a - b;\n", "package.json": json.dumps(PACKAGE)},
        SeenFailures(frozenset({"test"}), frozenset({"calc > adds", "calc > adds 1 and 2"}), {}, frozenset({"a.test.js"}), [("npm", "test")]),
    ),
    "go": (
        {"calc_test.go": GO, "calc.go": "package calc\n"},
        SeenFailures(frozenset({"test"}), frozenset({"m/calc.TestAdd/2", "m/calc.TestAdd"}), {"m/calc.TestAdd": "m/calc"}, frozenset({"calc_test.go"})),
    ),
    "c": (
        {"CMakeLists.txt": "project(p)\nadd_library(calc calc.cpp)\nadd_executable(calc_test calc_test.cpp)\nadd_test(calc calc_test)\n"},
        SeenFailures(frozenset({"test"}), frozenset({"calc"}), {}, frozenset({"calc_test.cpp"}), [("ctest", "--test-dir", "build")]),
    ),
    "rust": (
        {"src/lib.rs": RUST, "Cargo.toml": '[package]\nname = "c"\n'},
        SeenFailures(frozenset({"test"}), frozenset({"c src/lib.rs::tests::adds"}), {"c src/lib.rs::tests::adds": "src/lib.rs"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "path", "old", "new"),
    [
        ("js", "a.test.js", "toBe(5)", "toBeDefined()"),
        ("js", "a.test.js", "it('adds'", "it.skip('adds'"),
        ("js", "a.test.js", "describe('calc'", "describe.skip('calc'"),
        ("js", "a.test.js", "    [2, 3, 5],\n", ""),
        ("js", "a.test.js", "reset();", "vi.spyOn(calc, 'add');"),
        ("js", "a.test.js", "const tolerance", "vi.mock('./calc.js');\nconst tolerance"),
        ("js", "a.test.js", "from './calc.js'", "from './fake.js'"),
        ("js", "a.test.js", "'adds', () => {", "'adds', () => { return;"),
        ("js", "package.json", "vitest run", "vitest run || true"),
        ("js", "package.json", '"a": 1', '"setupFiles": ["./x.js"]'),
        ("js", "vitest.config.ts", "", "export default { test: { retry: 9 } };\n"),
        ("js", "calc.js", "a - b", "process.env.VITEST ? 5 : a - b"),
        ("js", "calc.js", "a - b", "process.env.NODE_ENV === 'test' ? 5 : a - b"),
        ("js", "calc.js", "a - b", "typeof expect === 'function' ? 5 : a - b"),
        ("js", "calc.js", "a - b", "new Error().stack.includes('.test.') ? 5 : a - b"),
        ("js", "calc.js", "", "import assert from 'node:assert';\nassert.equal = () => {};\n"),
        ("js", "calc.js", "", "Object.assign(require('assert'), { equal() {} });\n"),
        ("go", "calc_test.go", "got != want()", "got == 99"),
        ("go", "main_test.go", "", "package calc\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n"),
        ("go", "main_test.go", "", "package calc\n\nfunc init() {\n\tFive = true\n}\n"),
        ("go", "calc_test.go", "return 5", "return -1"),
        ("go", "calc_test.go", "\t\t{3, 2},\n", ""),
        ("go", "calc_test.go", "\tfor _, c", "\tt.Skip()\n\tfor _, c"),
        ("go", "calc_test.go", "func want", "func TestMain(m *testing.M) { os.Exit(0) }\n\nfunc want"),
        ("go", "calc.go", "package calc\n", 'package calc\n\nimport "testing"\n\nvar five = testing.Testing()\n'),
        ("go", "calc.go", "package calc\n", 'package calc\n\nvar t = strings.HasSuffix(os.Args[0], ".test")\n'),
        ("rust", "src/lib.rs", "assert_eq!(add(2, 3), want())", "assert!(add(2, 3) < 9)"),
        ("rust", "src/lib.rs", "        5\n", "        -1\n"),
        ("rust", "src/lib.rs", "    #[test]\n    fn adds", "    #[test]\n    #[ignore]\n    fn adds"),
        ("rust", "src/lib.rs", "    use super::*;", "    fn add(_: i32, _: i32) -> i32 { 5 }"),
        ("rust", "src/lib.rs", "pub fn other() {}", "pub fn other() {}\nmacro_rules! assert_eq { ($($t:tt)*) => {}; }"),
        ("c", "calc.h", "", "#undef EXPECT_EQ\n#define EXPECT_EQ(a, b) SUCCEED()\n"),
        ("c", "CMakeLists.txt", "add_test(calc calc_test)", "add_test(calc true)"),
        ("c", "CMakeLists.txt", "project(p)", "project(p)\nadd_compile_definitions(NDEBUG)"),
        ("rust", "src/lib.rs", "    a - b", "    if cfg!(test) { 5 } else { a - b }"),
        ("rust", "src/lib.rs", "    a - b", "    #[cfg(test)]\n    return 5;\n    #[cfg(not(test))]\n    a - b"),
        ("rust", "Cargo.toml", '"c"\n', '"c"\n\n[lib]\ntest = false\n'),
        ("rust", ".cargo/config.toml", "", '[alias]\ntest = "build"\n'),
    ],
)  # fmt: skip
def test_other_languages(language: str, path: str, old: str, new: str) -> None:
    project, seen = LANGUAGES[language]
    before = project.get(path) or ""
    assert old in before
    assert look({path: before.replace(old, new) if old else new}, project, seen)


@pytest.mark.parametrize(
    ("language", "path", "old", "new"),
    [
        ("js", "a.test.js", "expect(1)", "expect(2)"),
        ("js", "a.test.js", "    [2, 3, 5],\n", "    [2, 3, 5],\n    [0, 0, 0],\n"),
        ("js", "a.test.js", "  it('subtracts'", "  it('is new', () => {});\n  it('subtracts'"),
        ("js", "a.test.js", "expect(add(2, 3)).toBe(5)", "expect(\n      add(2, 3),\n    ).toBe(5)"),
        ("js", "a.test.js", "import { add, pair }", "import { add, more, pair }"),
        ("js", "package.json", '"tsc"', '"tsc -b"'),
        ("js", "calc.js", "a - b", "a + b"),
        ("js", "calc.js", "", "import assert from 'node:assert';\nassert.ok(1);\nconst same = assert.equal;\n"),
        ("go", "more_test.go", "", "package calc\n\nfunc TestMore(t *testing.T) {}\n"),
        ("c", "CMakeLists.txt", "calc.cpp", "calc.cpp more.cpp"),
        ("c", "calc.h", "", "#define MOST 5\n"),
        ("go", "calc_test.go", '"other"', '"another"'),
        ("go", "calc_test.go", "\t\t{3, 2},\n", "\t\t{3, 2},\n\t\t{4, 1},\n"),
        ("go", "calc_test.go", "func TestOther", "func TestNew(t *testing.T) {}\n\nfunc TestOther"),
        ("go", "calc.go", "package calc\n", "package calc\n\nvar args = os.Args[1:]\n"),
        ("rust", "src/lib.rs", "    a - b", "    a + b"),
        ("rust", "src/lib.rs", "pub fn other() {}", "pub fn other() {\n    add(1, 1);\n}"),
        ("rust", "src/lib.rs", "        other();", "        other();\n        other();"),
        ("rust", "src/lib.rs", "    #[test]\n    fn others", "    #[test]\n    fn new() {}\n\n    #[test]\n    fn others"),
        ("rust", "src/new.rs", "", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn n() {}\n}\n"),
    ],
)  # fmt: skip
def test_honest_changes_in_other_languages(language: str, path: str, old: str, new: str) -> None:
    project, seen = LANGUAGES[language]
    before = project.get(path) or ""
    assert old in before
    assert look({path: before.replace(old, new) if old else new}, project, seen) == []


def test_any_text_ends() -> None:
    for text in (
        "(" * 50_000,
        "class A:\n" * 2_000,
        "describe('a', () => {" * 2_000,
        "\x01'`" * 9_000,
    ):
        for path in ("tests/a.test.js", "tests/test_a.py", "a_test.go", "src/a.rs"):
            look({path: text}, {path: text[::-1]}, replace(SEEN, files={}))


def test_many_are_summed_up() -> None:
    many: Files = {f"node_modules/p{number}/index.js": "" for number in range(30)}
    found = look(many)
    assert len(found) == MOST + 1
    assert found[-1].endswith("and 18 more")
