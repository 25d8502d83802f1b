"""What was expected against what came, as far as a failure's output says both: ``expected-actual.yml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from loki.base.yaml_document import Strict, read_beside

MAX_LINES, MAX_LENGTH = 200, 400
"""Lines that are looked at, and characters of each; chosen, not measured."""

MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """What was expected, and what came."""

    expected: str
    actual: str

    def __str__(self) -> str:
        return f"expected: {self.expected}\nactual:   {self.actual}"


class _Rule(Strict):
    line: re.Pattern[str] | None = None
    expected: re.Pattern[str] | None = None
    actual: re.Pattern[str] | None = None
    after: re.Pattern[str] | None = None


class _File(Strict):
    version: int
    comparisons: tuple[_Rule, ...]


@cache
def _rules() -> tuple[_Rule, ...]:
    return read_beside(__file__, "expected-actual.yml", _File).comparisons


def differences(text: str) -> list[Difference]:
    """What was expected against what came.

    Args:
        text: what a failing check printed.

    Example:
        >>> differences("E   assert -1 == 5")
        [Difference(expected='5', actual='-1')]
        >>> differences("thread 'it_adds' panicked:\\n  left: -1\\n right: 5")
        [Difference(expected='5', actual='-1')]
    """
    lines = [line[:MAX_LENGTH] for line in text.splitlines()[:MAX_LINES]]
    for rule in _rules():
        found = list(dict.fromkeys(_apply(rule, lines)))
        if found:
            return found[:MAX_SHOWN]
    return []


def _apply(rule: _Rule, lines: Sequence[str]) -> Iterator[Difference]:
    if rule.line is not None:
        for line in lines:
            if match := rule.line.search(line):
                yield Difference(match["expected"].strip(), match["actual"].strip())
        return
    if rule.after is not None:
        start = next((at for at, line in enumerate(lines) if rule.after.search(line)), len(lines))
        lines = lines[start + 1 :]
    assert rule.expected is not None and rule.actual is not None  # noqa: PT018
    wanted, came = _first(rule.expected, lines), _first(rule.actual, lines)
    if wanted and came:
        yield Difference(wanted["expected"].strip(), came["actual"].strip())


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := pattern.search(line))), None)
