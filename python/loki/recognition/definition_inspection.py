"""Whether a definition file can be used, and whether it does what it says.

The core stops at the first thing that it refuses, so its parts are put to it one by one. `inspect` finds
everything: what is wrong with the text, the shape and the regexes; what is right but
cannot be meant so; and examples, near misses and samples that do not come out as the file says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from loki import _core
from loki.base.error import ConfigError
from loki.recognition import definition_file, definition_schema, failure, site
from loki.recognition.definition_file import Cursor, Document
from loki.recognition.pattern import LEAST, Pattern, PatternSet, core_pattern, weight

# --- What the core refuses, each at its place -------------------------------------------------------

_Refused = tuple[str, str]
"""JSON pointer and reason."""


def regex_errors(document: Document) -> dict[str, ConfigError]:
    """JSON pointer to what RE2 refuses there; also where the shape of the file is wrong.

    At most 100 are found. A regex of version 1 is not seen as one here.
    """
    return {
        where: document.error(where, _in(document, where, refusal.reason), refusal.at)
        for where, refusal in definition_schema.regex_refusals(document.regexes)
    }


def pattern_errors(document: Document) -> list[ConfigError]:
    """What is refused in a pattern file whose shape is right, in the order of the text.

    Every regex is compiled once, so that nothing fails later.
    """
    own: dict[str, Any] = document.value
    if _pattern(own, own.get("patterns", [])) is None:
        return []
    found = regex_errors(document)
    for where, reason in islice(_patterns(own), definition_schema.MOST_REFUSALS):
        if where not in found:
            found[where] = _version1(document, where) or document.error(
                where, _in(document, where, reason)
            )
    return ordered_errors(found.values())


def tool_errors(document: Document) -> list[ConfigError]:
    """What is refused in a tool file whose shape is right, in the order of the text."""
    tool = {key: entry for key, entry in document.value.items() if key != "samples"}
    if _tool(tool) is None:
        return []
    found = regex_errors(document)
    for where, reason in _tools(tool):
        # A regex that stands alone is no list in the file; the core always has one.
        pointer = where if where in document.regexes else re.sub(r"/0$", "", where)
        if pointer not in found:
            found[pointer] = _worded(document, pointer, reason)
    return ordered_errors(found.values())


def ordered_errors(problems: Iterable[ConfigError]) -> list[ConfigError]:
    """Problems in the order of the text."""
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


# --- Pattern files ----------------------------------------------------------------------------------


def _refused(
    kind: type[_core.PatternSet | _core.SiteRules], definition: Mapping[str, Any]
) -> _Refused | None:
    """The first thing that the core refuses in a definition."""
    try:
        kind(json.dumps(definition)).check()
    except _core.DefinitionError as error:
        return error.where, error.reason  # type: ignore[attr-defined]
    return None


def _pattern(own: Mapping[str, Any], entries: list[Any]) -> _Refused | None:
    """The first thing that the core refuses in some patterns."""
    patterns = [core_pattern(entry) for entry in entries]
    return _refused(_core.PatternSet, {"version": own["version"], "patterns": patterns})


def _patterns(own: Mapping[str, Any]) -> Iterator[_Refused]:
    """The same for every signal: each is tried in a pattern of its own, beside one that is right."""
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
                where = refused[0].removeprefix("/patterns/0/signals/0")
                yield f"/patterns/{index}/signals/{number}{where}", refused[1]
        if not single:
            yield whole[0].replace("/patterns/0", f"/patterns/{index}", 1), whole[1]


def _version1(document: Document, where: str) -> ConfigError | None:
    """The error of a regex of version 1, which the core reads with letter case ignored."""
    parts = where.split("/")
    if document.value["version"] != 1 or len(parts) != 5:  # noqa: PLR2004
        return None
    flag = "(?i)"
    signal = document.value["patterns"][int(parts[2])]["signals"][int(parts[4])]
    refusal = definition_schema.regex_refusal(flag + signal)
    if refusal is None:
        return None
    at = None if refusal.at is None else refusal.at - len(flag)
    return document.error(where, _in(document, where, refusal.reason), at)


def _in(document: Document, where: str, reason: str) -> str:
    """The reason with the pattern that it is about, where that has a name."""
    pattern = re.match(r"/patterns/\d+", where)
    name = document.nodes.get(f"{pattern[0]}/id") if pattern else None
    return f"{reason} (in pattern {str(name.value)[:60]!r})" if name else reason


# --- Tool files -------------------------------------------------------------------------------------


def _tool(tool: Mapping[str, Any]) -> _Refused | None:
    return _refused(_core.SiteRules, {"tools": [tool]})


def _tools(tool: Mapping[str, Any]) -> Iterator[_Refused]:
    """The same for each block and each link by itself, and for what stands beside them."""
    bare = {**tool, "blocks": [], "links": []}
    tried = [("", bare)]
    for key in ("blocks", "links"):
        tried += [(f"/{key}/{i}", {**bare, key: [e]}) for i, e in enumerate(tool.get(key, []))]
    for part, one in tried:
        refused = _tool(one)
        if refused:
            where = refused[0].removeprefix("/tools/0")
            yield re.sub(r"^/(?:blocks|links)/0", part, where, count=1), refused[1]


def _worded(document: Document, where: str, reason: str) -> ConfigError:
    if "has no literal" in reason:
        reason = (
            "found a regex without a literal of 3 bytes that every match must hold, expected one"
        )
    group = re.match("found group '(.*?)'", reason)
    named = f"(?P<{group[1]}>" if group else ""
    at = document.regexes.get(where, "").find(named) if named else -1
    return document.error(where, reason, at if at >= 0 else None)


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
    cursor.entries("a pattern file or a tool file: a mapping")
    is_tool = _is_tool(cursor.document)
    return (
        definition_schema.tool_file(cursor) if is_tool else definition_schema.pattern_file(cursor)
    )


def _is_tool(document: Document) -> bool:
    return any(f"/{key}" in document.nodes for key in ("tool", "blocks", "detect"))


def _problems(document: Document, kind: str) -> list[ConfigError]:
    if document.problems:
        return ordered_errors([*document.problems, *regex_errors(document).values()])
    return tool_errors(document) if kind == "tool" else pattern_errors(document)


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


# --- Pattern files ----------------------------------------------------------------------------------


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
        shown = ", ".join(names[:_MOST_SHOWN]) + ("" if len(names) <= _MOST_SHOWN else ", …")
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


# --- Tool files -------------------------------------------------------------------------------------


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
    folders = site.folder_rules_with(document.value)
    for index, sample in enumerate(document.value.get("samples", [])):
        context = sample.get("command", ""), sample.get("root", ""), ""
        found = failure.described(
            _core.recognize(rules, known.core, sample["text"], *context), known, None
        )
        found = site.with_folders(found, sample["text"], context[1], known=folders)
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
