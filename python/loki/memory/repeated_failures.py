"""Which attempts failed the way an earlier attempt of the same execution did: time that led nowhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator


def repeats(
    attempts: Iterable[tuple[Hashable, Hashable | None]],
) -> Iterator[bool]:
    """Whether each attempt repeats a failure.

    Equal fingerprints count, and they alone: failures that `loki.same_failure` calls the same though
    their texts differ a little are left out, so that the answer is a lower bound, and quick.

    Args:
        attempts: of each, in order, its execution and the fingerprint of its failure; None where it
            did not fail, or where infrastructure failed it.

    Example:
        >>> list(repeats([("a", "f1"), ("a", "f2"), ("a", "f1"), ("b", "f1"), ("a", None)]))
        [False, False, True, False, False]
    """
    seen: set[tuple[Hashable, Hashable]] = set()
    for execution, fingerprint in attempts:
        if fingerprint is None:
            yield False
            continue
        yield (execution, fingerprint) in seen
        seen.add((execution, fingerprint))
