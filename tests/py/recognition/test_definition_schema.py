"""What a broken or hostile definition file is told: one plain sentence at the right place each."""

from __future__ import annotations

from pathlib import Path

import pytest

import loki
from loki.base.yaml_document import MOST_PROBLEMS
from loki.recognition.definition_inspection import inspect
from support.definition import HEAD, said_of

TOP = "version, extends, patterns, strategies, success_criteria"
SIX = "auto_fix, context_expand, analyze_then_fix, dependency_check, retry_with_backoff, escalate"
OF_A_PATTERN = (
    "id, signals, strategy, description, max_auto_retries, auto_fixable, kind, language, "
    "fix_command, alternatives, non_retryable, examples, near_misses"
)
BOMB = "version: 2\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)
WEIGHT = "expected strong, weak or a number above 0, up to 1"
SHAPE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "1:1: found nothing, expected a mapping"),
    "comments only": ("# later\n", "1:1: found nothing, expected a mapping"),
    "text at the top": ("hello\n", "1:1: found 'hello', expected a mapping"),
    "a list at the top": ("- a\n", "1:1: found a list, expected a mapping"),
    "no version": (
        "patterns: []\n",
        "1:1: found no key 'version', expected one",
    ),
    "unknown version": (
        "version: 3\n",
        "1:10: found 3, expected 1 or 2",
    ),
    "unknown key": ("version: 2\nfoo: 1\n", "2:1: found unknown key 'foo', expected one of version, extends, patterns, strategies, "
        "success_criteria"),
    "a slip of a key": (
        "version: 2\npattern: []\n",
        "2:1: found unknown key 'pattern', expected one of version, extends, patterns, "
        "strategies, success_criteria; did you mean 'patterns'?",
    ),
    "a slip of a required key": (
        HEAD + "    signal: [{word: abc}]\n",
        "6:5: found unknown key 'signal', expected one of id, signals, strategy, description, "
        "max_auto_retries, auto_fixable, kind, language, fix_command, alternatives, "
        "non_retryable, examples, near_misses; did you mean 'signals'?",
    ),
    "missing keys": (
        "version: 2\npatterns:\n  - id: p\n    description: d\n",
        "3:5: found no key 'signals', expected one",
    ),
    "a key twice": (
        "version: 2\nversion: 2\n",
        "2:1: found key 'version' a second time, expected each key once",
    ),
    "a key that is a list": ("version: 2\n? [a]\n: b\n", "2:3: found a list as a key, expected text"),
    "a mapping for a list": (
        "version: 2\npatterns: {}\n",
        "2:11: found an empty mapping, expected a list",
    ),
    "no signals": (
        HEAD + "    signals: []\n",
        "6:14: found an empty list, expected 1 or more entries",
    ),
    "text for a signal": (
        HEAD + "    signals: [foo]\n",
        "6:15: found 'foo', expected a mapping",
    ),
    "two kinds of signal": (
        HEAD + "    signals: [{literal: abc, word: abc}]\n",
        "6:15: found literal, word, expected exactly one of literal, word, regex, any, not",
    ),
    "empty text": (
        HEAD + "    signals: [{literal: ''}]\n",
        "6:25: found '', expected text of 1 character or more",
    ),
    "a number for text": (
        HEAD + "    signals: [{literal: 3}]\n",
        "6:25: found 3, expected text: put it in quotes",
    ),
    "truth for text": (
        HEAD + "    signals: [{literal: yes}]\n",
        "6:25: found yes, expected text: put it in quotes",
    ),
    "nothing for text": (HEAD + "    signals: [{literal: }]\n", "6:25: found nothing, expected text"),
    "a weight that is no number": (
        HEAD + "    signals: [{literal: abc, w: .nan}]\n",
        "6:33: found .nan, expected strong, weak or a number above 0, up to 1",
    ),
    "a negative weight": (
        HEAD + "    signals: [{literal: abc, w: -0.5}]\n",
        "6:33: found -0.5, expected strong, weak or a number above 0, up to 1",
    ),
    "a slip of a weight": (
        HEAD + "    signals: [{literal: abc, w: storng}]\n",
        f"6:33: found 'storng', {WEIGHT}; did you mean 'strong'?",
    ),
    "an unknown place": (
        HEAD + "    signals: [{literal: abc, in: nose}]\n",
        "6:34: found 'nose', expected one of anywhere, message, tool, code, kind",
    ),
    "an unknown strategy": (
        HEAD.replace("escalate", "pray") + "    signals: [{word: abc}]\n",
        f"4:15: found 'pray', expected one of {SIX}",
    ),
    "a slip of a strategy": (
        HEAD.replace("escalate", "esclate") + "    signals: [{word: abc}]\n",
        f"4:15: found 'esclate', expected one of {SIX}; did you mean 'escalate'?",
    ),
    "a strategy described that is none": (
        "version: 2\nstrategies: {pray: {description: d}}\n",
        "2:14: found 'pray', expected one of auto_fix, context_expand, analyze_then_fix, "
        "dependency_check, retry_with_backoff, escalate",
    ),
    "negative retries": (
        HEAD + "    signals: [{word: abc}]\n    max_auto_retries: -1\n",
        "7:23: found -1, expected 0 or more",
    ),
    "perhaps": (
        HEAD + "    signals: [{word: abc}]\n    auto_fixable: maybe\n",
        "7:19: found 'maybe', expected true or false",
    ),
    "an id twice": (
        HEAD + "    signals: [{word: abc}]\n" + HEAD[21:] + "    signals: [{word: abc}]\n",
        "7:9: found id 'p' a second time, expected each id once",
    ),
    "only exclusions": (
        HEAD + "    signals: [{not: {literal: abc}}]\n",
        "6:14: expected 1 signal or more that is not a 'not'",
    ),
}  # fmt: skip

HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "10 MB": ("#" * 10_000_000, "1:1: found more than 4194304 characters, expected at most so many"),
    "alias bomb": (BOMB, "2:32: found more than 100000 keys and values, expected at most so many"),
    "deep nesting": (
        "version: 2\npatterns: " + "[" * 5000,
        "2:34: found more than 24 levels, expected at most so many",
    ),
    "many values": (
        "version: 2\npatterns: [" + "x," * 200_000,
        "2:200002: found more than 100000 keys and values, expected at most so many",
    ),
    "an alias of what it stands in": (
        "version: 2\npatterns: &x [*x]\n",
        "2:11: found more than 24 levels, expected at most so many",
    ),
    "an alias of nothing": (
        "version: 2\npatterns: *x\n",
        "2:11: found '*x', expected an anchor of that name above it",
    ),
    "a Python object": (
        "version: 2\npatterns: !!python/object/apply:os.system [x]\n",
        "2:11: found the tag !!python/object/apply:os.system, expected a plain value without tags",
    ),
    "a tag that ends like text": (
        HEAD + "    signals: [{literal: !!x:str abc}]\n",
        "6:25: found the tag !!x:str, expected a plain value without tags",
    ),
    "an anchor twice": (
        "a: &x 1\nb: &x 2\n",
        "2:4: found '&x 2', expected each anchor once",
    ),
    "a directive": ("%a b\n---\na: 1\n", "1:1: found '%a b', expected YAML 1.1 or 1.2 without directives"),
    "a merge key": (
        "version: 2\n<<: {a: b}\n",
        "2:1: found the merge key '<<', expected each key written out",
    ),
    "two documents": ("version: 2\n---\na: 1\n", "2:1: found '---', expected one document"),
    "invalid UTF-8": (
        b"version: 2\nfoo: \xc3\xa9\xff\n",
        "2:7: found the byte 0xff, which is no UTF-8, expected UTF-8 text",
    ),
    "half a UTF-16 character": (
        b"\xff\xfea\x00b",
        "1:2: found the byte 0x62, which is no UTF-16, expected UTF-8 text",
    ),
    "NUL": ("version: 2\n\x00", "2:1: found the character U+0000, expected printable text"),
    "a lone surrogate": ("a: \ud800\n", "1:4: found the character U+D800, expected printable text"),
    "a byte order mark does not move columns": (
        b"\xef\xbb\xbfversion: 3\n",
        "1:10: found 3, expected 1 or 2",
    ),
    "a tab for indentation": ("version: 2\n\tpatterns: []\n", "2:1: found a tab, expected spaces"),
    "a tab before an entry": ("a:\n\t- b\n", "2:1: found a tab, expected spaces"),
    "an old YAML": ("%YAML 3.0\n---\na: 1\n", "1:1: found '%YAML 3.0', expected YAML 1.1 or 1.2 without directives"),
    "an open list": (
        "version: 2\npatterns: [a\n",
        "3:1: found the end of the file, expected ',' or ']' in the list that begins in line 2",
    ),
    "an open list with nothing in it": (
        "version: 2\npatterns: [\n",
        "3:1: found the end of the file, expected a value",
    ),
    "an open mapping": (
        "version: 2\na: {b: c\n",
        "3:1: found the end of the file, expected ',' or '}' in the mapping that begins in line 2",
    ),
    "an open quote": (
        'version: 2\na: "abc\n',
        "2:4: found '\"abc', expected the quote that ends this text",
    ),
    "a key without a value": ("a: 1\nkey\nb: 3\n", "2:1: found 'key', expected 'key: value'"),
    "two colons": (
        "a: b: c\n",
        "1:5: found ': c', expected text with ': ' in quotes, or a key indented like its "
        "neighbours",
    ),
    "a colon in a list": (
        "a: [b, c:[d]\n",
        "1:8: found 'c:[d]', expected quotes round text that holds ':'",
    ),
    "a list and a key": (
        "a:\n  - b\n  c: d\n",
        "3:3: found 'c: d', expected '- ' indented like the entries above",
    ),
    "a key and a list": ("a: 1\n- b\n", "2:1: found '- b', expected a key indented like its neighbours"),
    "an entry on the line of its key": (
        "a: - b\n",
        "1:4: found '- b', expected an entry '- ' on a line of its own",
    ),
    "an escape of a regex in double quotes": (
        'a: "x\\d"\n',
        "1:6: found '\\\\d\"', expected an escape of YAML (in single quotes a backslash is none)",
    ),
    "a reserved character": (
        "a: @x\n",
        "1:4: found '@x', expected quotes round text that begins with it",
    ),
    "a tag that is cut off": ("a: !<foo\n", "1:4: found '!<foo', expected a plain value without tags"),
}  # fmt: skip


