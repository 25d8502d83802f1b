"""Parsers of results per test, against what the real runners wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from loki.action.checks.results.suite_results import Results, inside, plain, read
from loki.recognition.failure import recognize

RECORDED = Path(__file__).parent / "recorded"


def recorded(format_: str, name: str) -> Results:
    results = read(format_, (RECORDED / name).read_bytes(), "/srv/shop")
    assert results is not None
    return results


JEST = {
    "broken.test.js": "failed",
    "calc.test.js > calc > adds nothing": "passed",
    "calc.test.js > calc > with numbers > adds": "failed",
    "calc.test.js > calc > with numbers > adds later": "skipped",
    "calc.test.js > calc > with numbers > multiplies": "skipped",
}


def test_jest() -> None:
    results = recorded("jest", "jest-29.7.0.json")
    assert results.outcomes == {**JEST, "calc.test.js > stands alone": "passed"}
    assert set(results.files.values()) == {"broken.test.js", "calc.test.js"}


def test_vitest() -> None:
    """vitest calls a test that is expected to fail, and does, passed."""
    results = recorded("jest", "vitest-3.2.4.json")
    assert results.outcomes == {**JEST, "calc.test.js > is known to fail": "passed"}


def test_go() -> None:
    results = recorded("go", "go-1.26.8.jsonl")
    assert results.outcomes == {
        "example.com/shop/bad.TestPanics": "failed",
        "example.com/shop/broken": "failed",
        "example.com/shop/calc.ExampleAdd": "passed",
        "example.com/shop/calc.TestAdd": "failed",
        "example.com/shop/calc.TestAdd/two_and_three": "failed",
        "example.com/shop/calc.TestAdd/zero": "passed",
        "example.com/shop/calc.TestFine": "passed",
        "example.com/shop/calc.TestLater": "skipped",
    }
    assert results.files["example.com/shop/calc.TestAdd"] == "example.com/shop/calc"


def test_what_go_prints_as_json_is_what_it_prints() -> None:
    """But for times, addresses and the order of packages, which differ from run to run."""

    def told(text: str) -> list[str]:
        lines = [line for line in text.splitlines() if not line.startswith(("\t", "goroutine"))]
        return sorted(line.rsplit("\t", 1)[0].partition("(0x")[0] for line in lines)

    text = plain("go", (RECORDED / "go-1.26.8.jsonl").read_bytes()).decode()
    original = (RECORDED / "go-1.26.8.txt").read_text()
    # `go test` ends with a FAIL of its own, which -json leaves out.
    assert told(text + "FAIL\n") == told(original)
    failing = text[text.index("--- FAIL: TestAdd") :].splitlines()[:3]
    assert failing == [
        "--- FAIL: TestAdd (0.00s)",
        "    --- FAIL: TestAdd/two_and_three (0.00s)",
        "        calc_test.go:12: Add(2, 3) = -1, want 5",
    ]


def test_what_go_prints_as_json_is_recognized_alike() -> None:
    """Also beside what it printed without -json, packages being in another order there."""
    text = plain("go", (RECORDED / "go-1.26.8.jsonl").read_bytes()).decode()
    ours, original = recognize(text), recognize((RECORDED / "go-1.26.8.txt").read_bytes())
    assert (ours.tool, ours.message, ours.path, ours.line) == (
        original.tool,
        original.message,
        original.path,
        original.line,
    )
    assert set(ours.tests) == set(original.tests) > {"TestPanics"}


CARGO = {
    "calc src/lib.rs::tests::adds": "failed",
    "calc src/lib.rs::tests::adds_later": "skipped",
    "calc src/lib.rs::tests::adds_nothing": "passed",
}
OUTSIDE = {
    "whole tests/whole.rs::adds_from_outside": "passed",
    "doc calc::src/lib.rs - add": "passed",
}
PANICS = "calc src/lib.rs::tests::panics"


def test_cargo() -> None:
    """A test that has to panic has another name: made so, a failing one is gone."""
    results = recorded("libtest", "cargo-1.95.0.txt")
    assert results.outcomes == {**CARGO, **OUTSIDE, f"{PANICS} - should panic": "passed"}
    assert results.files["doc calc::src/lib.rs - add"] == "src/lib.rs"
    assert results.files["whole tests/whole.rs::adds_from_outside"] == "tests/whole.rs"


def test_cargo_json() -> None:
    results = recorded("libtest", "libtest-1.95.0.jsonl")
    assert results.outcomes == {**CARGO, **OUTSIDE, PANICS: "passed"}
    text = plain("libtest", (RECORDED / "libtest-1.95.0.jsonl").read_bytes()).decode()
    assert "test tests::adds_later ... ignored\n" in text
    assert recognize(text).path == "src/lib.rs"
    assert '"type"' not in text


def test_cargo_without_capture() -> None:
    """What a test prints stands between its name and its outcome; it cannot pose as another."""
    outcomes = recorded("libtest", "nocapture-1.95.0.txt").outcomes
    assert outcomes["calc src/lib.rs::tests::adds"] == "failed"
    assert outcomes["calc src/lib.rs::tests::adds_later"] == "skipped"


def test_pytest() -> None:
    results = recorded("junit", "pytest-9.2.0.xml")
    assert results.outcomes == {
        "tests.test_broken": "failed",
        "tests.test_cart.test_good": "passed",
        "tests.test_cart.TestCart.test_each[1]": "passed",
        "tests.test_cart.TestCart.test_each[2]": "failed",
        "tests.test_cart.TestCart.test_later": "skipped",
        "tests.test_cart.TestCart.test_known": "skipped",
        "tests.test_cart.OldStyle.test_sub": "passed",
    }
    assert set(results.files.values()) == {"tests/test_broken.py", "tests/test_cart.py"}
    assert results.files["tests.test_cart.TestCart.test_later"] == "tests/test_cart.py"


def test_surefire_and_node() -> None:
    outcomes = recorded("junit", "surefire-3.2.5.xml").outcomes
    assert outcomes == {
        "CartTest.adds": "failed",
        "CartTest.addsNothing": "passed",
        "CartTest.later": "skipped",
    }
    assert recorded("junit", "node-20.20.2.xml").outcomes == {
        "test.adds": "failed",
        "test.skipped": "skipped",
        "test.todo": "skipped",
        "test.inner": "passed",
    }


@pytest.mark.parametrize("format_", ["junit", "jest", "go", "libtest"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"<testsuite>",
        b"{",
        b'{"testResults": 3}',
        b'{"a": "Action"}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_report_holds_no_results(format_: str, content: bytes) -> None:
    assert read(format_, content, "/") is None


def test_a_test_that_ran_twice_and_failed_once_failed() -> None:
    xml = (
        b"<testsuites><testsuite>"
        b'<testcase classname="a" name="t"><failure/></testcase>'
        b'<testcase classname="a" name="t"/>'
        b'<testcase classname="" name="b"><error/></testcase>'
        b"</testsuite></testsuites>"
    )
    results = read("junit", xml, "/")
    assert results is not None
    assert results.outcomes == {"a.t": "failed", "b": "failed"}
    assert (Results({"a.t": "passed"}) + results).outcomes["a.t"] == "failed"
    assert (results + Results({"a.t": "passed"})).outcomes["a.t"] == "failed"


def test_inside() -> None:
    tests = ["p.TestA", "p.TestA/x", "p/sub.TestB", "f.js > a", "g.js > a"]
    assert inside("p", tests) == ["p.TestA", "p.TestA/x"]
    assert inside("f.js", tests) == ["f.js > a"]
