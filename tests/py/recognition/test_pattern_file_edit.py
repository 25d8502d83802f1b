"""One more pattern in a person's file: every byte stays, the result loads, or nothing is done."""

from __future__ import annotations

import codecs
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from loki.base.error import ConfigError
from loki.recognition.pattern import PatternSet
from loki.recognition.pattern_file_edit import NEW, add_pattern

ENTRY: dict[str, Any] = {
    "id": "flux-out",
    "description": 'Flux: it\'s "out" # really\nand gone',
    "strategy": "context_expand",
    "signals": [{"word": "flux: out"}, {"regex": r"(?i)\bflux\ .*out\b", "w": "weak"}],
    "examples": ["flux: out", "\u00fc flux: out \U0001f600"],
}
HEAD = "version: 2\nextends: default\n"
ONE = "  - {id: a, signals: [{word: boom}], strategy: escalate, description: x}\n"

FILES = {
    "block": HEAD + "patterns:\n" + ONE,
    "no indent": HEAD + "patterns:\n" + ONE.replace("  -", "-"),
    "deep indent": HEAD + "patterns:\n" + ONE.replace("  -", "      -"),
    "comments": "# ours\n" + HEAD + "patterns:  # known\n\n" + ONE + "    # of a\n\n# the end\n",
    "comment behind": HEAD + "patterns:\n" + ONE.rstrip() + "   # why: it booms\n# more\n",
    "no patterns": "# only this\nversion: 2   # ours\n\n",
    "no patterns, others": HEAD + "strategies:\n  escalate:\n    description: ask\n\n# end\n",
    "patterns first": "patterns:\n" + ONE + "\n# then\nversion: 2\nextends: default\n",
    "no last line feed": (HEAD + "patterns:\n" + ONE).rstrip(),
    "comment without line feed": (HEAD + "patterns:\n" + ONE).rstrip() + " # c",
    "carriage returns": (HEAD + "patterns:\n" + ONE + "# end\n").replace("\n", "\r\n"),
    "empty list": HEAD + "patterns: []  # none yet\n",
    "list in brackets": HEAD + "patterns: [" + ONE.strip(" -\n") + "]\nstrategies: {}\n",
    "list in brackets, comma": HEAD + "patterns: [\n " + ONE.strip(" -\n") + ",  # a, b\n]\n",
    "block of text": HEAD
    + "patterns:\n  - id: a\n    signals: [{word: boom}]\n    strategy: escalate\n"
    + "    description: |\n      it goes\n      boom\n\n\nstrategies: {}\n",
    "kept block of text": HEAD
    + "patterns:\n  - id: a\n    signals: [{word: boom}]\n    strategy: escalate\n"
    + "    description: |+\n      it goes\n\n\n",
    "folded over lines": HEAD
    + "patterns:\n  - id: a\n    signals: [{word: boom}]\n    strategy: escalate\n"
    + "    description: it goes\n      boom\n      often\n",
    "nested list at the end": HEAD
    + "patterns:\n  - id: a\n    strategy: escalate\n    description: x\n    signals:\n"
    + "      - any:\n        - word: boom\n        - word: bang\n",
    "alias at the end": HEAD
    + "patterns:\n  - id: a\n    signals: &s [{word: boom}]\n    strategy: escalate\n"
    + "    description: x\n  - id: b\n    strategy: escalate\n    description: y\n    signals: *s\n",
    "document marks": "---\n" + HEAD + "patterns:\n" + ONE + "...\n",
    "indented root": "  version: 2\n  extends: default\n  strategies: {}\n",
    "quoted key": HEAD + '"patterns":\n' + ONE,
    "a key of that name inside": HEAD
    + "strategies:\n  escalate: {description: patterns, steps: [patterns]}\npatterns:\n"
    + ONE,
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_person_wrote_is_kept(name: str) -> None:
    old = FILES[name].encode()
    new = add_pattern(old, ENTRY)
    added = len(new) - len(old)
    assert any(new[:at] + new[at + added :] == old for at in range(len(old) + 1))
    before, after = yaml.safe_load(old), yaml.safe_load(new)
    assert after == {**before, "patterns": [*before.get("patterns", []), ENTRY]}
    assert PatternSet.loads(new).match("flux: out")[0].pattern == "flux-out"
    again = {**ENTRY, "id": "flux-two"}
    assert yaml.safe_load(add_pattern(new, again))["patterns"][-2:] == [ENTRY, again]


@pytest.mark.parametrize("name", ["carriage returns"])
def test_line_ends_stay_what_they_are(name: str) -> None:
    new = add_pattern(FILES[name].encode(), ENTRY)
    assert new.count(b"\n") == new.count(b"\r\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_stays(encoding: str) -> None:
    old = ("# ü\n" + FILES["comments"]).encode(encoding)
    new = add_pattern(old, ENTRY)
    assert new.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    assert PatternSet.loads(new).patterns["flux-out"].strategy == "context_expand"
    assert new.decode(encoding).startswith("# ü\n# ours\nversion: 2\n")


def test_where_there_is_no_file_one_is_begun() -> None:
    new = add_pattern(None, ENTRY)
    assert new.startswith(NEW.encode())
    assert yaml.safe_load(new) == {"version": 2, "extends": "default", "patterns": [ENTRY]}
    assert len(PatternSet.loads(new).patterns) == len(PatternSet.default().patterns) + 1


def test_the_same_pattern_again_changes_nothing() -> None:
    new = add_pattern(None, ENTRY)
    assert add_pattern(new, ENTRY) == new


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "own.yml.*expected"),
        (b"# only a comment\n", "own.yml.*expected"),
        (b"patterns: [\n", "own.yml:"),
        (b"version: 2\npatterns:\n", "own.yml:2:.*expected a list"),
        (b"version: 2\npattern: []\n", "own.yml:2:1: found unknown key 'pattern'"),
        (b"version: 1\npatterns: []\n", "found version 1, which cannot say the signals"),
        (b"{version: 2, extends: default}\n", "add it by hand"),
        (HEAD.encode() + b"patterns:\n  - {id: flux-out, signals: [{word: x}], strategy: escalate, "
         b"description: x}\n", "found another pattern 'flux-out'"),
        (b"version: 2\n\xff", "own.yml:2:1: found the byte 0xff"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_added_to_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        add_pattern(content, ENTRY, "own.yml")


def test_a_pattern_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a '\\]' behind it"):
        add_pattern(None, {**ENTRY, "signals": [{"regex": "boom["}]})
    with pytest.raises(ConfigError, match="expected one of auto_fix"):
        add_pattern(None, {**ENTRY, "strategy": "pray"})


texts = st.text(
    st.one_of(
        st.sampled_from("-\n:#'\"|> \t`[]{}&*!%@a\u2028\x85é\x00"), st.characters(codec="utf-8")
    ),
    min_size=1,
    max_size=30,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(FILES)), texts, texts)
def test_any_text_is_added_as_it_is(name: str, word: str, description: str) -> None:
    entry = {**ENTRY, "description": description, "signals": [{"literal": word}]}
    new = add_pattern(FILES[name].encode(), entry)
    assert yaml.safe_load(new)["patterns"][-1] == entry
