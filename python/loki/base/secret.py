"""Secrets in texts that are kept, shown or sent, and in the environment of programs that loki starts.

What keys and tokens look like is data, ``secrets.yml``; those known by the name before them, in a
URL or behind ``Authorization:`` are found by the core. Why it is so: ``docs/design/safety.md``.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from loki import _core

FILE = Path(__file__).with_name("secrets.yml")

SHORTEST = 6
"""Characters of the shortest text that can hold a secret, ``pwd=abcd`` for instance: a name of three,
what follows it, and a value."""

_BEFORE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # where a key begins: no word, or an escape, before it
)
_BEHIND = "[A-Za-z0-9]*"  # no other key begins where one ends within a word
_NAMED = re.compile(r"<secret:[a-z-]+>")
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"
)
_WRITTEN = re.compile(r"\\[nrt](?=[A-Za-z_])")
_VALUE = r"(?P<before>^|[=:(,\s\"'\\])(?P<value>{})(?=[\"'\\\s,;)&}}\]]|$)"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of key or token that is known by how it looks.

    Attributes:
        name: what stands in the mask, ``github-token``.
        source: who says that it looks like this.
        literals: one of them stands in every text that has one.
        any_case: they do so in any letter case.
        regex: where it has a group ``secret``, only that is masked.
    """

    name: str
    source: str
    literals: tuple[str, ...]
    any_case: bool
    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What ``secrets.yml`` says.

    Attributes:
        kinds: of keys and tokens.
        literals: finds, in one pass, which kinds a text can hold.
        innocent: values that are no secrets, with what stands before them.
        names: of environment variables that hold secrets.
    """

    kinds: tuple[Kind, ...]
    literals: _core.PatternSet
    innocent: re.Pattern[str]
    names: re.Pattern[str]


@cache
def knowledge() -> Knowledge:
    """What ``secrets.yml`` says, read once."""
    from loki.base.yaml_text import load_file  # YAML is much to load

    data = load_file(FILE)
    kinds = tuple(map(_kind, data["kinds"]))
    patterns = [
        {"id": str(i), "signals": [{"any": [{"literal": one} for one in kind.literals], "w": 1.0}]}
        for i, kind in enumerate(kinds)
    ]
    return Knowledge(
        kinds,
        _core.PatternSet(json.dumps({"version": 2, "patterns": patterns})),
        re.compile(_VALUE.format("|".join(data["innocent"])), re.MULTILINE),
        re.compile(data["names"], re.IGNORECASE),
    )


def _kind(entry: Mapping[str, Any]) -> Kind:
    before, behind = ("", "") if entry.get("inside") else (_BEFORE, _BEHIND)
    regex = re.compile(f"{before}(?:{entry['regex']}){behind}")
    any_case = "(?i" in entry["regex"]
    return Kind(entry["kind"], entry["source"], tuple(entry["literals"]), any_case, regex)


def mask_secrets(text: str) -> str:
    """The same text with ``<secret>`` for keys, tokens and passwords, those in URLs too.

    What is stored, shown or sent goes through here. A secret is known by its shape, and then the
    mask says what it was, or by the name before it (``password=…``); one without either is not seen.
    Idempotent, and linear in the length of the text.

    Args:
        text: any text; everything else in it stays as it is. Only where a secret is coloured, or
            stands among colours, escape sequences for terminals go, too.

    Example:
        >>> mask_secrets("login failed: password=hunter2, url https://me:hunter2@example.org/x")
        'login failed: password=<secret>, url https://me:<secret>@example.org/x'
        >>> mask_secrets("export LINEAR=lin_api_" + "a1B2" * 10)
        'export LINEAR=<secret:linear-key>'
    """
    if len(text) < SHORTEST:
        return text
    # Most texts hold none: two passes of the core, and a look for what could hide one from them.
    if "\x1b" in text or "\x9b" in text:
        return _coloured(text)
    if "\\" not in text and not knowledge().literals.match(text, "") and _core_mask(text) == text:
        return text
    return _masked(text)


def mask_output(output: bytes) -> bytes:
    """What a program printed, in any encoding, with secrets masked; before anything is cut off it.

    Example:
        >>> mask_output(b"\\xff token=abcd1234")
        b'\\xff token=<secret>'
    """
    text = output.decode("utf-8", "surrogateescape")
    shown = mask_secrets(text)
    return output if shown == text else shown.encode("utf-8", "surrogateescape")


def masked(value: Any) -> Any:
    """JSON-able data with secrets masked in every text of it, also in long names of fields.

    Example:
        >>> masked({"said": ["password=hunter2", 1]})
        {'said': ['password=<secret>', 1]}
    """
    return mapped(value, mask_secrets)


_SHORTEST_KEY = 20
"""Characters of the shortest name in an object that may hold a secret: names of fields are shorter."""

EXACT = frozenset({"seen_failing", "fingerprint", "digest"})
"""Keys whose values are compared later and so stay as they are."""


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON-able data with every text of it changed, but for those that are compared later."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (dict, Mapping)):  # most are dicts, which is quick to see
        return {
            (key if len(key) < _SHORTEST_KEY else change(key)): (
                entry if key in EXACT else mapped(entry, change)
            )
            for key, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mapped(entry, change) for entry in value]
    return value


def unnamed(text: str) -> str:
    """A masked text as the core knows it: ``<secret>`` whatever kind it was.

    Example:
        >>> unnamed("key <secret:github-token>")
        'key <secret>'
    """
    return _NAMED.sub("<secret>", text) if "<secret:" in text else text


def holds_mask(text: str) -> bool:
    """Whether something in a text is masked.

    Example:
        >>> holds_mask("password=<secret>"), holds_mask("<secret:github-token>"), holds_mask("secret")
        (True, True, False)
    """
    return "<secret>" in unnamed(text)


def holds_secret(text: str) -> bool:
    """Whether `mask_secrets` would change a text.

    Example:
        >>> holds_secret("password=hunter2"), holds_secret("password=${PASSWORD}")
        (True, False)
    """
    return mask_secrets(text) != text


# --- How it is found --------------------------------------------------------------------------------


def _masked(text: str) -> str:
    found = _once(text, _innocent_kept)
    # What is innocent by itself may be a part of something that is not, and seem so only now.
    if found == text or _once(found, _innocent_kept) == found:
        return found
    return _once(text, _core_mask)


def _once(text: str, read: Callable[[str], str]) -> str:
    text = _shapes(text)
    if _core_mask(text) != text:
        text = read(text)
    if "\\" in text and "\0" not in text:
        # Behind an escape in a string that is shown as it is written ("…\ntoken=…") a name begins.
        apart = _WRITTEN.sub("\\g<0>\0", text)
        if apart != text and _core_mask(apart) != apart:
            text = read(apart).replace("\0", "")
    return text


def _shapes(text: str) -> str:
    """Keys of known kinds are masked; of most texts only the literals are looked for."""
    known = knowledge()
    hits = known.literals.match(text, "")
    for index in sorted(hit[0] for hit in hits):
        kind = known.kinds[index]
        # The scan knows no letter case, and "SK" stands in every task.
        if kind.any_case or any(literal in text for literal in kind.literals):
            text = kind.regex.sub(_replacement(kind), text)
    return _key_lines(text) if hits and "PRIVATE KEY" in text else text


def _key_lines(text: str) -> str:
    """Lines of a private key of which the rest is missing, or that stand behind other words each."""
    lines, within = text.split("\n"), 0
    for step in (1, -1):  # down from where a key begins, and up from where one ends
        for number in range(len(lines))[::step]:
            title = _TITLE.search(lines[number])
            if title:
                within = _OTHERS if (title[1] == "BEGIN") == (step == 1) else 0
            elif within:
                lines[number], found = _KEY_LINE.subn("<secret:private-key>", lines[number])
                within = _OTHERS if found else within - 1
        within = 0
    return "\n".join(lines)


_TITLE = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,20}PRIVATE KEY")
_KEY_LINE = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{24,}(?=\s*$)")
_OTHERS = 4
"""Lines between that hold no part of a key, as its headers; chosen, not measured."""


def _replacement(kind: Kind) -> Callable[[re.Match[str]], str]:
    mask_of_it = f"<secret:{kind.name}>"
    if "secret" not in kind.regex.groupindex:
        # As many lines as before: the line of an output that says what failed stays that line.
        return lambda found: mask_of_it + "\n" * found[0].count("\n")

    def replace(found: re.Match[str]) -> str:
        begin, end = found.span("secret")
        at = found.start()
        return f"{found[0][: begin - at]}{mask_of_it}{found[0][end - at :]}"

    return replace


def _core_mask(text: str) -> str:
    return _core.mask_secrets(text.encode("utf-8", "surrogatepass")).decode(
        "utf-8", "surrogatepass"
    )


_SHIELD = "\ue000"
"""A character of the private use area, which stands for a value that is none while the core reads."""


def _innocent_kept(text: str) -> str:
    if _SHIELD in text:
        return _core_mask(text)
    kept: list[str] = []

    def shield(found: re.Match[str]) -> str:
        kept.append(found["value"])
        return f"{found['before']}<{_SHIELD}>"

    hidden = _core_mask(knowledge().innocent.sub(shield, text))
    pieces = hidden.split(f"<{_SHIELD}>")
    if len(pieces) != len(kept) + 1:  # the core took one for a part of a secret
        return _core_mask(text)
    return "".join(piece + value for piece, value in zip(pieces, [*kept, ""], strict=True))


def _coloured(text: str) -> str:
    """A secret may be coloured, or follow a colour, the last letter of which looks like a word's."""
    apart, plain = _ESCAPES.sub("\0", text), _ESCAPES.sub("", text)
    by_word = _masked(apart)
    found = _masked(by_word.replace("\0", "") if by_word != apart else plain)
    return text if found == plain else found


