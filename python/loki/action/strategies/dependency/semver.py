"""Whether a version is in a range as package.json and Cargo.toml write them.

Semantic versioning 2.0.0 (https://semver.org); ranges as node-semver and Cargo document them:
``^1.2``, ``~1.2.3``, ``1.x``, ``>=1 <2``, ``1 - 2``, ``a || b``. What is no such range (a tag, a git
address, a path) is answered with None: nobody can tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = re.compile(
    r"v?(?P<major>\d{1,9}|[xX*])(?:\.(?P<minor>\d{1,9}|[xX*]))?(?:\.(?P<patch>\d{1,9}|[xX*]))?"
    r"(?:-(?P<pre>[\w.-]+))?(?:\+[\w.-]+)?"
)
_COMPARATOR = re.compile(r"(?P<sign>\^|~>?|>=|<=|>|<|=)?\s*(?P<version>[^\s,|<>=~^]+)")
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")

Key = tuple[tuple[int, int, int], tuple[tuple[int, int, str], ...]]
_RELEASE: tuple[tuple[int, int, str], ...] = ((2, 0, ""),)


@dataclass(frozen=True, slots=True)
class _Part:
    """A version of a range, perhaps without its last numbers."""

    numbers: tuple[int, ...]
    pre: tuple[tuple[int, int, str], ...]

    @property
    def low(self) -> Key:
        """The least version that begins like this."""
        major, minor, patch = (*self.numbers, 0, 0, 0)[:3]
        return (major, minor, patch), self.pre

    def above(self, place: int) -> Key:
        """The least version with the number at a place raised, before its pre-releases."""
        numbers = [*self.numbers, 0, 0, 0][:3]
        numbers[place] += 1
        major, minor, patch = (*numbers[: place + 1], 0, 0)[:3]
        return (major, minor, patch), ()


def satisfies(version: str, wanted: str, *, bare: str = "=") -> bool | None:
    """Whether a version is in a range; None where nobody can tell.

    Args:
        version: like ``1.2.3``.
        wanted: a range.
        bare: what a version without a sign means: ``=`` (npm) or ``^`` (Cargo).

    Example:
        >>> satisfies("18.2.0", "^16.8.0 || ^17"), satisfies("0.3.1", "^0.3"), satisfies("1.9.0", "~1.8")
        (False, True, False)
        >>> satisfies("1.4.0", "1.2", bare="^"), satisfies("1.2.9", "1.2"), satisfies("1.0.0", "latest")
        (True, True, None)
    """
    own = _parse(version)
    if own is None or len(own.numbers) != 3:  # noqa: PLR2004
        return None
    answers = [_in_all(own.low, part.strip(), bare) for part in wanted.split("||")]
    if True in answers:
        return True
    return None if None in answers else False


def _in_all(version: Key, wanted: str, bare: str) -> bool | None:
    if hyphen := _HYPHEN.fullmatch(wanted):
        low, high = _parse(hyphen[1]), _parse(hyphen[2])
        if low is None or high is None:
            return None
        return low.low <= version and _at_most(version, high)
    if wanted in {"", "*", "x", "X"}:
        return not version[1] or version[1] == _RELEASE
    rest = _COMPARATOR.sub("", wanted).strip(" ,")
    if rest:
        return None
    answers = []
    parts = []
    for match in _COMPARATOR.finditer(wanted):
        part = _parse(match["version"])
        if part is None:
            return None
        parts.append(part)
        answers.append(_holds(version, match["sign"] or bare, part))
    return all(answers) and _may_be_pre(version, parts)


def _may_be_pre(version: Key, parts: list[_Part]) -> bool:
    """A pre-release is only in a range that names one of the same release."""
    if version[1] == _RELEASE:
        return True
    return any(part.pre != _RELEASE and part.low[0] == version[0] for part in parts)


def _holds(version: Key, sign: str, part: _Part) -> bool:  # noqa: PLR0911 - a sign each
    count = len(part.numbers)
    if not count:
        return True
    if sign == ">=":
        return version >= part.low
    if sign == "<":
        return version < part.low
    if sign == ">":
        return version > part.low if count == 3 else version >= part.above(count - 1)  # noqa: PLR2004
    if sign == "<=":
        return _at_most(version, part)
    if sign.startswith("~"):
        return part.low <= version < part.above(min(count - 1, 1))
    if sign == "^":
        first = next((at for at, number in enumerate(part.numbers) if number), count - 1)
        return part.low <= version < part.above(first)
    return version == part.low if count == 3 else part.low <= version < part.above(count - 1)  # noqa: PLR2004


def _at_most(version: Key, part: _Part) -> bool:
    count = len(part.numbers)
    return version <= part.low if count == 3 else version < part.above(count - 1)  # noqa: PLR2004


def _parse(text: str) -> _Part | None:
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    numbers: list[int] = []
    for name in ("major", "minor", "patch"):
        if match[name] is None or match[name] in "xX*":
            break
        numbers.append(int(match[name]))
    pre = match["pre"]
    return _Part(tuple(numbers), _identifiers(pre) if pre else _RELEASE)


def _identifiers(pre: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers before words, fewer before more; a release after all of them."""
    return tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split("."))
