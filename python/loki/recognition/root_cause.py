"""Which failures of one test run have one root cause.

Unlike `loki.same_failure`, test ids do not separate: a broken helper fails a hundred tests. What
counts, and why: ``docs/design/tests.md``. Under test: ``tests/py/recognition/test_root_cause.py``;
measured against planted causes: ``benchmarks/root_causes.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loki.recognition.signature import normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loki.recognition.failure import Failure

_MODULE = re.compile(r"No module named '?([\w.]+)|cannot import name '([\w.]+)' from '([\w.]+)'")


@dataclass(frozen=True, slots=True)
class RootCause:
    """Failures that one mistake explains.

    Attributes:
        failure: the one that shows it best.
        members: places in the sequence that was passed, ascending.
    """

    failure: Failure
    members: tuple[int, ...]


def root_causes(failures: Sequence[Failure]) -> list[RootCause]:
    """The failures of one test run, grouped by root cause.

    A false merge is worse than a false split: what is not shown to be one stays apart.

    Args:
        failures: what failed in the run, in any order.

    Returns:
        A group for each cause, most members first, then in the order of their first member. Each
        failure is in one of them.

    Example:
        >>> from loki.recognition.failure import recognize
        >>> lost = [recognize(f"ModuleNotFoundError: No module named '{m}'") for m in ("a", "b", "a")]
        >>> [cause.members for cause in root_causes(lost)]
        [(0, 2), (1,)]
    """
    groups: dict[Any, list[int]] = {}
    for index, failure in enumerate(failures):
        groups.setdefault(_key(failure, index), []).append(index)
    ordered = sorted(groups.values(), key=lambda members: (-len(members), members[0]))
    return [RootCause(failures[members[0]], tuple(members)) for members in ordered]


def _key(failure: Failure, index: int) -> Any:
    module = _MODULE.search(failure.message)
    if module is not None:
        return ("module", module[1] or (module[3], module[2]))
    own = [frame for frame in failure.frames if frame.in_project]
    said = failure.error_type, normalize(failure.message, "template")
    if own:
        return (own[-1].path, own[-1].line, *said)
    return (failure.path, failure.line, *said) if failure.path else (index,)
