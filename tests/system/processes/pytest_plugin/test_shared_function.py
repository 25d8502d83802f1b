"""``pytest --loki`` where a function returns something wrong: its tests are one cause, at its ``def``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.suite import Ran, Suite

TEXT = """
def slugify(text):
    return "_".join(text.split())

def title(text):
    return text.title()
"""

TESTS = """
import pytest
from shop import slugify, title

@pytest.mark.parametrize("text", ["a b", "c d e"])
def test_spaces(text):
    assert slugify(text) == text.replace(" ", "-")

class TestSlug:
    def test_tabs(self):
        got = slugify("a\\tb")
        assert len(got) == 3
        assert got == "a-b"

def test_refused():
    with pytest.raises(ValueError):
        slugify("")

def test_one_word(): assert slugify("a") == "a"
def test_title(): assert title("a") == "A"
def test_other(): assert title("b") == "b"
"""

PAGE = """
import json, shop

def test_page():
    assert f"/{shop.slugify('about us')}" == "/about-us"
"""

WORKERS = ("xdist.plugin", "xdist.looponfail")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    found = Suite(tmp_path, WORKERS).write(shop=TEXT, test_slug=TESTS, tests__test_page=PAGE)
    return found.put("pytest.ini", "[pytest]\n")


def causes(ran: Ran) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ran.project / "r.json").read_text("utf-8"))["causes"]
    return found


def test_what_a_person_sees(suite: Suite) -> None:
    """The function, how many tests assert on it, what they say differently, where to look first."""
    ran = suite.pytest(
        "--loki", "--loki-report=r.json", "--loki-report=r.md", GITHUB_ACTIONS="true"
    )
    shown = "\n".join(ran.said)
    assert "loki: 6 failures, 2 causes: 2 new" in ran.out
    assert " 1 new · test-failure · 5 tests · shop.py:2" in shown
    assert "5 tests assert on what slugify() returns" in shown
    assert "AssertionError: assert 'a_b' == 'a-b'" in shown
    assert "Failed: DID NOT RAISE" in shown
    assert "→ Look at slugify() first, shop.py:2; run one alone: pytest" in shown
    first, second = causes(ran)
    assert (first["where"], first["shared"]) == (
        "shop.py:2",
        "5 tests assert on what slugify() returns",
    )
    assert len(first["messages"]) == 3
    assert (second["where"], second["shared"], second["messages"]) == ("test_slug.py:21", "", [])
    assert second["todo"] == (
        "Look at test_slug.py:21, which asserts on what title() returns (shop.py:5); "
        "run it alone: pytest test_slug.py::test_other"
    )
    page = (ran.project / "r.md").read_text("utf-8")
    assert "5 tests assert on what slugify() returns" in page
    assert "- `Failed: DID NOT RAISE" in page
    assert "::error file=shop.py,line=2,title=new%3A test-failure%2C 5 tests::5 tests" in ran.out


def test_again(suite: Suite) -> None:
    """Labels and figures are those of its tests, as everywhere."""
    suite.pytest("--loki")
    ran = suite.pytest("--loki", "--loki-report=r.json")
    first = causes(ran)[0]
    assert (first["label"], first["times"], len(first["tests"])) == ("broken", 2, 5)
    assert "Look at slugify() first" in first["todo"]


@pytest.mark.parametrize("more", [("-n2",), ("--tb=no",), ("--tb=short",), ("--tb=line",)])
def test_however_it_is_run(suite: Suite, more: tuple[str, ...]) -> None:
    """Workers, and what is printed of a traceback, change nothing."""
    ran = suite.pytest("--loki", "--loki-report=r.json", *more)
    assert [(o["where"], len(o["tests"])) for o in causes(ran)] == [
        ("shop.py:2", 5),
        ("test_slug.py:21", 1),
    ]


def test_tests_that_pass_speak_for_a_function(suite: Suite) -> None:
    """Where most do, its failures stay apart; also where this run did not run them."""
    good = "".join(f"def test_{n}(): assert slugify('{n}') == '{n}'\n" for n in range(9))
    suite.write(test_good=f"from shop import slugify\n{good}")
    expected = [1, 1, 1, 1, 2]  # of one test with two parameters
    for more in ((), ("--lf", "-p", "cacheprovider"), ("test_slug.py", "tests")):
        ran = suite.pytest("--loki", "--loki-report=r.json", *more)
        assert sorted(len(one["tests"]) for one in causes(ran)) == expected


def test_a_function_that_calls_another(tmp_path: Path) -> None:
    """What one gets wrong the other does too: they stay two causes, and the deeper one comes first."""
    suite = Suite(tmp_path).write(
        report="""
class Line:
    def __init__(self, cents): self.cents = cents
    def text(self): return self._text()
    def _text(self): return amount(self.cents)
def amount(cents): return f"{cents // 10}.{cents % 10}"
""",
        test_report="""
from report import Line, amount
def test_amount(): assert amount(100) == "1.00"
def test_small_amount(): assert amount(1) == "0.01"
def test_text(): assert Line(10).text() == "0.10"
def test_other_text(): assert Line(20).text() == "0.20"
""",
    )
    ran = suite.pytest("--loki", "--loki-report=r.json")
    assert [one["todo"].partition(";")[0] for one in causes(ran)] == [
        "Look at amount() first, report.py:6",
        "Look at amount() (report.py:6) first: Line.text() calls it, and its tests fail too",
    ]


def test_a_file_that_changed_meanwhile(suite: Suite) -> None:
    """What stands there now is not what ran: nothing is read from it."""
    suite.write(
        conftest="""
        import pathlib, pytest
        @pytest.fixture(scope="session", autouse=True)
        def edit():
            yield
            for name in ("test_slug.py", "tests/test_page.py"):
                path = pathlib.Path(__file__).parent / name
                path.write_text("# new\\n" + path.read_text())
        """.replace("\n        ", "\n")
    )
    ran = suite.pytest("--loki", "--loki-report=r.json")
    assert [one["shared"] for one in causes(ran)] == [""] * 5


def test_a_green_run_reads_nothing(suite: Suite) -> None:
    """Source is read only after a failure that nothing else explains."""
    suite.write(
        shop=TEXT.replace('"_"', '"-"'),
        test_slug="def test_a(): assert 'loki.pytest_plugin.source' not in __import__('sys').modules\n",
        conftest="""
import sys
def pytest_unconfigure():
    print("READ" if "loki.pytest_plugin.source.assertion_reader" in sys.modules else "UNREAD")
""",
    )
    ran = suite.pytest("--loki")
    assert (ran.code, "UNREAD" in ran.out) == (0, True)
