"""Which of the six triggers of an escalation a task shows, each with its evidence. Pure.

What a word, a command or a path says is data: ``escalation-triggers.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from loki.recognition.failure import Failure
from loki.recognition.grouping import FailureIndex

SECURITY, DATA_LOSS, SHARED_CAUSE = "security_critical", "data_loss", "shared_root_cause"
LOW_CONFIDENCE, THIRD_PARTY, AMBIGUOUS = "low_confidence", "third_party", "ambiguous_spec"

NAMES = (SECURITY, DATA_LOSS, SHARED_CAUSE, LOW_CONFIDENCE, THIRD_PARTY, AMBIGUOUS)
"""In the order in which the specification names them; the first one that holds is a page's trigger."""

SHARED = 3
"""Tasks with one root cause that make it a person's concern. Source: the specification."""

LEAST_CONFIDENCE = 0.30
"""Under it nobody knows how the task is to be recovered. Source: the specification."""

SURE = 0.5
"""Confidence from which a pattern counts; as in the loop's own rules."""

READINGS = 2
"""A specification with as many valid readings is ambiguous."""

MOST_EVIDENCE = 8
"""Lines of evidence of one trigger; chosen, not measured."""

MOST_TEXT = 20_000
"""Characters of a task's words that are looked at; chosen, so that no task holds a review up."""

