"""Where a conftest.py cannot be imported pytest ends before it begins; loki says why all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.suite import Ran, Suite, outcomes

GREEN = "def test_fine(): pass\n"
MISSING = "import os\n\nimport nosuchthing\n"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path).write(test_x=GREEN)


def told(ran: Ran) -> list[str]:
    """The lines of loki's block, which stands above pytest's own message."""
    lines = ran.err.splitlines()
    first = next((n for n, line in enumerate(lines) if "= loki: " in line), len(lines))
    return lines[first:]


@pytest.mark.parametrize("ini", [True, False])
def test_a_missing_dependency_of_the_conftest(suite: Suite, ini: bool) -> None:
    """The same exit code and message as without loki, below what is missing, where, and what to do."""
    suite.put("pytest.ini", f"[pytest]\nloki = {str(ini).lower()}\n").write(conftest=MISSING)
    plain = suite.pytest("--no-loki")
    ran = suite.pytest(*(() if ini else ("--loki",)))
    assert ran.code == plain.code == 4
    assert ran.out == plain.out
    assert ran.err.endswith(plain.err)
    assert "loki: 1 failure, 1 cause: 1 new" in told(ran)[0]
    assert told(ran)[1] == " 1 new · import-not-found · 1 file · conftest.py:3"
    assert "ModuleNotFoundError: No module named 'nosuchthing'" in told(ran)[2]
    assert any("→ See whether nosuchthing is installed" in line for line in told(ran))
    assert outcomes(ran) == {"conftest.py": ("collect", "error")}
    assert (ran.run.exit_code, ran.run.interrupted, ran.run.counts) == (4, True, {"error": 1})
    assert not list((suite.folder / ".loki/state/test-runs").iterdir())


@pytest.mark.parametrize(
    "arguments", [("--no-loki",), (), ("--loki", "--help"), ("--loki", "--co")]
)
def test_says_nothing_where_nobody_asked(suite: Suite, arguments: tuple[str, ...]) -> None:
    suite.write(conftest=MISSING)
    ran = suite.pytest(*arguments)
    assert "loki: 1 failure" not in ran.err
    assert not (suite.folder / ".loki").exists()


def test_what_the_conftest_imports(suite: Suite) -> None:
    """The place is the import that failed, in the project's own code."""
    suite.write(shop__db="import json\nimport nosuchthing\n", conftest="from shop import db\n")
    assert "· shop/db.py:2" in told(suite.pytest("--loki"))[1]


def test_a_syntax_error_of_the_conftest(suite: Suite) -> None:
    suite.write(conftest="import os\ndef broken(:\n    pass\n")
    ran = suite.pytest("--loki")
    assert ran.code == 4
    assert told(ran)[1] == " 1 new · syntax-error · 1 file · conftest.py:2"


@pytest.mark.parametrize(
    ("plugin", "where"), [(None, "conftest.py:2"), ("import nosuchthing\n", "helpers/db.py:1")]
)
def test_a_plugin_that_the_conftest_names(suite: Suite, plugin: str | None, where: str) -> None:
    """One that is not there, and one that cannot be imported itself."""
    suite.write(conftest='# what we need\npytest_plugins = ["helpers.db"]\n', helpers__all="")
    if plugin:
        suite.write(helpers__db=plugin)
    plain, ran = suite.pytest(), suite.pytest("--loki")
    assert ran.code == plain.code != 0
    assert ran.err.endswith(plain.err)
    assert told(ran)[1] == f" 1 new · import-not-found · 1 file · {where}"
    assert ran.run.exit_code == plain.code


def test_a_plugin_that_refuses_is_not_lokis(suite: Suite) -> None:
    """What is no import that failed is left to who says it."""
    suite.write(
        helper="import pytest\ndef pytest_load_initial_conftests():\n"
        "    raise pytest.UsageError('set SHOP')\n"
    )
    plain = suite.pytest("-p", "helper")
    ran = suite.pytest("--loki", "-p", "helper")
    assert (ran.code, ran.out, ran.err) == (plain.code, plain.out, plain.err)


@pytest.mark.parametrize("words", ["pytest.UsageError('set SHOP')", "pytest.exit.Exception('no')"])
def test_a_conftest_that_refuses_did_not_fail(suite: Suite, words: str) -> None:
    suite.write(conftest=f"import pytest\nraise {words}\n")
    plain, ran = suite.pytest(), suite.pytest("--loki")
    assert (ran.code, ran.out, ran.err) == (plain.code, plain.out, plain.err)


def test_labels_and_reports(suite: Suite) -> None:
    """Seen again it is broken; once mended, and back, recurring: its tests ran in between."""
    suite.write(conftest=MISSING)
    suite.pytest("--loki")
    ran = suite.pytest("--loki-report=x.json", GITHUB_ACTIONS="true")
    assert "1 broken" in told(ran)[0]
    assert "::error file=conftest.py,line=3" in ran.out
    report = json.loads((suite.folder / "x.json").read_text("utf-8"))
    assert report["causes"][0]["tests"][0]["test"] == "conftest.py"
    suite.write(conftest="")
    assert suite.pytest("--loki").code == 0
    suite.write(conftest=MISSING)
    assert "1 recurring" in told(suite.pytest("--loki"))[0]


def test_under_xdist(suite: Suite) -> None:
    """The process that a person started tells it, once."""
    workers = Suite(suite.folder, ("xdist.plugin", "xdist.looponfail")).write(conftest=MISSING)
    ran = workers.pytest("--loki", "-n2")
    assert ran.code == 4
    assert ran.err.count("= loki: ") == 1
    assert len(ran.runs) == 1


def test_only_workers_cannot_import_it(suite: Suite) -> None:
    """A worker that ends so keeps no run of its own: the process that started it does."""
    only = "import os\nif 'PYTEST_XDIST_WORKER' in os.environ:\n    import nosuchthing\n"
    workers = Suite(suite.folder, ("xdist.plugin", "xdist.looponfail")).write(conftest=only)
    plain, ran = workers.pytest("-n1"), workers.pytest("--loki", "-n1")
    assert ran.code == plain.code
    assert "= loki: " not in ran.err
    assert len(ran.runs) <= 1


def test_an_error_of_lokis_is_a_line(suite: Suite) -> None:
    suite.put(".loki/failure-patterns.yml", "patterns: [").write(conftest=MISSING)
    plain, ran = suite.pytest(), suite.pytest("--loki")
    assert ran.code == plain.code == 4
    assert ran.err.endswith(plain.err)
    assert ran.err.count("loki is off for this run: ") == 1
