"""What goes into settings comes out again, to the byte, and nobody else's is touched."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.adapters.hooks.hook_installation import (
    Entry,
    add,
    commands,
    cut,
    installed,
    is_ours,
    read,
    removed,
)
from loki.base.error import ConfigError

LINE = "test ! -x /v/bin/loki || /v/bin/loki hook claude-code || true"
ENTRY = Entry(LINE, (("PreToolUse", "*"), ("PostToolUse", "*"), ("Stop", None)), {"timeout": 30})
LENIENT = Entry(LINE, ENTRY.events, {"name": "loki"}, comments=True)

OTHERS = st.builds(
    lambda words, matcher: {"matcher": matcher, "hooks": [{"type": "command", "command": words}]},
    st.sampled_from(["echo hi", "prettier --write", "loki explain", "echo loki hook x >> y"]),
    st.sampled_from(["*", "Bash", ""]),
)
EVENTS = st.dictionaries(
    st.sampled_from(["PreToolUse", "PostToolUse", "Stop", "Notification"]),
    st.lists(OTHERS, max_size=2),
    max_size=4,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
SETTINGS = st.builds(
    lambda before, hooks, after: {**before, **hooks, **after},
    st.dictionaries(st.text(max_size=5).filter(lambda k: k != "hooks"), PLAIN, max_size=3),
    st.builds(lambda events: {"hooks": events}, EVENTS) | st.just({}),
    st.dictionaries(st.sampled_from(["model", "env", "permissions"]), PLAIN, max_size=2),
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Settings as people and programs lay them out."""
    said = draw(SETTINGS)
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t", 0]))
    text = json.dumps(said, indent=indent, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("{}", "{ }").replace("[]", "[\n]")
        if json.loads(text) != said:  # it stood within a string
            text = json.dumps(said, indent=indent)
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return (
        draw(st.sampled_from(["", "\n", "  "])) + text + draw(st.sampled_from(["", "\n", "\n\n"]))
    )


def merged(said: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """What the settings are to say."""
    hooks = {name: list(groups) for name, groups in said.get("hooks", {}).items()}
    for event, matcher in entry.events:
        hooks.setdefault(event, []).append(entry.group(matcher))
    return {**said, "hooks": hooks}


@given(texts())
def test_what_goes_in_comes_out_to_the_byte(text: str) -> None:
    there = installed(text, ENTRY)
    assert json.loads(there) == merged(json.loads(text), ENTRY)
    assert list(json.loads(there)) == [
        *json.loads(text),
        *([] if "hooks" in json.loads(text) else ["hooks"]),
    ]
    assert installed(there, ENTRY) == there
    assert removed(there, comments=False) == text


@given(texts(), st.sampled_from([None, 2, 4, "\t"]))
def test_whoever_lays_it_out_anew_loses_nothing(text: str, indent: int | None) -> None:
    """Agents write their settings themselves, for instance when something is allowed for good."""
    there = json.dumps(json.loads(installed(text, ENTRY)), indent=indent)
    assert installed(there, ENTRY) == there
    gone = removed(there, comments=False)
    rest = {} if gone is None else json.loads(gone)
    before = json.loads(text)
    kept = {name: groups for name, groups in before.get("hooks", {}).items() if groups}
    assert {**rest, "hooks": {n: g for n, g in rest.get("hooks", {}).items() if g}} == {
        **before,
        "hooks": kept,
    }


@given(texts())
def test_a_stale_command_line_is_replaced(text: str) -> None:
    old = Entry("test ! -x /old/loki || /old/loki hook claude-code || true", ENTRY.events[:2], {})
    there = installed(installed(text, old), ENTRY)
    assert {line for _, line in commands(there, comments=False)} == {LINE}
    assert removed(there, comments=False) == text


def test_no_file_before_is_no_file_afterwards() -> None:
    there = installed(None, ENTRY)
    assert json.loads(there) == {"hooks": ENTRY.whole()}
    assert removed(there, comments=False) is None
    assert removed("{}\n", comments=False) == "{}\n"


COMMENTED = """// my settings
{
  // dark, please
  "theme": "dark", /* really */
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}, // mine
    ],
  },
}
"""


def test_comments_stay_where_they_are_read() -> None:
    there = installed(COMMENTED, LENIENT)
    assert all(line in there for line in ("// my settings", "// dark, please", "// mine"))
    said = read(there, comments=True).value
    assert said["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    assert said["hooks"]["Stop"][1] == LENIENT.group(None)
    assert removed(there, comments=True) == COMMENTED


def test_a_command_beside_ours_in_our_group_stays() -> None:
    there = json.loads(installed(None, ENTRY))
    there["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
    gone = removed(json.dumps(there), comments=False)
    assert gone is not None
    assert json.loads(gone) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('{"a": 1,}', 1, "no comma before }"),
        ('{"a": 1\n "b": 2}', 2, "a comma, or }"),
        ('{\n  "hooks": [],\n}', 2, "no comma"),
        ('{\n  "a": tru\n}', 2, "a JSON value"),
        ('{\n\n  a: 1}', 3, "a key"),
        ("", 1, "a JSON value"),
        ('{"a": "x', 1, "a JSON string"),
        ("{} {}", 1, "nothing more"),
        ("// no\n{}", 1, "a JSON value"),
        ("[" * 300, 1, "levels"),
        ("[]", 1, "expected {"),
        ('{"hooks": 1}', 0, "events by name"),
        ('{"hooks":\n {"Stop": 1}}', 2, "groups of hooks"),
    ],
)  # fmt: skip
def test_what_is_broken_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        installed(text, ENTRY)
    assert error.value.line == line


@given(st.text(alphabet='{}[]",:/*\n\\ ae1', max_size=40), st.booleans())
def test_any_text_is_read_or_refused(text: str, comments: bool) -> None:
    try:
        said = read(text, comments=comments).value
    except ConfigError:
        with suppress(ValueError):
            json.loads(text)
            pytest.fail("refused what is JSON")
        return
    if not comments:
        assert said == json.loads(text)


@given(texts())
def test_cut_undoes_add(text: str) -> None:
    root = read(text)
    there = add(text, root, {"x": [1]}, "new key")
    assert json.loads(there)["new key"] == {"x": [1]}
    again = read(there)
    assert cut(there, again, len(again.items) - 1) == text


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "! command -v loki >/dev/null || loki hook gemini || true",
        "test -x '/my venv/bin/loki' && '/my venv/bin/loki' hook codex || ! command -v loki >/dev/null || loki hook codex || true",
        "/v/bin/python -m loki hook claude-code",
        "loki hook claude-code",
    ],
)
def test_command_lines_that_are_ours(line: str) -> None:
    assert is_ours(line)


@pytest.mark.parametrize(
    "line", ["echo hi", "loki explain", "loki hook claude-code | tee x", "bloki hook x", None, 3]
)
def test_command_lines_that_are_not(line: object) -> None:
    assert not is_ours(line)
