"""A model's answer as a change: read leniently, never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loki import Answer, Proposal
from loki.action.changes.forbidden_changes import refusals
from loki.action.changes.tree import Tree
from loki.agents.model_agent import TOOL, Context, Unusable, loads, read_proposal
from loki.agents.openai_llm import is_strict

FILES = {
    "a.py": b"x = 1\ny = 1\n",
    "dos.txt": b"one\r\ntwo\r\n",
    "latin.txt": b"caf\xe9\n",
    "long.py": b"z = 1\n",
}


@pytest.fixture
def context(project: Path) -> Context:
    """All files but long.py were shown whole."""
    for name, content in FILES.items():
        (project / name).write_bytes(content)
    return Context("", Tree.scan(project), frozenset(FILES) - {"long.py"})


def take(context: Context, *edits: dict[str, Any], **more: Any) -> Proposal:
    said = {"description": "Do it.", "edits": list(edits), **more}
    return read_proposal(Answer(arguments=json.dumps(said)), context)


def problems(context: Context, *edits: dict[str, Any], **more: Any) -> tuple[str, ...]:
    with pytest.raises(Unusable) as caught:
        take(context, *edits, **more)
    return caught.value.problems


def after(said: Proposal) -> dict[str, bytes | None]:
    return {edit.path: edit.after for edit in said.change.edits}


def test_write_replace_delete_and_commands(context: Context) -> None:
    said = take(
        context,
        {"path": "./b.py", "action": "write", "content": "ä = 1\n", "old": None, "new": None},
        {"path": "a.py", "action": "replace", "old": "x = 1", "new": "x = 2"},
        {"path": "a.py", "action": "replace", "old": "y = 1", "new": "y = x"},
        {"path": "latin.txt", "action": "delete"},
        commands=["pip install 'a b'"],
        confidence=0.5,
    )
    assert after(said) == {
        "b.py": "ä = 1\n".encode(),
        "a.py": b"x = 2\ny = x\n",
        "latin.txt": None,
    }
    assert said.change.commands == (("pip", "install", "a b"),)
    assert (said.description, said.confidence) == ("Do it.", 0.5)
    before = {edit.path: edit.before for edit in said.change.edits}
    entries = context.tree.entries
    assert before == {
        "b.py": None,
        "a.py": entries["a.py"].hash,
        "latin.txt": entries["latin.txt"].hash,
    }


def test_a_file_that_changed_meanwhile_is_refused(context: Context) -> None:
    """The change is based on what was shown."""
    said = take(context, {"path": "a.py", "action": "write", "content": "x = 3\n"})
    (context.tree.root / "a.py").write_text("somebody else was here\n")
    assert refusals(said.change, context.tree.root)


def test_line_ends_stay(context: Context) -> None:
    replaced = take(context, {"path": "dos.txt", "old": "one\ntwo", "new": "one\nand\ntwo"})
    assert after(replaced) == {"dos.txt": b"one\r\nand\r\ntwo\r\n"}
    written = take(context, {"path": "dos.txt", "content": "three\nfour\n"})
    assert after(written) == {"dos.txt": b"three\r\nfour\r\n"}


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ({"path": "a.py", "action": "replace", "old": "= 1", "new": "= 2"}, "occurs 2 times"),
        ({"path": "a.py", "action": "replace", "old": "x = 7", "new": "x"}, "does not occur"),
        ({"path": "a.py", "action": "replace", "old": "", "new": "x"}, "replace needs `old`"),
        ({"path": "a.py", "action": "replace", "old": "x"}, "replace needs `old`"),
        ({"path": "no.py", "action": "replace", "old": "x", "new": "y"}, "no such file"),
        ({"path": "latin.txt", "action": "replace", "old": "caf", "new": "tea"}, "no such file"),
        ({"path": "../x", "action": "replace", "old": "x", "new": "y"}, "no such file"),
        ({"path": "b.py", "action": "write"}, "write needs `content`"),
        ({"path": "long.py", "action": "write", "content": "z = 2"}, "not shown all of it"),
    ],
)
def test_an_edit_that_cannot_be_made(context: Context, edit: dict[str, Any], problem: str) -> None:
    (found,) = problems(context, edit)
    assert found.startswith("edit 1 (`")
    assert problem in found


def test_everything_that_is_wrong_is_told_at_once(context: Context) -> None:
    wrong = {"path": "a.py", "action": "replace", "old": "nix", "new": ""}
    found = problems(context, wrong, wrong, commands=["a | b", "echo 'open"])
    assert len(found) == 4
    assert "needs a shell" in found[2]


def test_a_file_that_was_not_shown_whole_may_be_replaced_in(context: Context) -> None:
    said = take(context, {"path": "long.py", "action": "replace", "old": "z = 1", "new": "z = 2"})
    assert after(said) == {"long.py": b"z = 2\n"}


@pytest.mark.parametrize(
    "path", ["../x.py", "/etc/x", ".git/config", "~/x", "a\0b", ".loki/config.toml"]
)
def test_hostile_paths_reach_the_refusal(context: Context, path: str) -> None:
    """It is the one place that knows them all."""
    for edit in ({"path": path, "content": "x"}, {"path": path, "action": "delete"}):
        assert refusals(take(context, edit).change, context.tree.root, context.tree)


# --- JSON ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"edits": [], "description": "a\\nb"}',
        '{"edits": [], "description": "a\nb"}',
        'Here:\n```json\n{"edits": [], "description": "a\\nb"}\n```\nDone.',
        '{"edits": [,], "description": "a\\nb",}'.replace("[,]", "[]"),
        '{"edits": "[]", "description": "a\\nb"}',
        'I saw {braces} and {"x": 1}. {"edits": [], "description": "a\\nb"}',
    ],
    ids=["plain", "raw line break", "fence", "comma", "list as text", "words"],
)
def test_slightly_malformed(context: Context, text: str) -> None:
    assert read_proposal(Answer(arguments=text), context).description == "a\nb"
    assert read_proposal(Answer(text), context).description == "a\nb"


def test_commas_in_strings_stay() -> None:
    assert loads('{"a": ",]", "b": [1, 2,], "c": "\\",}"}') == {
        "a": ",]",
        "b": [1, 2],
        "c": '",}',
    }


@pytest.mark.parametrize("length", range(1, 60, 7))
def test_what_was_cut_off_is_never_completed(context: Context, length: int) -> None:
    """Half a file would look like a whole one."""
    whole = '{"edits": [{"path": "b.py", "content": "a = 1\\nb = 2\\n"}], "description": ""}'
    for ending in ("end", "length"):
        with pytest.raises(Unusable) as caught:
            read_proposal(Answer(arguments=whole[:length], ending=ending), context)
        assert ("cut off" in str(caught.value)) == (ending == "length")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I am done.", "propose_change was not called"),
        ('{"description": "x"}', "edits: found nothing, expected a value"),
        ('{"edits": [{"content": "x"}]}', "edits.0.path: found nothing, expected a value"),
        ('{"edits": [{"path": "a", "action": "append"}]}', "edits.0.action"),
        ('{"edits": 7}', "edits"),
    ],
)
def test_no_proposal(context: Context, text: str, problem: str) -> None:
    with pytest.raises(Unusable, match=problem):
        read_proposal(Answer(text), context)


@pytest.mark.parametrize(
    "text",
    [
        '{"edits": ' + "[" * 100_000,
        '{"edits": "' + '\\"' * 1_000_000,
        "{" * 1_000_000,
        '{"edits": [' + "," * 1_000_000,
        '{"edits": ' + "9" * 1_000_000 + "}",
    ],
    ids=["deep", "quotes", "braces", "commas", "digits"],
)
def test_hostile_answers_are_refused_soon(context: Context, text: str) -> None:
    with pytest.raises(Unusable):
        read_proposal(Answer(arguments=text), context)


def test_the_schema_can_be_enforced() -> None:
    assert is_strict(TOOL.schema)
