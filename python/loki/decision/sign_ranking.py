"""Which signs of a branch bear on a task, and in which order; pure.

A branch is shared by tasks: what one of them ran into says little to another, and much where they meet in
a failure, a file or a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from loki.decision.drift.task_relation import alike, in_scope, path_words, words_of
from loki.memory.sign import Seen, Sighting
from loki.recognition.failure import Failure
from loki.recognition.similarity import same_failure

COMMON = words_of(
    "test tests spec check error exception failed failure fails assert assertion expected actual got "
    "received found missing value values type object attribute key index name line file src lib app main"
)
"""Words of failures, whatever they are about."""

FEW, SHARE = 2, 0.25
"""Signs that may have a word in common with which it still tells, and their share of all. Chosen."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a task is about, as far as it is known.

    Attributes:
        task: its id.
        words: its title, and what people said of it.
        failures: that it has to mend, where there are any.
        files: that it has changed, or whose change was proposed.
        scope: files, folders and globs that it names.
    """

    task: str
    words: str
    failures: Sequence[Failure | None] = ()
    files: Collection[str] = ()
    scope: Sequence[str] = ()


def bearing(seen: Seen, subject: Subject) -> tuple[list[Sighting], Sequence[Sighting]]:
    """Of all that was seen, the signs that bear on a task, and those that come back in turn.

    Args:
        seen: what was seen on the branch.
        subject: the task.
    """
    signs, cycle = related(seen.signs, subject), seen.cycle
    return signs, cycle if any(one in signs for one in cycle) else ()


def related(signs: Sequence[Sighting], subject: Subject) -> list[Sighting]:
    """The signs that bear on a task: of its failure, its own, of its files, of its words.

    Args:
        signs: newest first; of signs that bear alike the newer one comes first.
        subject: the task.
    """
    failures = [one for one in subject.failures if one is not None]
    files = {*subject.files, *(path for one in failures for path in _files(one))}
    said = [
        subject.words,
        *(one.said for one in failures),
        *(t for one in failures for t in one.tests),
    ]
    words = words_of("\n".join(said)).union(*map(path_words, files))
    known = [_words(sign.failure) for sign in signs]
    # What many signs say tells none of them from the others.
    times = Counter(word for one in known for word in one)
    told = [{word for word in one if times[word] <= max(FEW, len(signs) * SHARE)} for one in known]
    ranked = [
        (_bearing(sign, own, subject, files, words), sign)
        for sign, own in zip(signs, told, strict=True)
    ]
    bearing = [one for one in ranked if any(one[0])]
    return [sign for _, sign in sorted(bearing, key=lambda one: one[0], reverse=True)]


def _bearing(
    sign: Sighting,
    said: Collection[str],
    subject: Subject,
    files: Collection[str],
    words: Collection[str],
) -> tuple[bool, bool, int, int]:
    """How much a sign bears on it: the same failure, its own, files in common, words in common."""
    known = sign.failure
    named = _files(known)
    shared = sum(path in files or _is_named(path, subject.scope) for path in named)
    return (
        any(one is not None and same_failure(known, one) for one in subject.failures),
        subject.task in sign.tasks,
        shared,
        len(alike(said, words)),
    )


def _is_named(path: str, scope: Sequence[str]) -> bool:
    return bool(scope) and in_scope(path, scope)


def _words(failure: Failure) -> frozenset[str]:
    """What a failure is about: its type is of many."""
    said = words_of("\n".join((failure.message, *failure.tests)))
    return (
        said.union(*map(path_words, _files(failure))) - COMMON - words_of(failure.error_type or "")
    )


def _files(failure: Failure) -> list[str]:
    """The project's files that a failure names."""
    frames = (frame.path for frame in failure.frames if frame.in_project)
    tests = (test.partition("::")[0] for test in failure.tests)
    named = (failure.path, *frames, *(path for path in tests if "." in path))
    return list(dict.fromkeys(path for path in named if path))
