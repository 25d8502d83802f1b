"""Huge and hostile outputs, small enough for every run; benchmarks/robustness.py has the large ones."""

import pytest

import loki


def test_of_millions_of_failures_all_tests_count_and_the_first_is_the_cause() -> None:
    tests = [f"tests/test_a.py::test_{n}" for n in range(5000)]
    lines = [f"FAILED {test} - ValueError: number {n}" for n, test in enumerate(tests)]
    failure = loki.recognize(
        "\n".join(["=== short test summary info ===", *lines, "5000 failed in 9s"])
    )
    assert set(failure.tests) == set(tests)
    assert len(failure.tests) == len(tests)
    assert (failure.message, failure.output_line) == ("number 0", 2)


def test_behind_millions_of_errors_the_end_of_the_step_still_counts() -> None:
    noise = [f"error: attempt {n} was lost, trying again" for n in range(5000)]
    report = [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in load',
        "KeyError: 'pear'",
    ]
    failure = loki.recognize("\n".join([*noise, *report, *noise]))
    assert (failure.error_type, failure.path, failure.output_line) == ("KeyError", "a.py", 5003)


@pytest.mark.parametrize(
    "text", ["=" * 2**20, "word " * 2**17, "= " * 2**19, "a=" * 2**19, "(" * 2**20]
)
def test_a_megabyte_of_one_thing_has_a_template(text: str) -> None:
    assert loki.group([text, text]) == [0, 0]
    one, other = (
        loki.Failure.of(text + end, error_type="E", tests=["t.py::f"], excerpt="x")
        for end in ("a", "b")
    )
    assert loki.same_failure(one, other) in {True, False}  # that it ends is what is asked
