"""Whether a definition file can be used, and whether it does what it says.

The core stops at the first thing that it refuses, so its parts are put to it one by one. `inspect` finds
everything: what is wrong with the text or the shape; what the core refuses of what is right in shape; what
is right but cannot be meant so; and examples, near misses and samples that do not come out as the file says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from loki import _core
from loki.base.error import ConfigError
from loki.base.text_format import did_you_mean
from loki.base.yaml_document import MOST_PROBLEMS, Document
from loki.recognition import failure, site
from loki.recognition.definition_schema import (
    Definition,
    ToolFile,
    model_of,
    pattern_model,
    plain,
)
from loki.recognition.pattern import LEAST, Pattern, PatternSet, core_pattern, weight

_Keys = tuple["str | int", ...]
_Refused = tuple[_Keys, str]
"""The way to what the core refuses, and the reason."""


def checked(
    document: Document, model: type[Definition]
) -> tuple[dict[str, Any], list[ConfigError]]:
    """The data of a file, and all that is wrong with it, in the order of the text.

    Every regex is compiled, so that nothing fails later.
    """
    definition, problems = document.examine(model)
    if definition is None:
        return {}, problems
    value = plain(definition)
    refused = (
        _tool_refusals(value) if isinstance(definition, ToolFile) else _pattern_refusals(value)
    )
    problems = [document.error(*one) for one in islice(refused, MOST_PROBLEMS)]
    return value, sorted(problems, key=lambda problem: (problem.line, problem.column))


def read_patterns(content: str | bytes, name: str) -> dict[str, Any]:
    """The data of a pattern file that can be used.

    Args:
        content: the YAML.
        name: what errors call it.

    Raises:
        ConfigError: the first thing that is wrong, with line and column, what was found, what was expected.
    """
    document = Document(content, name)
    value, problems = checked(document, pattern_model(document.data))
    for problem in problems:
        raise problem
    return value


# --- What the core refuses, each at its place -------------------------------------------------------


def _refused(
    kind: type[_core.PatternSet | _core.SiteRules], definition: Mapping[str, Any]
) -> _Refused | None:
    """The first thing that the core refuses in a definition."""
    try:
        kind(json.dumps(definition)).check()
    except _core.DefinitionError as error:
        where = error.where.split("/")[1:]  # type: ignore[attr-defined]
        return tuple(int(key) if key.isdigit() else key for key in where), error.reason  # type: ignore[attr-defined]
    return None


def _pattern(own: Mapping[str, Any], entries: list[Any]) -> _Refused | None:
    """The first thing that the core refuses in some patterns."""
    patterns = [core_pattern(entry) for entry in entries]
    return _refused(_core.PatternSet, {"version": own["version"], "patterns": patterns})


def _pattern_refusals(own: Mapping[str, Any]) -> Iterator[_Refused]:
    """What is refused in a pattern file: each signal is tried in a pattern of its own, beside a right one."""
    if _pattern(own, own.get("patterns", [])) is None:
        return
    right: Any = "right" if own["version"] == 1 else {"literal": "right"}
    for index, entry in enumerate(own.get("patterns", [])):
        whole = _pattern(own, [entry])
        if whole is None:
            continue
        single = False
        for number, signal in enumerate(entry["signals"]):
            refused = _pattern(own, [{**entry, "signals": [signal, right]}])
            if refused:
                single = True
                yield ("patterns", index, "signals", number, *refused[0][4:]), refused[1]
        if not single:
            yield ("patterns", index, *whole[0][2:]), whole[1]


def _tool_refusals(whole: Mapping[str, Any]) -> Iterator[_Refused]:
    """The same in a tool file: each block and each link by itself, and what stands beside them."""
    tool = {key: entry for key, entry in whole.items() if key != "samples"}
    if _tool(tool) is None:
        return
    bare = {**tool, "blocks": [], "links": []}
    tried: list[tuple[_Keys, dict[str, Any]]] = [((), bare)]
    for key in ("blocks", "links"):
        tried += [((key, i), {**bare, key: [one]}) for i, one in enumerate(tool.get(key, []))]
    for part, one in tried:
        refused = _tool(one)
        if refused:
            where, reason = refused
            if "has no literal" in reason:
                must = "a literal of 3 bytes that every match must hold"
                reason = f"found a regex without {must}, expected one"
            yield (*part, *where[2 + len(part) :]), reason


def _tool(tool: Mapping[str, Any]) -> _Refused | None:
    return _refused(_core.SiteRules, {"tools": [tool]})


# --- Whether a file does what it says ---------------------------------------------------------------

_MOST_SHOWN = 5


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
    try:
        document = Document(content, name)
        model = model_of(document.data)
    except ConfigError as problem:
        return unreadable(problem)
    value, problems = checked(document, model)
    kind = "tool" if model is ToolFile else "patterns"
    if problems:
        return Inspection(name, kind, _findings("error", problems), {})
    odd = _tool_warnings if kind == "tool" else _pattern_warnings
    wrong = _samples if kind == "tool" else examples
    findings = (
        *_findings("warning", odd(document, value)),
        *_findings("example", wrong(document, value)),
    )
    ordered = sorted(findings, key=lambda one: (one.line, one.column))
    return Inspection(name, kind, tuple(ordered), _counts(value))


def unreadable(problem: ConfigError) -> Inspection:
    """What became of a file that could not be read."""
    return Inspection(problem.file, "", _findings("error", [problem]), {})


def _findings(severity: str, problems: Any) -> tuple[Finding, ...]:
    return tuple(Finding(severity, p.file, p.line, p.column, p.reason) for p in problems)


def _counts(value: Mapping[str, Any]) -> dict[str, int]:
    if "tool" in value:
        return {key: len(value.get(key, [])) for key in ("blocks", "samples")}
    patterns = value.get("patterns", [])
    return {
        "patterns": len(patterns),
        "signals": sum(len(entry["signals"]) for entry in patterns),
        "strategies": len(value.get("strategies", {})),
        "examples": sum(len(entry.get("examples", [])) for entry in patterns),
        "near misses": sum(len(entry.get("near_misses", [])) for entry in patterns),
    }


# --- Pattern files ----------------------------------------------------------------------------------


def examples(document: Document, value: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Examples that their pattern does not match best, near misses that it matches."""
    known = PatternSet.of(value)
    for index, entry in enumerate(value.get("patterns", [])):
        for where, reason in wrong_examples(known, known.patterns[entry["id"]]):
            yield document.error(("patterns", index, *where), reason)


