"""What kind of failure a failing test shows beneath "a test failed".

A tool that runs tests says of each failure that it is a test's, whatever broke it: a refused
connection, a missing module. Who explains a test run wants to know that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loki.recognition.pattern import MEDIUM

if TYPE_CHECKING:
    from loki.recognition.failure import Failure
    from loki.recognition.pattern import Match

TEST_FAILURE = "test-failure"

ASSERTIONS = frozenset({"", "AssertionError", "Failed", "ExceptionGroup", "XPASS(strict)"})
"""Types of failures in which the code said nothing: the test did. Words in them are its data."""

_MADE_UP = re.compile(r"^> +(?:raise\b|.*\.throw\(|.*\bside_effect\b)", re.MULTILINE)
_DOUBLES = re.compile(r"(?:^|/)(?:unittest/|mock/)mock\.py$|(?:^|/)(?:responses|respx|httpretty)/")


def underlying(failure: Failure) -> Match | None:
    """The best pattern that says more than that a test failed, or None.

    Args:
        failure: of a test.

    Example:
        >>> from loki.recognition.failure import recognize
        >>> said = "E   ConnectionRefusedError: [Errno 111] Connection refused"
        >>> underlying(recognize(said, command="pytest")).kind
        'network-error'
    """
    if (failure.error_type or "") in ASSERTIONS and failure.kind == TEST_FAILURE:
        return None
    return next(
        (one for one in failure.matches if one.kind != TEST_FAILURE and one.confidence >= MEDIUM),
        None,
    )


def is_infrastructure(failure: Failure) -> bool:
    """Whether infrastructure failed the test, not the code: what loki knows as such, and means it.

    An outage that a test makes up (a mock's, or one that it raises itself) is none: the code under
    test was to deal with it, and did not.

    Args:
        failure: of a test.
    """
    shown = underlying(failure)
    if shown is None or not shown.is_infrastructure:
        return False
    last = failure.frames[-1] if failure.frames else None
    if last is None:
        return True
    raised = last.in_project and _MADE_UP.search(failure.excerpt) and is_test_path(last.path)
    return not raised and not _DOUBLES.search(last.path)


_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__)/|(?:^|/)(?:test_[^/]*|[^/]*_tests?|conftest|tests?)\.py$"
)


def is_test_path(path: str) -> bool:
    """Whether a path is a test's, or of what only tests use, by its name.

    Example:
        >>> is_test_path("tests/unit/helpers.py"), is_test_path("app/money.py")
        (True, False)
    """
    return _TEST_PATH.search(path) is not None
