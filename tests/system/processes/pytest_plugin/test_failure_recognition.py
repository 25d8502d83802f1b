"""Each way in which pytest lets a test fail is recognized as what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.recognition.root_cause import is_infrastructure
from support.suite import Ran, Suite, outcomes

MANY = """
import asyncio, time, unittest
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("cannot open the table")

@pytest.fixture
def leaking():
    yield
    raise OSError("cannot drop the table")

def test_setup(broken): pass
def test_teardown(leaking): pass
def test_both(leaking): assert 1 == 2
@pytest.mark.xfail(reason="known")
def test_xpass(): pass
@pytest.mark.xfail(reason="known")
def test_xfail(): assert 0
@pytest.mark.skip
def test_skip(): pass
def test_missing_fixture(nowhere): pass
class TestOld(unittest.TestCase):
    def test_equal(self): self.assertEqual(1, 2)
    def test_parts(self):
        for i in range(3):
            with self.subTest(i=i): self.assertEqual(i, 1)
def test_subtests(subtests):
    for i in range(3):
        with subtests.test("part", i=i):
            assert i == 1
def test_fine_subtests(subtests):
    with subtests.test(): pass
@pytest.mark.parametrize("x", ["a b", "[x]", "a::b", "\\u00e4\\n", "a - b", ""])
def test_odd(x): assert x == 1
@pytest.mark.asyncio
async def test_async():
    await asyncio.sleep(0)
    raise LookupError("nobody awaits this")
@pytest.mark.anyio
async def test_anyio(): raise LookupError("nobody awaits that")
@pytest.mark.timeout(1, func_only=True)
def test_late(): time.sleep(30)
def test_said(): pytest.fail("the table is empty", pytrace=False)
def test_fine(): pass
"""

NOT_A_CALL = {
    "test_setup": ("setup", "error"),
    "test_teardown": ("teardown", "error"),
    "test_both": ("teardown", "error"),
    "test_missing_fixture": ("setup", "error"),
    "test_late": ("timeout", "timeout"),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    ini = "[pytest]\nxfail_strict = true\nasyncio_default_fixture_loop_scope = function\n"
    plugins = ("pytest_asyncio.plugin", "anyio.pytest_plugin", "pytest_timeout")
    suite = Suite(tmp_path_factory.mktemp("many"), plugins)
    suite.put("pytest.ini", ini).write(test_many=MANY, test_broken="import nosuchthing\n")
    suite.write(documented='def f():\n    """\n    >>> f()\n    2\n    """\n    return 1\n')
    return suite.pytest(
        "--loki", "-q", "--doctest-modules", "--continue-on-collection-errors", "--junitxml=x.xml"
    )


def test_phase_and_outcome(ran: Ran) -> None:
    """Where each failed, and what became of it."""
    found = {name.removeprefix("test_many.py::"): what for name, what in outcomes(ran).items()}
    assert found.pop("test_broken.py") == ("collect", "error")
    assert found.pop("documented.py::documented.f") == ("call", "failed")
    for name, what in NOT_A_CALL.items():
        assert found.pop(name) == what
    assert set(found.values()) == {("call", "failed")}
    odd = {f"test_odd[{x}]" for x in ("a b", "[x]", "a::b", r"\xe4\n", "a - b", "")}
    assert set(found) == odd | {
        "test_xpass",
        "TestOld::test_equal",
        "TestOld::test_parts",
        "test_subtests",
        "test_async",
        "test_anyio[asyncio]",
        "test_said",
    }


def test_each_failure_is_counted(ran: Ran) -> None:
    """A test may fail in two phases, and in several sub-tests; what contains them is no failure."""
    often = [one.test.partition("::")[2] for one in ran.run.failures]
    assert often.count("test_both") == 2
    assert often.count("test_subtests") == often.count("TestOld::test_parts") == 2
    assert often.count("test_odd[]") == 1


def test_what_passed(ran: Ran) -> None:
    """A test passed if all its phases did, and its sub-tests."""
    assert ran.passed == {"test_many.py::test_fine", "test_many.py::test_fine_subtests"}


def test_place_and_error_of_each(ran: Ran) -> None:
    """A failure has the place that a person would go to, and names its test exactly."""
    for one in ran.run.failures:
        assert one.failure.tests == (one.test,)
        assert one.failure.path == one.test.partition("::")[0]
        assert one.failure.line
        assert one.failure.tool == "pytest"
    late = ran.failing["test_many.py::test_late"].failure
    assert late.message.startswith("Timeout")
    said = ran.failing["test_many.py::test_said"].failure
    assert (said.error_type, said.message) == ("Failed", "the table is empty")
    assert ran.failing["test_broken.py"].failure.pattern_id == "import-not-found"


@pytest.mark.parametrize("style", ["short", "line", "no", "native"])
def test_finds_the_same_however_tracebacks_are_shown(tmp_path: Path, style: str) -> None:
    """``--tb`` is about what a person reads: place, error and signature stay."""
    text = "import pytest\ndef f():\n    raise ValueError('no price')\ndef test_x():\n    f()\n"
    text += "def test_y():\n    assert [1] == [2]\n"
    text += "def test_z():\n    raise ConnectionError('made up')\n"
    suite = Suite(tmp_path).write(test_x=text)
    plain = suite.pytest("--loki").failing
    for test, one in suite.pytest("--loki", f"--tb={style}").failing.items():
        told, known = one.failure, plain[test].failure
        assert (told.path, told.line) == (known.path, known.line)
        assert (told.message, told.signature) == (known.message, known.signature)
        assert [(f.path, f.line) for f in told.frames] == [(f.path, f.line) for f in known.frames]
        assert is_infrastructure(told) == is_infrastructure(known)


def test_properties_reach_reports_of_others(ran: Ran) -> None:
    """JUnit's XML says of each failing test what was found, and not how loki carries it."""
    xml = (ran.project / "x.xml").read_text("utf-8")
    assert '<property name="loki.pattern" value="test-failure"' in xml
    assert xml.count('name="loki.signature"') >= 10
    assert 'name="loki"' not in xml
