"""The masker that one would write with Python's `re`: the same kinds of placeholders as loki's.

One alternation, the more specific kinds first. It comes in two forms: the kinds one after the other,
and a quick one that looks at the first character before it tries the kinds that may begin with it.
"""

from __future__ import annotations

import hashlib
import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = (
    r"(?:[01]?\d|2[0-4]):[0-5]\d:[0-6]\d(?:[.,]\d+)?(?: [AP]M)?"
    r"(?:Z\b| ?[+-]\d{4}\b| ?[+-]\d\d:\d\d| UTC\b| GMT\b|\b)"
)
_THEN = rf"(?:[T :_]{_CLOCK}|\b)"
_UNIT = (
    "(?: ?(?:milliseconds?|microseconds|nanoseconds|seconds?|secs?|minutes?|mins?|hours?|days?|hrs?"
    "|ms|us|ns|\u00b5s|\u03bcs|s)|[mhd])"
)
_BYTES = "(?: ?(?:kilobytes|megabytes|gigabytes|bytes?|[KMGT]iB|[KkMGT]B)|[BKkMG])"
_NUMBER = r"\d+(?:\.\d+)*"
_STAGE = r"(?:[-.]?(?:alpha|beta|post|dev|pre|rc|a|b|SNAPSHOT)\.?\d*)?(?:\+\w+(?:\.\w+)*)?\b"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_GROUP = "[0-9a-fA-F]{1,4}"
_IN_PATH = r"[\w.+@~=-]"
_SIGN = r"(?:(?<![+.)/>-])[-+])?"
_BEHIND_FILE = "|".join(rf"(?<=\.[A-Za-z_]\w{{{n}}}:)" for n in range(6))
_KEYS = (
    "sk-|sk_live_|sk_test_|pk_live_|ghp_|gho_|ghs_|github_pat_|AKIA|ASIA|xoxb-|xoxp-|glpat-|AIza"
    "|npm_|pypi-"
)
_SECRET = (
    "password|passwd|pwd|secret|token|apikey|api_key|api-key|access_token|auth_token|access_key"
    "|secret_key|client_secret|authorization"
)

_HEX_KINDS = {
    "uuid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    "sha": r"(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,40}\b",
    "hex": r"(?:0[xX][0-9a-fA-F]+|(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{41,})\b",
    "mac": r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b(?!:)",
    "ip": rf"(?:(?:{_GROUP}:){{7}}{_GROUP}|(?=[a-fA-F:]*\d)(?:{_GROUP}:){{1,6}}(?::{_GROUP}){{1,6}})\b(?!:)",
}
_URL = r"[a-z][a-z+]{1,11}://[^\s\"'<>`|\\^{}()\[\],;]*[^\s\"'<>`|\\^{}()\[\],;.:!?]"
_EMAIL = r"[A-Za-z0-9_.%+-]+@[A-Za-z_]\w*(?:[.-][A-Za-z_]\w*)*\.[A-Za-z_]\w*\b"