@pytest.mark.parametrize("case", [*SHAPE, *HOSTILE])
def test_what_is_wrong_is_said_at_its_place(case: str) -> None:
    content, said = {**SHAPE, **HOSTILE}[case]
    assert str(inspect(content, "mine.yml").findings[0]) == f"mine.yml:{said}"
    assert said_of(content) == f"mine.yml:{said}"


def test_all_that_is_wrong_is_found_in_one_go() -> None:
    content = """\
version: 2
patterns:
  - id: one
    strategy: pray
    signals: [{word: abc, w: 2}, {literal: 3}]
    descripton: d
  - id: one
    strategy: escalate
    description: d
    signals: [{wrd: abc}]
"""
    places = [(one.line, one.column) for one in inspect(content, "mine.yml").findings]
    assert places == [(4, 15), (5, 30), (5, 44), (6, 5), (10, 16)]


def test_no_more_is_said_than_a_person_reads() -> None:
    content = "version: 2\npatterns:\n" + "".join(f"  - x{i}\n" for i in range(1000))
    assert len(inspect(content, "mine.yml").findings) == MOST_PROBLEMS


def test_a_file_is_read_no_further_than_shows_that_it_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large.yml"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(
        loki.ConfigError, match=r"large\.yml:1:1: found more than 4194304 bytes, expected"
    ):
        loki.PatternSet.load(path)
