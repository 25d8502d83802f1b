"""What an output says: how much failed and passed, exit codes, time-outs, checks that could not begin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.decision.monitor.tool_result import exit_code_in, extent, outcome, said_by, says_failed
from support.examples import examples
from support.tool_calls import mypy_fails, pytest_fails


def test_fewer_errors_are_fewer() -> None:
    counts = [extent(mypy_fails(number)) for number in (9, 6, 2, 1)]
    assert counts == [9, 6, 2, 1]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("3 passed in 0.02s", 0),
        ("src/a.ts(3,5): error TS2322: x", 1),
        ("error[E0308]: mismatched types\n --> src/lib.rs:9:5\n", 2),
        ("not ok 1 - adds\nok 2 - subtracts\n", 1),
        ("--- FAIL: TestAdd (0.00s)\n    calc_test.go:9: got -1\n", 2),
        ("  ✕ adds (3 ms)\n  ✓ subtracts\n", 1),
        ("Version 1.2:3 of 10:30", 0),
    ],
)
def test_lines_that_tell(text: str, count: int) -> None:
    assert extent(text) == count


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("F.                 [100%]\n1 failed, 1 passed", ".F    [100%]\n1 failed, 1 passed"),
        ("t.py ..F [ 60%]\nu.py E. [100%]\nno b", "t.py F.. [ 60%]\nu.py .E [100%]\nno b"),
        ("Using --randomly-seed=42\n1 failed", "Using --randomly-seed=177\n1 failed"),
        (
            "Run options: --seed 4711\n\n..F\n1 failures",
            "Run options: --seed 12\n\n.F.\n1 failures",
        ),
        ("-test.shuffle 1795380\n--- FAIL: TestA", "-test.shuffle 99\n--- FAIL: TestA"),
    ],
)
def test_the_same_in_another_order_of_tests(one: str, other: str) -> None:
    assert said_by(one) == said_by(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("F\n", "E\n"), ("seed oil\n", "oil seed\n"), ("s.p\n1", "s.p\n2"), ("50%", "60%")],
)
def test_what_is_no_progress_of_tests_counts(one: str, other: str) -> None:
    assert said_by(one) != said_by(other)


def test_it_is_linear_and_total() -> None:
    for text in ("a." * 10**6, "\n" * 10**6, "a.py:1\n" * 10**5, "\ud800", pytest_fails()):
        assert extent(text) >= 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code: 2\nOutput:", 2),
        ("make failed\n[exited with code 1]", 1),
        ("Process exited with code 137", 137),
        ("exit status 1", 1),
        ("the exit code of make is documented in section 2", None),
        ("fine", None),
        ("[The command completed with exit code 1.]", 1),
        ("[Command finished with exit code 2]", 2),
        ("<returncode>1</returncode>\n<output>", 1),
        ("the code 200 was returned", None),
    ],
)
def test_exit_codes_in_texts(text: str, code: int | None) -> None:
    assert exit_code_in(text) == code


def test_texts_that_say_that_they_failed() -> None:
    assert says_failed("Error: no such string", changes=True) is True
    assert says_failed("The file has been updated.", changes=True) is None
    assert says_failed("Exit code: 0\nerror: none", runs=True) is False
    assert says_failed('{"error": "No presentation is loaded"}') is True
    assert says_failed('{"content": [{"text": "{\\"error\\": \\"none is loaded\\"}"}]}') is True
    assert says_failed('{"error": null, "rows": 3}') is None


@pytest.mark.parametrize(
    ("text", "passed", "failed"),
    [
        ("1 failed, 20 passed in 0.1s", 20, 1),
        ("174 passed, 6 skipped, 13 deselected in 0.66s", 174, 0),
        ("Ran 3 tests in 0.01s\n\nOK", 3, 0),
        ("Ran 3 tests in 0.01s\n\nFAILED (failures=1, errors=1)", 3, 2),
        ("ok  \tgithub.com/a/b\t0.01s", 1, 0),
        ("--- FAIL: TestAdd (0.00s)\nFAIL\tgithub.com/a/b\t0.01s", 0, 2),
        ("test result: ok. 12 passed; 0 failed; 0 ignored", 12, 0),
        ("Tests:       1 failed, 11 passed, 12 total", 11, 1),
        ("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0", 3, 0),
        ("100% tests passed, 0 tests failed out of 3", 100, 0),
        ("OK (12 tests, 30 assertions)", 12, 0),
        ("Tests: 3, Assertions: 3, Failures: 1.", 3, 1),
        ("2 examples, 0 failures", 1, 0),
        ("Passed!  - Failed:     0, Passed:    12, Skipped: 0", 12, 0),
        ("tests finished: 5 passed, in 0.10 seconds", 5, 0),
        ("All tests passed!", 1, 0),
    ],
)
def test_how_tests_went(text: str, passed: int, failed: int) -> None:
    said = outcome(text)
    assert said.has_tests
    assert (said.passed, said.failed) == (passed, failed)
    assert said.is_green is not said.is_red


@pytest.mark.parametrize(
    "text",
    [
        "/usr/bin/python: No module named pytest",
        "bash: line 1: pytest: command not found",
        "ERROR: file or directory not found: tests/x.py",
        "collected 0 items\n\nno tests ran in 0.05s",
        'npm ERR! Missing script: "test"',
        "make: *** No rule to make target 'test'.  Stop.",
    ],
)
def test_a_check_that_could_not_begin(text: str) -> None:
    assert not outcome(text).has_begun
    assert not outcome("", 127).has_begun


@pytest.mark.parametrize(
    "text",
    [
        "Command timed out after 2m 0.0s",
        "EXECUTION TIMED OUT because the command was running for more than 30 seconds",
        "shell tool terminated command after exceeding timeout 120000 ms",
    ],
)
def test_time_that_was_up(text: str) -> None:
    assert outcome(text).timed_out


def test_the_same_but_for_what_varies_is_the_same() -> None:
    one = "at 0x7f3a1122: 3 rows in 0.21s, 12:03:11, /tmp/tmpab12/x"
    assert said_by(one) == said_by("at 0x55deadbe: 3 rows in 1.4s, 09:15:00, /tmp/pytest-7/x")
    assert said_by(one) != said_by(one.replace("3 rows", "4 rows")), "numbers are what was found"


@given(st.text())
@settings(max_examples=examples(100), deadline=None)
def test_any_text_says_something(text: str) -> None:
    said = outcome(text)
    assert said.passed >= 0 <= said.failed
    assert bool(said.said) == bool(text.split()) or not said.said
