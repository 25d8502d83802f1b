"""The pattern engine of others: what their packages make of the same pattern file, over bytes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from benchmarks.scoring import MOST_HITS, Definition, Hit, Probe, Scores, required, score

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class AhoCorasickAndRe2:
    """`ahocorasick_rs` finds all literals, `google-re2` judges the lines that hold a regex's own."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        import ahocorasick_rs
        import re2

        self._definition = Definition.of(document)
        self._uses: list[list[tuple[int, str, Any]]] = []
        self._everywhere: list[tuple[int, Any]] = []
        self._index: dict[bytes, int] = {}
        for probe in self._definition.probes:
            if not self._definition.signals[probe.signal].reachable:
                continue
            if probe.kind != "regex":
                self._use(probe.text.lower(), (probe.signal, probe.kind, None))
                continue
            literals = required(probe.text)
            if not literals:
                self._everywhere.append((probe.signal, re2.compile(f"(?m){probe.text}".encode())))
            regex = re2.compile(probe.text.encode()) if literals else None
            for literal in literals:
                self._use(literal, (probe.signal, "regex", regex))
        self._literals = ahocorasick_rs.BytesAhoCorasick(list(self._index))

    def _use(self, literal: str, use: tuple[int, str, Any]) -> None:
        at = self._index.setdefault(literal.encode(), len(self._index))
        if at == len(self._uses):
            self._uses.append([])
        self._uses[at].append(use)

    def literals(self, text: bytes) -> list[tuple[int, int, int]]:
        """The scan alone: (literal, begin, end) of all of them."""
        found: list[tuple[int, int, int]] = self._literals.find_matches_as_indexes(
            text.lower(), overlapping=True
        )
        return found

    def match(self, text: bytes) -> Scores:
        """The patterns that a text shows."""
        counts: dict[int, int] = {}
        hits: list[Hit] = []
        judged: dict[tuple[int, int], int] = {}  # by regex: where the last line that it saw ends
        uses = self._uses
        for literal, begin, end in self.literals(text):
            for signal, kind, regex in uses[literal]:
                if counts.get(signal, 0) == MOST_HITS:
                    continue
                if kind == "regex":
                    hit = _on_line(text, begin, end, signal, regex, judged)
                elif kind == "word" and not _stands_alone(text, begin, end):
                    continue
                else:
                    hit = (signal, begin, end)
                if hit is not None:
                    counts[signal] = counts.get(signal, 0) + 1
                    hits.append(hit)
        for signal, regex in self._everywhere:
            left = MOST_HITS - counts.get(signal, 0)
            found = islice(regex.finditer(text), left)
            hits += [(signal, match.start(), match.end()) for match in found]
        return score(self._definition, hits)


def _on_line(
    text: bytes, begin: int, end: int, signal: int, regex: Any, judged: dict[tuple[int, int], int]
) -> Hit | None:
    """What a regex finds on the line of a literal that it needs, once for each line."""
    seen = (signal, id(regex))
    if begin < judged.get(seen, 0):
        return None
    line_begin = text.rfind(b"\n", 0, begin) + 1
    line_end = text.find(b"\n", end)
    judged[seen] = line_end = len(text) if line_end < 0 else line_end
    match = regex.search(text[line_begin:line_end])
    return match and (signal, line_begin + match.start(), line_begin + match.end())


def _stands_alone(text: bytes, begin: int, end: int) -> bool:
    return not (begin > 0 and text[begin] in _WORD and text[begin - 1] in _WORD) and not (
        end < len(text) and text[end - 1] in _WORD and text[end] in _WORD
    )


class Hyperscan:
    """One database of all literals, words and regexes; each is reported once, without its begin.

    It says which signals a text holds. Where they begin (for nested evidence) would cost it more;
    so it does a little less than the others.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        import hyperscan

        self._definition = Definition.of(document)
        probes = [
            (number, probe)
            for number, probe in enumerate(self._definition.probes)
            if self._definition.signals[probe.signal].reachable
        ]
        single = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_MULTILINE
        folded = single | hyperscan.HS_FLAG_CASELESS
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=[_expression(probe) for _, probe in probes],
            ids=[number for number, _ in probes],
            elements=len(probes),
            flags=[single if probe.kind == "regex" else folded for _, probe in probes],
        )

    def match(self, text: bytes) -> Scores:
        """The patterns that a text shows."""
        found: list[int] = []
        self._database.scan(text, match_event_handler=_collect, context=found)
        probes = self._definition.probes
        # Ends would not help against nesting; so each hit stands for itself.
        return score(self._definition, [(probes[n].signal, n, n + 1) for n in found])


def _collect(number: int, _begin: int, _end: int, _flags: int, context: list[int]) -> None:
    context.append(number)


_SPECIAL = frozenset(r"\.^$*+?{}[]()|/-")


def _expression(probe: Probe) -> bytes:
    if probe.kind == "regex":
        return probe.text.encode()
    quoted = "".join(f"\\{c}" if c in _SPECIAL else c for c in probe.text)
    if probe.kind == "word":
        left = r"\b" if probe.text[0].isalnum() or probe.text[0] == "_" else ""
        right = r"\b" if probe.text[-1].isalnum() or probe.text[-1] == "_" else ""
        quoted = left + quoted + right
    return quoted.encode()
