"""Results per test, as test runners report them: one module a format.

Each module has ``read(content, root)``, from a report's bytes to `Results`; one whose runner prints its
report has ``plain(content)``, too: the text that a person would have read.
"""

from __future__ import annotations

from types import ModuleType

from loki.action.checks.results.suite_results import FAILED, PASSED, SKIPPED, Results

__all__ = ["FAILED", "PASSED", "SKIPPED", "Results", "plain", "read"]


def read(format_: str, content: bytes, root: str) -> Results | None:
    """The results in a report; None where it holds none, or is damaged.

    Args:
        format_: junit, jest, go or libtest.
        content: of the report, or what the runner printed.
        root: the project's folder; files are named relative to it.

    Example:
        >>> read("go", b'{"Action":"pass","Package":"p","Test":"TestA"}', "/").outcomes
        {'p.TestA': 'passed'}
    """
    found: Results | None = _module(format_).read(content, root)
    return found if found is not None and found.outcomes else None


def plain(format_: str, content: bytes) -> bytes:
    """What a runner printed, without the format that it was asked for.

    Args:
        format_: go or libtest; others print text anyway.
        content: what it printed.
    """
    to_text = getattr(_module(format_), "plain", None)
    text: bytes = to_text(content) if to_text else content
    return text


def _module(format_: str) -> ModuleType:
    from loki.action.checks.results import go_results, jest_results, junit_results, libtest_results

    known: dict[str, ModuleType] = {
        "junit": junit_results,
        "jest": jest_results,
        "go": go_results,
        "libtest": libtest_results,
    }
    return known[format_]
