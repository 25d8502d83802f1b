"""Which of many messages are alike: templates of lines, groups of failures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loki import _core
from loki.base.argument_checks import listed, thread_count
from loki.base.atomic_file import write_atomic
from loki.base.error import StoreError
from loki.recognition import site
from loki.recognition.failure import Failure, as_failure, recognize
from loki.recognition.pattern import PatternSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loki.recognition.text import Text


def group(texts: Iterable[Text], *, threads: int = 0) -> list[int]:
    """Finds the message templates in many lines.

    Arguments of a message are found by their shape (numbers, paths, quoted names, values after
    ``=``) and by what varies between messages that are otherwise equal. The groups depend on the
    set of messages only, not on their order or the number of threads; the interpreter lock is
    released.

    Args:
        texts: messages, of any number of words; str or bytes.
        threads: how many to use; 0 for as many as the machine has.

    Returns:
        One number for each text; equal numbers are one template. They count from 0 by first
        appearance.

    Raises:
        TypeError: one of the texts is neither str nor bytes, or there is one text instead of many.
        ValueError: `threads` is below 0.

    Example:
        >>> group(["retry 1 of 5", "disk full on /dev/sda1", "retry 2 of 5"])
        [0, 1, 0]
    """
    return _core.group(listed(texts), thread_count(threads))


def _key(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"found {type(key).__name__} as a key, expected str")
    return key


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A group near a failure.

    Attributes:
        group: its number.
        overlap: with its first member, 0 to 1.
        is_same: it would join that group: the same failure, not only alike.
    """

    group: int
    overlap: float
    is_same: bool


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an index holds, and what its look-ups cost.

    Attributes:
        failures: that were added.
        groups: that they form.
        queries: look-ups that no fingerprint answered, since it was made or loaded.
        candidates: first members that these were compared with; all groups would be exact too.
        most_candidates: in one look-up.
    """

    failures: int
    groups: int
    queries: int
    candidates: int
    most_candidates: int


class FailureIndex:
    """Groups failures as they come: equal fingerprints, else the nearest group that is the same.

    Nearest is the first member whose whole site overlaps most, above the threshold, if it is also
    the same failure by the other rules of `loki.same_failure`. Groups never merge later. The answer
    equals comparing with every group. Safe from many threads at once.

    Args:
        threshold: the overlap above which failures are alike, 0 to 1.

    Raises:
        ValueError: the threshold is outside 0 to 1.

    Example:
        >>> index = FailureIndex()
        >>> index.add("KeyError: 'port' is not in settings of node 17", "monday")
        0
        >>> index.add("KeyError: 'port' is not in settings of node 23", "tuesday")
        0
        >>> index.keys(0)
        ['monday', 'tuesday']
    """

    __slots__ = ("_core",)

    def __init__(self, threshold: float = 0.8) -> None:
        self._core = _core.FailureIndex(threshold)

    @property
    def threshold(self) -> float:
        """The overlap above which failures are alike."""
        return self._core.threshold

    def __len__(self) -> int:
        return self.report().groups

    def add(self, failure: Text | Failure, key: str) -> int:
        """Adds a failure and says in which group it is.

        Args:
            failure: output of a tool, or a `loki.Failure`.
            key: what you know it by; it may come more than once.

        Returns:
            The group's number, from 0.

        Raises:
            TypeError: the key is no str.
        """
        return self._core.add(as_failure(failure).site(), _key(key))

    def add_many(
        self,
        failures: Iterable[Text | Failure],
        keys: Iterable[str],
        *,
        patterns: PatternSet | None = None,
        threads: int = 0,
    ) -> list[int]:
        """Adds many, in the order of their fingerprints: their own order does not matter.

        Args:
            failures: outputs of tools, or `loki.Failure` objects.
            keys: one for each.
            patterns: the set to recognize outputs with; the built-in one by default.
            threads: how many to use; 0 for as many as the machine has.

        Returns:
            The group of each.

        Raises:
            ValueError: there are more or fewer keys than failures, or `threads` is below 0.
            TypeError: a key is no str, a failure neither text nor `loki.Failure`.
        """
        many, names = listed(failures), listed(keys)
        known = patterns or PatternSet.default()
        count = thread_count(threads)
        kinds = set(map(type, many))
        for odd in set(map(type, names)) - {str}:
            raise TypeError(f"found {odd.__name__} as a key, expected str")
        if Failure not in kinds:
            return self._core.add_texts(site.rules(), known.core, many, names, count)
        if len(kinds) > 1:
            many = [f if isinstance(f, Failure) else recognize(f, patterns=known) for f in many]
        return self._core.add_failures(many, names, count)

    def nearest(self, failure: Text | Failure, count: int = 1) -> list[Neighbor]:
        """Groups whose first member overlaps above the threshold, nearest first.

        Of equal ones the oldest is first. Groups that the failure contradicts (other tests, another
        code) are left out.

        Raises:
            ValueError: `count` is below 0.
        """
        if count < 0:
            raise ValueError(f"found a count of {count}, expected 0 or more")
        found = self._core.nearest(as_failure(failure).site(), count)
        return [Neighbor(*neighbor) for neighbor in found]

    def keys(self, group: int) -> list[str]:
        """Keys of a group's members, in the order in which they were added.

        Raises:
            ValueError: there is no such group.
        """
        if group < 0:
            raise ValueError(f"there is no group {group}, expected 0 or more")
        return self._core.keys(group)

    def report(self) -> IndexReport:
        """What it holds, and how many comparisons its look-ups cost."""
        return IndexReport(*self._core.report())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a file, whole or not at all; makes the folders that lack.

        Raises:
            StoreError: the file cannot be written.
        """
        write_atomic(path, self._core.save())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> FailureIndex:
        """Reads what `save` wrote.

        Raises:
            StoreError: the file cannot be read, or holds something else.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise StoreError(f"Could not read {path}: {error.strerror}") from error
        index = FailureIndex.__new__(FailureIndex)
        try:
            index._core = _core.FailureIndex.load(data)
        except ValueError as error:
            raise StoreError(f"Could not read {path}, {error}") from None
        return index