# --- Environments of programs: no secrets but on purpose --------------------------------------------


def is_secret_name(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret.

    Example:
        >>> [is_secret_name(name) for name in ("GITHUB_TOKEN", "PATH", "PWD", "api_key")]
        [True, False, False, True]
    """
    return bool(knowledge().names.search(name))


def clean_environment(environment: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """An environment without the variables whose names or values look like secrets.

    Args:
        environment: names and values.
        passed: names, or globs of names, that stay although they look like secrets.

    Example:
        >>> clean_environment({"CI": "1", "DB": "postgres://me:hunter2@db/x", "API_KEY": "a"}, ["API_*"])
        {'CI': '1', 'API_KEY': 'a'}
    """
    kept = passed_environment(environment, passed)
    return {
        name: value
        for name, value in environment.items()
        if name in kept or not (is_secret_name(name) or holds_secret(value))
    }


def passed_environment(environment: Mapping[str, str], passed: Iterable[str]) -> dict[str, str]:
    """The variables of an environment that are passed on purpose.

    Args:
        environment: names and values.
        passed: names, or globs of names.

    Example:
        >>> passed_environment({"CI": "1", "API_KEY": "a"}, ["API_*"])
        {'API_KEY': 'a'}
    """
    globs = tuple(passed)
    return {
        name: value
        for name, value in environment.items()
        if any(fnmatch.fnmatchcase(name, glob) for glob in globs)
    }