def wrong_examples(known: PatternSet, pattern: Pattern) -> Iterator[_Refused]:
    """The same of one pattern: (where in it, what was found and expected)."""
    name = pattern.id
    for number, text in enumerate(pattern.examples):
        matches = known.match(text, pattern.language)
        if not matches or matches[0].pattern != name:
            found = f"best by {matches[0].pattern!r}" if matches else "by nothing"
            reason = f"found an example that is matched {found}, expected {name!r}"
            yield ("examples", number), reason
    for number, text in enumerate(pattern.near_misses):
        match = next((m for m in known.match(text, pattern.language) if m.pattern == name), None)
        if match:
            why = f"{match.confidence:.2f} by {', '.join(map(repr, match.signals))}"
            reason = f"found a near miss that {name!r} matches ({why}), expected no match"
            yield ("near_misses", number), reason


def _pattern_warnings(document: Document, value: Mapping[str, Any]) -> Iterator[ConfigError]:
    patterns = value.get("patterns", [])
    if not patterns:
        yield document.error(("patterns",), "found no patterns, expected 1 or more")
    for index, entry in enumerate(patterns):
        where = ("patterns", index)
        yield from _signal_warnings(document, entry, value["version"], (*where, "signals"))
        for number, strategy in enumerate(entry.get("alternatives", [])):
            if strategy == entry["strategy"]:
                reason = (
                    f"found {strategy!r}, which is the pattern's strategy, expected another one"
                )
                yield document.error((*where, "alternatives", number), reason)
        if entry.get("non_retryable") and entry.get("max_auto_retries"):
            reason = "found retries for a pattern that is never retried, expected 0"
            yield document.error((*where, "max_auto_retries"), reason)
    bare = [index for index, entry in enumerate(patterns) if not entry.get("examples")]
    if bare:
        names = [patterns[index]["id"] for index in bare]
        shown = ", ".join(names[:_MOST_SHOWN]) + ("" if len(names) <= _MOST_SHOWN else ", …")
        reason = f"found no examples for {shown}, expected 1 or more each: texts that it must match"
        yield document.error(("patterns", bare[0]), reason)


def _signal_warnings(
    document: Document, entry: dict[str, Any], version: int, where: _Keys
) -> Iterator[ConfigError]:
    signals = entry["signals"]
    for number, signal in enumerate(signals):
        if signal in signals[:number]:
            reason = "found this signal a second time, expected each once"
            yield document.error((*where, number), reason)
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


# --- Tool files -------------------------------------------------------------------------------------


def _tool_warnings(document: Document, value: Mapping[str, Any]) -> Iterator[ConfigError]:
    known = [*site.tools(), value["tool"]]
    blocks = value.get("blocks", [])
    named: list[tuple[_Keys, list[str]]] = [(("over",), value.get("over", []))]
    named += [(("blocks", i, "nests"), block.get("nests", [])) for i, block in enumerate(blocks)]
    for where, names in named:
        for number, name in enumerate(names):
            if name not in known:
                reason = f"found {name!r}, expected the name of a tool"
                yield document.error((*where, number), reason + did_you_mean(name, known))
    kinds = {pattern.kind for pattern in PatternSet.default().patterns.values()}
    said: list[tuple[_Keys, str | None]] = [(("kind",), value.get("kind"))]
    said += [(("blocks", i, "kind"), block.get("kind")) for i, block in enumerate(blocks)]
    for where, kind in said:
        if kind is not None and kind not in kinds:
            reason = f"found {kind!r}, expected a kind of failure that a built-in pattern is of"
            yield document.error(where, reason + did_you_mean(kind, sorted(kinds)))
    for index, block in enumerate(blocks):
        if "opens" in block and not block.get("closes"):
            reason = (
                "found 'opens' on a block that closes no step, expected 'closes: true' beside it"
            )
            yield document.error(("blocks", index, "opens"), reason)
    if not value.get("samples"):
        yield document.error((), "found no samples, expected 1 or more: outputs, and what they say")


def _samples(document: Document, value: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Samples from which something else is read than they say."""
    rules, known = site.rules_with(value), PatternSet.default()
    folders = site.folder_rules_with(value)
    for index, sample in enumerate(value.get("samples", [])):
        context = sample.get("command", ""), sample.get("root", ""), ""
        found = failure.described(
            _core.recognize(rules, known.core, sample["text"], *context), known, None
        )
        found = site.with_folders(found, sample["text"], context[1], known=folders)
        where = ("samples", index, "expect")
        for key, actual, expected in differences(found, sample["expect"]):
            reason = f"found {key} {actual!r} in sample {sample['name']!r}, expected {expected!r}"
            yield document.error((*where, key), reason)


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