BY_FIRST = {
    r"\d": {
        "pos": rf"(?:{_BEHIND_FILE})\d+(?::\d+(?!\w))?(?!\w)(?!\.\d)",
        "time": rf"(?:(?:19|20)\d\d(?P<a>[-/.])[01]\d(?P=a)[0-3]\d{_THEN}"
        rf"|[0-3]\d(?P<b>[/.])[0-3]\d(?P=b)(?:19|20)\d\d{_THEN}"
        rf"|\d\d?(?P<c>[/ -]){_MONTH}(?P=c)(?:\d{{4}}|\d\d){_THEN}|\d{{8}}T\d{{6}}Z?\b|{_CLOCK})",
        "email": _EMAIL,
        **_HEX_KINDS,
        "ipv4": rf"{_OCTET}(?:\.{_OCTET}){{3}}\b(?!\.\d)(?:[:/]\d+\b)?",
        "version": rf"\d+(?:\.\d+){{2,}}{_STAGE}",
    },
    r"[-+]?\d": {
        "percent": rf"{_SIGN}{_NUMBER}%",
        "duration": rf"{_SIGN}{_NUMBER}{_UNIT}(?: ?{_NUMBER}{_UNIT})*\b",
        "size": rf"{_SIGN}{_NUMBER}{_BYTES}\b",
        "float": rf"{_SIGN}(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)\b",
        "int": rf"{_SIGN}\d+\b",
    },
    "[/<]": {
        "tmp": rf"(?<![\w.+@~=/>\\-])(?:/var/tmp|/tmp|/dev/shm)(?![\w.+@~=<-])"
        rf"(?:/{_IN_PATH}+(?=/)(?:/pytest-{_IN_PATH}*(?=/))*)?",
        "home": rf"(?<![\w.+@~=/>\\-])(?:/home/{_IN_PATH}+|/Users/{_IN_PATH}+|/root(?![\w.+@~=<-]))",
        "kept": r"<(?:time|duration|uuid|hex|sha|ip|mac|url|email|tmp|home|pos|percent|size|version"
        r"|float|int|secret)>",
    },
    "[A-Za-z_]": {
        "url": _URL,
        "email": _EMAIL,
        "time": rf"(?:(?:{_DAY},? )\d\d?(?P<d>[/ -]){_MONTH}(?P=d)(?:\d{{4}}|\d\d){_THEN}"
        rf"|(?:{_DAY},? )?{_MONTH} {{1,2}}\d\d? {_CLOCK}(?: \d{{4}}\b)?)",
        **_HEX_KINDS,
        "secret": rf"(?:(?:{_KEYS})[\w-]{{16,}}|eyJ[\w.-]{{34,}})",
        "named": rf"(?P<name>(?i:(?:\w+_)?(?:{_SECRET}))[\"']? *(?:=|:(?= *[\"']?[^\s\"'<>,;&)\d]*\d)) *)"
        r"[\"']?[^\s\"'<>,;&)]{4,}[\"']?",
        "version": rf"[vV]\d+(?:\.\d+)+{_STAGE}",
    },
}


def _quick() -> str:
    """The kinds by what may begin them; a group's number keeps its name apart from its kind's."""
    groups = [
        f"(?={first})(?:{'|'.join(f'(?P<{kind}_{n}>{regex})' for kind, regex in kinds.items())})"
        for n, (first, kinds) in enumerate(BY_FIRST.items())
    ]
    return rf"(?<!\w)(?:{'|'.join(groups)})"


def _plain() -> str:
    """One kind after the other."""
    return "|".join(
        rf"(?<!\w)(?P<{kind}_{n}>{regex})"
        for n, kinds in enumerate(BY_FIRST.values())
        for kind, regex in kinds.items()
    )


_PLAIN, _QUICK = re.compile(_plain()), re.compile(_quick())
_PLACEHOLDERS = {
    f"{kind}_{n}": "<ip>" if kind == "ipv4" else f"<{kind}>"
    for n, kinds in enumerate(BY_FIRST.values())
    for kind in kinds
}


def clean(text: str) -> str:
    """Without escapes, and with carriage returns applied."""
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(_overwritten(line) if "\r" in line else line for line in lines)
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _overwritten(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        if part.startswith(("\x1b[0K", "\x1b[K")):
            shown = ""
        plain = _ESCAPE.sub("", part)
        shown = plain + shown[len(plain) :]
    return shown


def _placeholder(match: re.Match[str]) -> str:
    group = match.lastgroup or ""
    if group.startswith("kept"):
        return match[0]
    if group.startswith("named"):
        return f"{match['name']}<secret>"
    return _PLACEHOLDERS[group]


def normalize(text: str) -> str:
    """The cleaned text with placeholders for what varies, by the alternation as it stands."""
    return _PLAIN.sub(_placeholder, clean(text))


def normalize_quickly(text: str) -> str:
    """The same by the alternation that looks at the first character first."""
    return _QUICK.sub(_placeholder, clean(text))


def fingerprint(normalized: str) -> str:
    """A hash of 128 bits."""
    return hashlib.blake2b(normalized.encode("utf-8", "replace"), digest_size=16).hexdigest()
