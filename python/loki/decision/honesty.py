"""Rationalizations and red flags in what agents say: found by rules, answered by what to do instead.

The rules are data, in ``honesty.yml``; the pattern engine of recognition matches them. Pure, total,
linear in the message. What is found is a nudge, never a verdict: checks decide, words do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from loki import _core
from loki.decision.prose import Sentence, folded_prose, sentences

RATIONALIZATION = "rationalization"
"""The family of the twelve; a red flag is its own family."""

CLOSING = "closing"
"""The context by which a message ends, or goes on to something else."""

FILE = Path(__file__).with_suffix(".yml")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rationalization, or a family of red flags.

    Attributes:
        id: its name, such as ``edge-case``.
        family: ``rationalization``, or the id of the family of red flags.
        name: what it is called.
        why: why it is wrong, a sentence.
        action: what is required instead, a sentence.
        unless: contexts that make it honest in the same sentence; unless_near: also in those
            beside it, in the same paragraph and at its borders; unless_message: anywhere.
        examples: messages that it is found in; counter_examples: messages that it is not found in.
    """

    id: str
    family: str
    name: str
    why: str
    action: str
    unless: frozenset[str] = frozenset()
    unless_near: frozenset[str] = frozenset()
    unless_message: frozenset[str] = frozenset()
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A rationalization or a red flag in a message.

    Attributes:
        id: of the rule, such as ``flaky-tests``.
        family: ``rationalization``, ``hedging``, ``minimizing``, ``scope-change``,
            ``skipped-verification`` or ``unverified-claim``.
        span: where the telling words stand in the message, (begin, end) in code points.
        quote: the sentence that they stand in, as it was written.
        why: why it is wrong.
        action: what is required instead.
    """

    id: str
    family: str
    span: tuple[int, int]
    quote: str
    why: str
    action: str


class Rules:
    """All rules, claims and contexts, compiled; immutable."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Args: definition: what ``honesty.yml`` holds.

        Raises:
            ValueError: a rule names a context or a word that there is none of, a regex is refused.
        """
        words = {f"<{name}>": text for name, text in definition["words"].items()}
        entries = [*definition["rationalizations"], *definition["red_flags"]]
        contexts, claims = definition["contexts"], definition["claims"]
        twelve = len(definition["rationalizations"])
        rules = [
            _rule(entry, RATIONALIZATION if index < twelve else entry["id"])
            for index, entry in enumerate(entries)
        ]
        self.rules: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in rules})
        self._claims = {claim["id"]: frozenset(claim["unless"]) for claim in claims}
        everything = (*entries, *contexts, *claims)
        self._names = [entry["id"] for entry in everything]
        known = {context["id"] for context in contexts}
        for entry in (*entries, *claims):
            unknown = {name for key in _UNLESS for name in entry.get(key, ())} - known
            if unknown:
                raise ValueError(f"{entry['id']} names no context: {sorted(unknown)}")
        self._sentences = _compiled(everything, words)
        self._message = _compiled(contexts, words)

    def scan(self, message: str) -> list[Finding]:
        """What a message shows, in its order; at most one of a rule in a sentence."""
        parts = sentences(message)
        hits = [self._hits(sentence) for sentence in parts]
        if not any(hit.keys() & self.rules.keys() for hit in hits):
            return []
        anywhere = self._contexts(message)
        found = []
        for index, (sentence, hit) in enumerate(zip(parts, hits, strict=True)):
            for name in hit.keys() & self.rules.keys():
                rule = self.rules[name]
                if rule.unless_message & anywhere or rule.unless & hit.keys():
                    continue
                if rule.unless_near & _near(hits, index) and not _is_closed(hits, index):
                    continue
                begin, end = (sentence.begin + at for at in hit[name])
                quote = message[sentence.begin : sentence.end]
                found.append(Finding(name, rule.family, (begin, end), quote, rule.why, rule.action))
        return sorted(found, key=lambda finding: (finding.span, finding.id))

    def claimed(self, message: str) -> list[tuple[str, tuple[int, int]]]:
        """What a message says of checks, in its order: (id, span of the sentence)."""
        found = []
        for sentence in sentences(message):
            hit = self._hits(sentence)
            found += [
                (name, (sentence.begin, sentence.end))
                for name, unless in self._claims.items()
                if name in hit and not unless & hit.keys()
            ]
        return found

    def _hits(self, sentence: Sentence) -> dict[str, tuple[int, int]]:
        """Rule or context to where it hits first."""
        matches = self._sentences.match(sentence.text, "")
        return {
            self._names[index]: min((begin, end) for _, begin, end in places)
            for index, _, _, places in matches
        }

    def _contexts(self, message: str) -> set[str]:
        first = len(self.rules)
        return {
            self._names[first + index]
            for index, _, _, _ in self._message.match(folded_prose(message), "")
        }


def scan_message(message: str) -> list[Finding]:
    """The rationalizations and red flags in what an agent says, in the order of the message.

    Code (fenced, indented, inline) and quotations are left alone: they are not the agent's own words.

    Args:
        message: any text, Markdown where it has marks; of any size.

    Example:
        >>> for finding in scan_message("Done. One test is flaky."):
        ...     print(finding.id, "→", finding.action)
        flaky-tests → Find out why the test fails now and then, and mend that, before going on.
    """
    return rules().scan(message)


@cache
def rules() -> Rules:
    """The built-in rules."""
    return Rules(yaml.load(FILE.read_text("utf-8"), Loader=_Loader))  # noqa: S506 - a safe loader


def _rule(entry: Mapping[str, Any], family: str) -> Rule:
    return Rule(
        entry["id"],
        family,
        entry["name"],
        entry["why"],
        entry["action"],
        frozenset(entry.get("unless", ())),
        frozenset(entry.get("unless_near", ())),
        frozenset(entry.get("unless_message", ())),
        tuple(entry["examples"]),
        tuple(entry["counter_examples"]),
    )


_UNLESS = ("unless", "unless_near", "unless_message")
_BLANKS = ((" ?", r"\s*"), (" *", r"\s*"), (" ", r"\s+"))


def _compiled(entries: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> _core.PatternSet:
    def signal(given: str | Mapping[str, Any]) -> dict[str, Any]:
        written = {"regex": given} if isinstance(given, str) else dict(given)
        text: str = written["regex"]
        for name, meaning in (*words.items(), *_BLANKS):
            text = text.replace(name, meaning)
        return {**written, "regex": text}

    patterns = [
        {"id": entry["id"], "signals": [signal(given) for given in entry["signals"]]}
        for entry in entries
    ]
    return _core.PatternSet(json.dumps({"version": 2, "patterns": patterns}))


def _is_closed(hits: list[dict[str, tuple[int, int]]], index: int) -> bool:
    """Whether the next sentence only says that it is over: what stands before it mends nothing of it."""
    return index + 1 < len(hits) and CLOSING in hits[index + 1]


def _near(hits: Sequence[Mapping[str, Any]], index: int) -> frozenset[str]:
    """What hits in a sentence, and in the one before and behind it."""
    return frozenset().union(*(hit.keys() for hit in hits[max(0, index - 1) : index + 2]))
