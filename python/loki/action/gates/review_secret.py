"""Secrets written into code. Which names and shapes are secrets says `mask_secrets`."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from loki.action.gates.finding import Finding, knowledge
from loki.action.gates.gate import ADVISORY, BLOCKING
from loki.base.secret import mask_secrets, unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki.action.gates.added_lines import Addition

_MASK = "<secret>"
_LEAST_SHAPE_ENTROPY = 3.0
_LEAST_RANDOM = 20
_RANDOM_ENTROPY = 3.7
"""Bits a character: English in base64 has less than random letters and digits of that length.

Chosen, not measured.
"""

_NAME = re.compile(
    r"(?P<name>[A-Za-z_][\w.\-]{1,60})[\"'\]]{0,2}\s{0,8}(?::\s?[\w&'<>\[\]. |]{1,30})?"
    r"\s{0,8}(?::=|=>|=|:)\s{0,8}[a-zA-Z]{0,2}$"
)
_SETTING = re.compile(
    r"^\s*(?:export\s+|-\s+|ENV\s+|ARG\s+)?[\"']?(?P<name>[A-Za-z_][\w.\-]{1,60})[\"']?\s*[=:]\s*"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"'#,]{6,200})(?P=quote),?\s*$"
)
_URL = re.compile(r"[a-z][a-z0-9+.\-]{1,20}://[^\s\"'<>]{0,60}:[^\s\"'<>@/]{1,80}@[^\s\"'<>]{1,80}")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:\s|\\n|[\"'+]){1,40}[A-Za-z0-9+/=\s\\\"']{60}"
)
_SILENT_IN = frozenset({"test", "example"})
_PHRASE = re.compile(r"[A-Za-z]+\d?(?:[-_./: @][A-Za-z]+\d?)+")
_WORDS = re.compile(r"(?:[A-Za-z]+\d{0,2}|\d+)(?:[-_./: @][A-Za-z]*\d{0,4})*")


def secret_findings(addition: Addition) -> Iterator[Finding]:
    """Secrets in the added lines of a file."""
    language = addition.language
    if language is None or addition.places & _SILENT_IN:
        return
    yield from _private_keys(addition)
    if language.lexer in {"hash", "none", "markup"}:
        for number in sorted(addition.added):
            line = addition.lexed.span(number, number)
            known = list(_in_value(addition, number, 1, line))
            yield from known
            setting = None if known else _SETTING.match(line)
            if setting and (said := _named(setting["name"], setting["value"])):
                yield _finding(addition, number, setting.start("value") + 1, setting["value"], said)
    else:
        yield from _in_strings(addition)


def _in_strings(addition: Addition) -> Iterator[Finding]:
    lexed, added = addition.lexed, addition.added
    for begin, end in lexed.strings:
        number = lexed.line(begin)
        if number not in added or end - begin < _LEAST_STRING:
            continue
        value = lexed.text[begin + 1 : end - 1]
        if "\n" in value or value.startswith(('"', "''")):
            continue  # a docstring, a page of text
        known = list(_in_value(addition, number, lexed.column(begin), value))
        yield from known
        head = lexed.text[max(lexed.starts[number - 1], begin - 120) : begin]
        name = None if known else _NAME.search(head)
        if name and (said := _named(name["name"], value)):
            yield _finding(addition, number, lexed.column(begin), value, said)


_LEAST_STRING = 8
_LEAST_PASSWORD = 6


def _private_keys(addition: Addition) -> Iterator[Finding]:
    text = addition.after
    if "PRIVATE KEY-----" not in text:
        return
    for match in _PRIVATE_KEY.finditer(text):
        lexed = addition.lexed
        if mask_secrets(match[0]) != match[0] and not _is_placeholder(match[0]):
            number = lexed.line(match.start())
            said = ("a private key", BLOCKING)
            yield _finding(addition, number, lexed.column(match.start()), match[0], said)


def _in_value(addition: Addition, number: int, column: int, text: str) -> Iterator[Finding]:
    """Keys that are known by their shape, and passwords in URLs."""
    if (masked := mask_secrets(text)) == text:
        return
    for url in _URL.finditer(text):
        if _is_password(url[0]):
            said = ("a password in a URL", ADVISORY)
            yield _finding(addition, number, column + url.start(), url[0], said)
    for value in _hidden(text, masked):
        if unnamed(mask_secrets(value)) == _MASK and _is_real_key(value):
            said = (f"a key that begins with {value[:6]!r}", BLOCKING)
            yield _finding(addition, number, column + text.find(value), value, said)


def _hidden(text: str, masked: str) -> Iterator[str]:
    """What the masks stand for."""
    pieces, at = unnamed(masked).split(_MASK), 0
    for piece, following in itertools.pairwise(pieces):
        begin = at + len(piece)
        end = text.find(following, begin + 1) if following else len(text)
        if end < 0:
            return
        yield text[begin:end].strip("\"'\n")
        at = end


def _is_real_key(value: str) -> bool:
    known = knowledge().secret
    if known["publishable"].search(value) or _is_placeholder(value):
        return False
    return _entropy(value) >= _LEAST_SHAPE_ENTROPY and any(c.isdigit() for c in value)


def _is_placeholder(value: str) -> bool:
    return knowledge().secret["placeholder"].search(value) is not None


def _is_password(url: str) -> bool:
    known = knowledge().secret
    password = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    if known["local_host"].search(url) or known["named_placeholder"].search(password):
        return False
    return len(password) >= _LEAST_STRING and _is_mixed(password)


def _named(name: str, value: str) -> tuple[str, str] | None:
    """What to say of a value behind a name, and how sure that is."""
    last = name.rpartition(".")[2]
    is_named = mask_secrets(f'{last}="{value}"') != f'{last}="{value}"'
    is_weak = knowledge().secret["weak_names"].search(last) is not None
    if not is_named or not _may_be_secret(value, is_weak):
        return None
    is_random = len(value) >= _LEAST_RANDOM and _entropy(value) >= _RANDOM_ENTROPY
    is_sure = is_random and not _is_placeholder(value)
    return f"the value of {last}", BLOCKING if is_sure else ADVISORY


def _may_be_secret(value: str, is_weak: bool) -> bool:
    """Whether a value is no placeholder, name, path or word; behind some names less is enough."""
    if knowledge().secret["named_placeholder"].search(value):
        return False
    if re.search(r"\s|://|^[/@.]|\(|\)$", value) or not re.search(r"\d", value):
        return False
    if not is_weak:
        return len(value) >= 2 * _LEAST_STRING and _is_mixed(value)
    is_word = _PHRASE.fullmatch(value) is not None or not re.search(r"[A-Za-z]", value)
    return len(value) >= _LEAST_PASSWORD and not is_word


def _is_mixed(value: str) -> bool:
    """Whether a person would take it for no word: digits among letters, not behind them."""
    plain = _WORDS.fullmatch(value) is None or re.search(r"\d[A-Za-z]+\d", value) is not None
    return plain and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _entropy(value: str) -> float:
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _finding(
    addition: Addition, line: int, column: int, value: str, said: tuple[str, str]
) -> Finding:
    what, severity = said
    last = line + value.count("\n")
    description = f"{what} stands in the file"
    return Finding(
        "secret", "hard_coded_secret", addition.path, line, column, last, description, severity,
        key=value,
    )  # fmt: skip
