"""What the core refuses in a definition file, all of it, each at its place.

The core stops at the first thing that it refuses; here its parts are put to it one by one.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from loki import _core
from loki.recognition import regex
from loki.recognition.pattern import core_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from loki.base.error import ConfigError
    from loki.recognition.definition_file import Document

_Refused = tuple[str, str]
"""JSON pointer and reason."""


def regex_errors(document: Document) -> dict[str, ConfigError]:
    """JSON pointer to what RE2 refuses there; also where the shape of the file is wrong.

    At most 100 are found. A regex of version 1 is not seen as one here.
    """
    return {
        where: document.error(where, _in(document, where, refusal.reason), refusal.at)
        for where, refusal in regex.refusals(document.regexes)
    }


def pattern_errors(document: Document) -> list[ConfigError]:
    """What is refused in a pattern file whose shape is right, in the order of the text.

    Every regex is compiled once, so that nothing fails later.
    """
    own: dict[str, Any] = document.value
    if _pattern(own, own.get("patterns", [])) is None:
        return []
    found = regex_errors(document)
    for where, reason in islice(_patterns(own), regex.MOST_REFUSALS):
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


# --- pattern files --------------------------------------------------------------------------


def _pattern(own: Mapping[str, Any], entries: list[Any]) -> _Refused | None:
    """The first thing that the core refuses in some patterns."""
    core = {"version": own["version"], "patterns": [core_pattern(entry) for entry in entries]}
    try:
        _core.PatternSet(json.dumps(core)).check()
    except _core.DefinitionError as error:
        return error.where, error.reason  # type: ignore[attr-defined]
    return None


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
    refusal = regex.refusal(flag + signal)
    if refusal is None:
        return None
    at = None if refusal.at is None else refusal.at - len(flag)
    return document.error(where, _in(document, where, refusal.reason), at)


def _in(document: Document, where: str, reason: str) -> str:
    """The reason with the pattern that it is about, where that has a name."""
    pattern = re.match(r"/patterns/\d+", where)
    name = document.nodes.get(f"{pattern[0]}/id") if pattern else None
    return f"{reason} (in pattern {str(name.value)[:60]!r})" if name else reason


# --- tool files -----------------------------------------------------------------------------


def _tool(tool: Mapping[str, Any]) -> _Refused | None:
    """The first thing that the core refuses in a tool."""
    try:
        _core.SiteRules(json.dumps({"tools": [tool]})).check()
    except _core.DefinitionError as error:
        return error.where, error.reason  # type: ignore[attr-defined]
    return None


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
