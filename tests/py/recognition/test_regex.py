"""What RE2 refuses is said in plain words, at the regex, in every kind of scalar."""

from __future__ import annotations

import pytest

from loki.recognition.definition_inspection import inspect
from loki.recognition.definition_schema import regex_refusal
from support.definition import HEAD, said_of

LITERAL = (
    "found a regex without a literal of 3 bytes that every match must hold, expected one, or "
    "'slow: true' beside it"
)

REGEXES = {
    "look-ahead": (
        "'error(?= in)'",
        "6:23: found the look-ahead '(?=', expected a regex without look-around",
    ),
    "look-behind": (
        "(?<!a)abc",
        "6:23: found the look-behind '(?<!', expected a regex without look-around",
    ),
    "back-reference": (
        r"'\\1(abc)\1'",
        "6:23: found the back-reference '\\1', expected a regex without back-references",
    ),
    "named back-reference": (
        "'(?P<n>abc)(?P=n)'",
        "6:23: found the back-reference '(?P=n)', expected a regex without back-references",
    ),
    "unclosed group": (
        r"'a(b)\([(]abc(def'",
        "6:23: found a '(' that is not closed, expected a ')' behind it, or '\\(' for the "
        "character itself",
    ),
    "closed twice": (
        r"'(abc)[)]\))'",
        "6:23: found a ')' that closes nothing, expected '\\)' for the character itself",
    ),
    "unclosed class": (
        "'abc[def'",
        "6:23: found a '[' that is not closed, expected a ']' behind it, or '\\[' for the "
        "character itself",
    ),
    "range": (
        "'abc z-a [z-a]'",
        "6:23: found 'z-a', expected a range that goes upwards, or a class that RE2 knows",
    ),
    "nothing to repeat": (
        "'abc*|*def'",
        "6:23: found '*' with nothing before it to repeat, expected '\\*' for the character itself",
    ),
    "possessive": ("'abc++'", "6:23: found '++', two repetitions in a row, expected one"),
    "too often": (
        "'a{2}abc{1001}'",
        "6:23: found the repetition '{1001}', expected 1000 at most, also one in another",
    ),
    "trailing backslash": (
        "'abc\\'",
        "6:23: found a backslash at the end, expected two for the character itself",
    ),
    "foreign escape": (r"'abc\Z'", "6:23: found the escape '\\Z', expected one that RE2 knows"),
    "foreign group": (
        "'abc(?>x)'",
        "6:23: found the group '(?>', expected one that RE2 knows, like '(?:…)' or '(?P<name>…)'",
    ),
    "bad name": (
        "'(?P<a b>abc)'",
        "6:23: found the group '(?P<a b>', expected '(?P<name>…)', a name of letters, digits and "
        "_",
    ),
    "beyond ASCII": (
        "'ünï (abc)\\1'",
        "6:23: found the back-reference '\\1', expected a regex without back-references",
    ),
    "doubled quotes": (
        "'it''s (abc)''\\1'",
        "6:23: found the back-reference '\\1', expected a regex without back-references",
    ),
    "escapes in double quotes": (
        r'"\t\x41\u00e9 \"(abc)\\1"',
        "6:23: found the back-reference '\\1', expected a regex without back-references",
    ),
    "block": (
        "|-\n          (abc)\n          then \\1",
        "7:16: found the back-reference '\\1', expected a regex without back-references",
    ),
    "folded block": (
        ">-\n          (abc)\n\n          then \\1",
        "7:16: found the back-reference '\\1', expected a regex without back-references",
    ),
    "folded quotes": (
        "'(abc)\n          then \\1'",
        "7:16: found the back-reference '\\1', expected a regex without back-references",
    ),
    "folded double quotes": (
        '"(abc)\\\n          \\  then \\\\1"',
        "7:16: found the back-reference '\\1', expected a regex without back-references",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REGEXES)
def test_what_re2_refuses_is_said_at_the_regex(case: str) -> None:
    regex, said = REGEXES[case]
    signals = f" [{{regex: {regex}}}]" if "\n" not in regex else f"\n      - regex: {regex}"
    assert said_of(f"{HEAD}    signals:{signals}\n") == f"mine.yml:{said}"


def test_a_regex_of_version_1_is_looked_at_too() -> None:
    head = HEAD.replace("2", "1", 1)
    said = "found the look-ahead '(?=', expected a regex without look-around"
    assert said_of(f"{head}    signals: [abc, 'x.*(?=a)']\n") == f"mine.yml:6:20: {said}"


@pytest.mark.parametrize("regex", ["a.b", "'[a-z]+'", "'\\d+:(a|abcd)'"])
def test_a_regex_needs_a_literal(regex: str) -> None:
    assert said_of(f"{HEAD}    signals: [{{regex: {regex}}}]\n") == f"mine.yml:6:23: {LITERAL}"


def test_every_bad_regex_is_found_in_one_go() -> None:
    content = f"""{HEAD}    signals:
      - {{any: [{{regex: 'abc(?=x)'}}, {{regex: 'abc\\1'}}]}}
      - {{not: {{regex: 'abc[z-a]'}}}}
      - {{regex: 'a.c'}}
      - {{regex: 'abc'}}
"""
    found = inspect(content, "mine.yml").findings
    assert [(one.line, one.column) for one in found] == [(7, 24), (7, 45), (8, 23)]


def test_a_regex_that_is_too_large_is_refused() -> None:
    said = regex_refusal(r"abc\pL{1000}")
    assert said == "found a regex that is too large, expected a smaller one"
