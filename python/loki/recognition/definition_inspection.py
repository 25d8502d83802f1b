"""Whether a definition file can be used, and whether it does what it says.

`inspect` finds everything: what is wrong with the text, the shape and the regexes; what is right but
cannot be meant so; and examples, near misses and samples that do not come out as the file says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loki import _core
from loki.base.error import ConfigError
from loki.recognition import (
    definition_file,
    definition_schema,
    definition_validation,
    failure,
    place_folder,
    site,
)
from loki.recognition.definition_file import Cursor, Document
from loki.recognition.pattern import LEAST, Pattern, PatternSet, weight

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a definition file.

    Attributes:
        severity: ``"error"``: the file cannot be used; ``"warning"``: it can, and is hardly meant
            so; ``"example"``: it can, and an example does not come out as it says.
        file: its name.
        line: from 1; 0 where the file could not be read.
        column: likewise.
        reason: what was found, what was expected.
    """

    severity: str
    file: str
    line: int
    column: int
    reason: str

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{where}: {'warning: ' * (self.severity == 'warning')}{self.reason}"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What became of one file.

    Attributes:
        file: its name.
        kind: ``"patterns"``, ``"tool"``, or empty where that cannot be told.
        findings: in the order of the text.
        counts: what was checked, by name; empty where the file cannot be used.
    """

    file: str
    kind: str
    findings: tuple[Finding, ...]
    counts: dict[str, int]

    def of(self, severity: str) -> list[Finding]:
        """The findings of one severity."""
        return [finding for finding in self.findings if finding.severity == severity]


def inspect(content: str | bytes, name: str) -> Inspection:
    """Everything that is wrong with a pattern file or a tool file.

    Args:
        content: the YAML.
        name: what findings call it.

    Example:
        >>> found = inspect("version: 2\\npaterns: []\\n", "mine.yml")
        >>> print(found.findings[0])  # doctest: +ELLIPSIS
        mine.yml:2:1: found unknown key 'paterns', expected one of ...; did you mean 'patterns'?
    """
    document = definition_file.examine(content, name, _either)
    kind = "tool" if _is_tool(document) else "patterns"
    problems = _problems(document, kind)
    if problems:
        return Inspection(name, kind, _findings("error", problems), {})
    odd = _tool_warnings(document) if kind == "tool" else _pattern_warnings(document)
    wrong = _samples(document) if kind == "tool" else examples(document)
    findings = (*_findings("warning", odd), *_findings("example", wrong))
    ordered = sorted(findings, key=lambda one: (one.line, one.column))
    return Inspection(name, kind, tuple(ordered), _counts(document))


def unreadable(problem: ConfigError) -> Inspection:
    """What became of a file that could not be read."""
    return Inspection(problem.file, "", _findings("error", [problem]), {})


def _findings(severity: str, problems: Any) -> tuple[Finding, ...]:
    return tuple(Finding(severity, p.file, p.line, p.column, p.reason) for p in problems)


def _either(cursor: Cursor) -> Any:
    """A tool file has a tool or blocks; all else is read as a pattern file."""
    entries = cursor.entries("a pattern file or a tool file: a mapping")
    is_tool = bool({"tool", "blocks", "detect"} & set(entries))
    return (
        definition_schema.tool_file(cursor) if is_tool else definition_schema.pattern_file(cursor)
    )


def _is_tool(document: Document) -> bool:
    return any(f"/{key}" in document.nodes for key in ("tool", "blocks", "detect"))


def _problems(document: Document, kind: str) -> list[ConfigError]:
    if document.problems:
        return definition_validation.ordered_errors(
            [*document.problems, *definition_validation.regex_errors(document).values()]
        )
    return (
        definition_validation.tool_errors(document)
        if kind == "tool"
        else definition_validation.pattern_errors(document)
    )


def _counts(document: Document) -> dict[str, int]:
    value = document.value
    if "tool" in value:
        counted = {key: len(value.get(key, [])) for key in ("blocks", "samples")}
        return {**counted, "regexes": len(document.regexes)}
    patterns = value.get("patterns", [])
    return {
        "patterns": len(patterns),
        "signals": sum(len(entry["signals"]) for entry in patterns),
        "strategies": len(value.get("strategies", {})),
        "examples": sum(len(entry.get("examples", [])) for entry in patterns),
        "near misses": sum(len(entry.get("near_misses", [])) for entry in patterns),
    }


# --- pattern files --------------------------------------------------------------------------


def examples(document: Document) -> Iterator[ConfigError]:
    """Examples that their pattern does not match best, near misses that it matches."""
    known = PatternSet.of(document.value)
    for index, entry in enumerate(document.value.get("patterns", [])):
        for where, reason in wrong_examples(known, known.patterns[entry["id"]]):
            yield document.error(f"/patterns/{index}/{where}", reason)


def wrong_examples(known: PatternSet, pattern: Pattern) -> Iterator[tuple[str, str]]:
    """The same of one pattern: (where in it, what was found and expected)."""
    name = pattern.id
    for number, text in enumerate(pattern.examples):
        matches = known.match(text, pattern.language)
        if not matches or matches[0].pattern != name:
            found = f"best by {matches[0].pattern!r}" if matches else "by nothing"
            reason = f"found an example that is matched {found}, expected {name!r}"
            yield f"examples/{number}", reason
    for number, text in enumerate(pattern.near_misses):
        match = next((m for m in known.match(text, pattern.language) if m.pattern == name), None)
        if match:
            why = f"{match.confidence:.2f} by {', '.join(map(repr, match.signals))}"
            reason = f"found a near miss that {name!r} matches ({why}), expected no match"
            yield f"near_misses/{number}", reason


def _pattern_warnings(document: Document) -> Iterator[ConfigError]:
    value = document.value
    patterns = value.get("patterns", [])
    if not patterns:
        yield document.error("/patterns", "found no patterns, expected 1 or more")
    for index, entry in enumerate(patterns):
        where = f"/patterns/{index}"
        yield from _signal_warnings(document, entry, value["version"], f"{where}/signals")
        for number, strategy in enumerate(entry.get("alternatives", [])):
            if strategy == entry["strategy"]:
                reason = (
                    f"found {strategy!r}, which is the pattern's strategy, expected another one"
                )
                yield document.error(f"{where}/alternatives/{number}", reason)
        if entry.get("non_retryable") and entry.get("max_auto_retries"):
            reason = "found retries for a pattern that is never retried, expected 0"
            yield document.error(f"{where}/max_auto_retries", reason)
    bare = [index for index, entry in enumerate(patterns) if not entry.get("examples")]
    if bare:
        names = [patterns[index]["id"] for index in bare]
        shown = ", ".join(names[:_SHOWN]) + ("" if len(names) <= _SHOWN else ", …")
        reason = f"found no examples for {shown}, expected 1 or more each: texts that it must match"
        yield document.error(f"/patterns/{bare[0]}", reason)


def _signal_warnings(
    document: Document, entry: dict[str, Any], version: int, where: str
) -> Iterator[ConfigError]:
    signals = entry["signals"]
    for number, signal in enumerate(signals):
        if signal in signals[:number]:
            reason = "found this signal a second time, expected each once"
            yield document.error(f"{where}/{number}", reason)
    if version == 1:
        needed = math.ceil(LEAST * len(signals))
        if needed > 1:
            yield document.error(
                where,
                f"found {len(signals)} signals, of which {needed} must hit at once to reach "
                f"{LEAST:.2f}; expected 3 or fewer, or version 2",
            )
    elif all("not" in signal or (weight(signal) or 0) < LEAST for signal in signals):
        reason = (
            f"found only signals under {LEAST}, which alone never match, expected a stronger one"
        )
        yield document.error(where, reason)


# --- tool files -----------------------------------------------------------------------------


def _tool_warnings(document: Document) -> Iterator[ConfigError]:
    value = document.value
    known = [*site.tools(), value["tool"]]
    blocks = value.get("blocks", [])
    named = [("/over", value.get("over", []))]
    named += [(f"/blocks/{i}/nests", block.get("nests", [])) for i, block in enumerate(blocks)]
    for where, names in named:
        for number, name in enumerate(names):
            if name not in known:
                reason = f"found {name!r}, expected the name of a tool"
                yield document.error(
                    f"{where}/{number}", reason + definition_file.did_you_mean(name, known)
                )
    kinds = {pattern.kind for pattern in PatternSet.default().patterns.values()}
    said = [("/kind", value.get("kind"))]
    said += [(f"/blocks/{i}/kind", block.get("kind")) for i, block in enumerate(blocks)]
    for where, kind in said:
        if kind is not None and kind not in kinds:
            reason = f"found {kind!r}, expected a kind of failure that a built-in pattern is of"
            yield document.error(where, reason + definition_file.did_you_mean(kind, sorted(kinds)))
    for index, block in enumerate(blocks):
        if "opens" in block and not block.get("closes"):
            reason = (
                "found 'opens' on a block that closes no step, expected 'closes: true' beside it"
            )
            yield document.error(f"/blocks/{index}/opens", reason)
    if not value.get("samples"):
        yield document.error("", "found no samples, expected 1 or more: outputs, and what they say")


def _samples(document: Document) -> Iterator[ConfigError]:
    """Samples from which something else is read than they say."""
    rules, known = site.rules_with(document.value), PatternSet.default()
    folders = place_folder.rules_with(document.value)
    for index, sample in enumerate(document.value.get("samples", [])):
        context = sample.get("command", ""), sample.get("root", ""), ""
        found = failure.described(
            _core.recognize(rules, known.core, sample["text"], *context), known, None
        )
        found = place_folder.with_folders(found, sample["text"], context[1], known=folders)
        where = f"/samples/{index}/expect"
        for key, actual, expected in differences(found, sample["expect"]):
            reason = f"found {key} {actual!r} in sample {sample['name']!r}, expected {expected!r}"
            yield document.error(f"{where}/{key}", reason)


def differences(found: failure.Failure, expect: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(field, what came, what was said) where these differ.

    What a sample does not say must not be read from it; kind, language and line are looked at
    only where it says them.
    """
    plain = ("tool", "error_type", "error_code", "message", "path", "line", "column")
    said = [key for key in ("kind", "language", "output_line") if key in expect]
    actual: dict[str, Any] = {key: getattr(found, key) for key in (*plain, *said)}
    actual.update(frames=len(found.frames), tests=list(found.tests))
    return [
        (key, value, expect.get(key))
        for key, value in actual.items()
        if (value or None) != (expect.get(key) or None)
    ]
