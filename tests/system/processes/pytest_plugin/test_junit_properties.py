"""JUnit's XML says of every failure what loki knows of it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from loki.decision.suites.suite_summary import SuiteSummary
from loki.memory.suites.suite_history import SuiteFailure, SuiteRun
from loki.pytest_plugin.report_file import Junit
from loki.recognition.failure import Failure
from support.suite import Suite

TESTS = """
import os
import pytest

def test_fine(): pass
def test_bad(): assert 1 == 2

@pytest.fixture
def late():
    yield
    raise RuntimeError("the till is closed")

def test_both(late): raise ValueError("no price")
def test_late(late, record_testsuite_property): record_testsuite_property("till", 3)
def test_parts(subtests):
    for n in (1, 2):
        with subtests.test(n=n):
            assert n == 3
"""
NAMES = {"signature", "pattern", "kind", "fingerprint", "label", "cause"}


def read(path: Path) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


def of_tests(xml: ElementTree.Element) -> list[tuple[str, dict[str, str]]]:
    """Name and properties of each test."""
    return [
        (
            str(case.get("name")),
            {str(p.get("name")): str(p.get("value")) for p in case.findall("properties/property")},
        )
        for case in xml.iter("testcase")
    ]


def full(said: dict[str, str]) -> bool:
    return set(said) == {f"loki.{name}" for name in NAMES}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    suite = Suite(tmp_path, ("xdist.plugin", "xdist.looponfail"))
    return suite.write(test_x=TESTS, test_y="import nosuchthing\n")


XML = ("--loki", "-q", "--junitxml=x.xml", "--continue-on-collection-errors")


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_each_failure_has_them(suite: Suite, family: str) -> None:
    """Also of a file that could not be collected, and of a test that fails twice."""
    suite.pytest(*XML, "-o", f"junit_family={family}")
    found = of_tests(read(suite.folder / "x.xml"))
    red = [name for name, said in found if full(said)]
    assert sorted(red) == [
        "test_bad",
        "test_both",
        "test_both",
        "test_late",
        "test_parts",
        "test_y",
    ]
    assert {name for name, said in found if not said} == {"test_fine"}
    both = [said for name, said in found if name == "test_both"]
    assert both[0]["loki.cause"] != both[1]["loki.cause"]
    late = next(said for name, said in found if name == "test_late")
    assert late["loki.cause"] == both[1]["loki.cause"]
    missing = next(said for name, said in found if name == "test_y")
    assert (missing["loki.kind"], missing["loki.label"]) == ("import-not-found", "new")


def test_what_a_test_says_itself_stays(suite: Suite) -> None:
    own = "def test_own(record_property):\n    record_property('a', 1)\n    assert 0\n"
    suite.write(test_y=own)
    suite.pytest(*XML, "-W", "ignore", "test_y.py")
    [(name, said)] = of_tests(read(suite.folder / "x.xml"))
    assert name == "test_own"
    assert said.pop("a") == "1"
    assert full(said)


def test_crashed_workers(suite: Suite) -> None:
    """The test that a worker died in has them as any other; labels follow the history."""
    suite.write(test_x="import os\ndef test_bad(): assert 0\ndef test_crash(): os._exit(9)\n")
    suite.write(test_y="def test_y(): pass\n")
    for label in ("new", "broken"):
        suite.pytest(*XML, "-n2")
        found = {name: said for name, said in of_tests(read(suite.folder / "x.xml")) if said}
        assert {name.rpartition("::")[2]: said["loki.label"] for name, said in found.items()} == {
            "test_bad": label,
            "test_crash": label,
        }
        assert all(full(said) for said in found.values())


def test_green_runs_have_none(suite: Suite) -> None:
    suite.write(test_x="def test_x(): pass\n", test_y="")
    suite.pytest(*XML)
    assert "loki" not in (suite.folder / "x.xml").read_text("utf-8")


def test_an_xml_that_is_made_otherwise_is_left_alone() -> None:
    """Another pytest's: nothing is held, nothing raises, the report goes its way."""
    junit = Junit(object())
    failing = SuiteFailure("test_x.py::test_x", "call", "failed", Failure.of("assert 1 == 2"))
    report = pytest.TestReport(failing.test, ("test_x.py", 1, "test_x"), {}, "failed", "", "call")
    hook = junit.pytest_runtest_logreport(report)
    next(hook)
    junit.failed(failing)
    with pytest.raises(StopIteration):
        hook.send(None)
    junit.complete(SuiteSummary(SuiteRun(id="r")))