MOST_SENTENCE = 400
"""Characters of a sentence that are looked at; chosen, so that no text takes long."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of a task that failed.

    Attributes:
        task_id: the task.
        title, description: what it is about, in a person's words.
        kind: bug_fix, security, …; "" where nobody said.
        tags: of the task.
        failure: the last failure, or None.
        commands: that it ran or is to run.
        files: that it changed or is about.
        confidence: 0 to 1 that the recovery strategy is the right one; None where nobody said.
        readings: valid readings of its specification, where somebody found several.
        same_cause: ids of all tasks that fail for the same reason, its own included.
    """

    task_id: str
    title: str = ""
    description: str = ""
    kind: str = ""
    tags: tuple[str, ...] = ()
    failure: Failure | None = None
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    confidence: float | None = None
    readings: tuple[str, ...] = ()
    same_cause: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger that a task shows.

    Attributes:
        name: one of `NAMES`.
        reason: one sentence.
        evidence: what speaks for it, a line each.
        others: ids of the other tasks that it is about.
    """

    name: str
    reason: str
    evidence: tuple[str, ...]
    others: tuple[str, ...] = ()


def triggers(case: Case) -> list[Trigger]:
    """The triggers that a task shows, in the order of `NAMES`.

    Args:
        case: the task.

    Example:
        >>> found = triggers(Case("t", "Rotate the signing key", files=("src/auth/keys.py",)))
        >>> [(trigger.name, trigger.evidence) for trigger in found]
        [('security_critical', ('its words: signing key', 'its files: src/auth/keys.py'))]
    """
    found = (rule(case) for rule in _RULES)
    return [trigger for trigger in found if trigger is not None]


def shared_causes(failures: Mapping[str, Failure]) -> dict[str, tuple[str, ...]]:
    """The tasks that fail for one reason, `SHARED` or more of them, by each of them.

    Args:
        failures: the last failure of each task. Unspecific ones are the cause of nothing.

    Returns:
        By task the sorted ids of all with its root cause; tasks with fewer are not in it.

    Example:
        >>> from loki import recognize
        >>> text = "ModuleNotFoundError: No module named 'quantum_flux'"
        >>> sorted(shared_causes({name: recognize(text) for name in "abc"}))
        ['a', 'b', 'c']
    """
    kept = {task: failure for task, failure in sorted(failures.items()) if failure.is_specific}
    index = FailureIndex()
    groups = index.add_many(list(kept.values()), list(kept)) if kept else []
    members = (tuple(sorted(index.keys(group))) for group in dict.fromkeys(groups))
    return {task: tasks for tasks in members if len(tasks) >= SHARED for task in tasks}


# --- the rules, one to a trigger ------------------------------------------------------------------


def _security(case: Case) -> Trigger | None:
    known = _knowledge()[SECURITY]
    evidence = [f"its kind: {case.kind}"] if case.kind in known.kinds else []
    evidence += _by_pattern(case.failure, known)
    evidence += [*_named("its words", known.words_in(case)), *_in_paths(case, known)]
    why = "a security-critical task fails, and what is done about it is a person's decision"
    return _trigger(SECURITY, why, evidence)


def _data_loss(case: Case) -> Trigger | None:
    known = _knowledge()[DATA_LOSS]
    commands = [one for one in case.commands if known.runs(one)]
    evidence = [*_named("its words", known.words_in(case)), *_in_paths(case, known)]
    evidence += [f"it says: {said}" for said in known.sentences_in(case)]
    evidence += [f"its command: {one}" for one in commands]
    why = "data may be lost: trying it once more can make it worse"
    return _trigger(DATA_LOSS, why, evidence)


def _shared(case: Case) -> Trigger | None:
    if len(case.same_cause) < SHARED or case.task_id not in case.same_cause:
        return None
    others = tuple(task for task in case.same_cause if task != case.task_id)
    why = f"{len(case.same_cause)} tasks fail for one reason, which none of them will mend alone"
    message = case.failure.message if case.failure else ""
    evidence = [f"they all fail with: {message}", f"the tasks: {', '.join(case.same_cause)}"]
    return Trigger(SHARED_CAUSE, why, tuple(evidence), others)


def _low_confidence(case: Case) -> Trigger | None:
    if case.confidence is None or case.confidence >= LEAST_CONFIDENCE:
        return None
    why = "nobody can say with confidence how the task is to be recovered"
    told = f"confidence {case.confidence:.2f}, under {LEAST_CONFIDENCE:.2f}"
    return Trigger(LOW_CONFIDENCE, why, (told,))


def _third_party(case: Case) -> Trigger | None:
    evidence = _by_pattern(case.failure, _knowledge()[THIRD_PARTY])
    why = "it needs keys, rights or an action of a third party, which no agent can give itself"
    return _trigger(THIRD_PARTY, why, evidence)


def _ambiguous(case: Case) -> Trigger | None:
    readings = list(dict.fromkeys(case.readings))
    if len(readings) < READINGS:
        return None
    why = "its specification can be read in several ways, and only a person can say which is meant"
    return _trigger(AMBIGUOUS, why, [f"one reading: {reading}" for reading in readings])


_RULES: tuple[Callable[[Case], Trigger | None], ...] = (
    _security,
    _data_loss,
    _shared,
    _low_confidence,
    _third_party,
    _ambiguous,
)


def _trigger(name: str, reason: str, evidence: Sequence[str]) -> Trigger | None:
    return Trigger(name, reason, tuple(evidence[:MOST_EVIDENCE])) if evidence else None


def _named(what: str, found: Iterable[str]) -> list[str]:
    named = ", ".join(dict.fromkeys(found))
    return [f"{what}: {named}"] if named else []


def _in_paths(case: Case, known: Knowledge) -> list[str]:
    path = case.failure.path if case.failure else None
    paths = dict.fromkeys([*case.files, *([path] if path else [])])
    return _named("its files", (path for path in paths if known.is_in(path)))


def _by_pattern(failure: Failure | None, known: Knowledge) -> list[str]:
    match = failure.match if failure else None
    if failure is None or match is None or match.confidence < SURE:
        return []
    if not known.patterns & {match.pattern, match.kind}:
        return []
    return [f"its last failure is of kind {match.kind}: {failure.said}"]


# --- what words, paths and commands say -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the file says of a trigger."""

    kinds: frozenset[str]
    patterns: frozenset[str]
    words: re.Pattern[str] | None
    paths: frozenset[str]
    commands: tuple[re.Pattern[str], ...]
    sentences: tuple[re.Pattern[str], ...] = ()
    unless: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Knowledge:
        """An entry of the file."""
        words = sorted(map(re.escape, entry.get("words", ())), key=len, reverse=True)
        either = "|".join(word.replace("\\ ", r"\s+") for word in words)
        return cls(
            frozenset(entry.get("kinds", ())),
            frozenset(entry.get("patterns", ())),
            re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE) if words else None,
            frozenset(entry.get("paths", ())),
            tuple(re.compile(text, re.IGNORECASE) for text in entry.get("commands", ())),
            tuple(_sentence(text, entry["named"]) for text in entry.get("sentences", ())),
            tuple(re.compile(text, re.IGNORECASE) for text in entry.get("unless", ())),
        )

    def sentences_in(self, case: Case) -> Iterator[str]:
        """The sentences of a task's words, and of its last failure, that speak for the trigger."""
        failed = case.failure.message if case.failure else ""
        text = "\n".join((case.title, case.description, failed))[:MOST_TEXT]
        for part in re.split(r"(?<=[.!?;])\s+|\n", text):
            said = " ".join(part.replace("`", "").split())[:MOST_SENTENCE]
            if any(one.search(said) for one in self.unless):
                continue
            if any(one.search(said) for one in self.sentences):
                yield said

    def words_in(self, case: Case) -> Iterator[str]:
        """The words of a task that speak for the trigger."""
        text = "\n".join((case.title, case.description, *case.tags))[:MOST_TEXT]
        for found in self.words.finditer(text) if self.words else ():
            yield " ".join(found[0].lower().split())

    def is_in(self, path: str) -> bool:
        """Whether a path names what the trigger is about."""
        parted = re.sub(r"([a-z0-9])([A-Z])", r"\1/\2", path[:MOST_TEXT])
        return not self.paths.isdisjoint(re.split(r"[/_.\-\\ ]+", parted.lower()))

    def runs(self, command: str) -> bool:
        """Whether a command does what the trigger is about."""
        return any(one.search(command[:MOST_TEXT]) for one in self.commands)


def _sentence(text: str, named: Mapping[str, str]) -> re.Pattern[str]:
    for name, meaning in named.items():
        text = text.replace(f"<{name}>", meaning)
    return re.compile(text, re.IGNORECASE)


@cache
def _knowledge() -> Mapping[str, Knowledge]:
    text = (Path(__file__).parent / "escalation-triggers.yml").read_text("utf-8")
    data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    return {name: Knowledge.of(entry) for name, entry in data.items()}
