"""A change is data: it can be compared, shown, stored, and says what it expects to find."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.changes.change import MAX_FILE_SIZE, UNKNOWN, Change, Edit
from loki.action.changes.tree import Tree
from loki.base.error import UsageError


def test_write() -> None:
    """Text is UTF-8, None deletes, './' goes, commands are split without a shell."""
    change = Change.write({"./a.py": "ä", "b": b"\xff", "c": None}, ["ruff check .", ("x", "y z")])
    assert change.edits == (Edit("a.py", b"\xc3\xa4"), Edit("b", b"\xff"), Edit("c", None))
    assert change.commands == (("ruff", "check", "."), ("x", "y z"))
    assert Change.nothing().is_empty
    assert not Change.write({}, ["x"]).is_empty
    with pytest.raises(UsageError, match="a.py: its content is of type int"):
        Change.write({"a.py": 3})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="needs a shell"):
        Change.write({}, ["a && b"])


def test_between_leads_from_one_tree_to_the_other(tmp_path: Path) -> None:
    """Changed, added, deleted, modes, links; each with what was seen; huge files are not carried."""
    old, new = tmp_path / "old", tmp_path / "new"
    for root in (old, new):
        root.mkdir()
        (root / "same").write_text("s")
    (old / "gone").write_text("g")
    (old / "mode").write_text("m")
    (new / "mode").write_text("m")
    (new / "mode").chmod(0o755)
    (new / "link").symlink_to("same")
    with (new / "big").open("wb") as big:
        big.truncate(100_000_000)
    before = Tree.scan(old)
    change = Change.between(before, Tree.scan(new))
    seen = before.entries
    assert change.edits == (
        Edit("big", b"", None, "file", 100_000_000),
        Edit("gone", None, seen["gone"].hash),
        Edit("link", b"same", None, "symlink"),
        Edit("mode", b"m", seen["mode"].hash, "executable"),
    )
    assert Change.between(before, before).is_empty


def test_the_same_change_again(tmp_path: Path) -> None:
    """Equal digests: the same effects, in any order, whatever was there before."""
    one = Change.write({"a": "1", "b": None}, ["x"])
    assert one.digest() == Change.write({"b": None, "a": "1"}, ["x"]).digest()
    (tmp_path / "a").write_text("0")
    assert one.based_on(Tree.scan(tmp_path)).digest() == one.digest()
    others = [
        Change.write({"a": "1", "b": None}),
        Change.write({"a": "1", "b": ""}, ["x"]),
        Change.write({"a": "2", "b": None}, ["x"]),
        Change((Edit("a", b"1", mode="executable"), Edit("b", None)), (("x",),)),
    ]
    assert len({change.digest() for change in (one, *others)}) == 5


def test_based_on_fills_in_what_was_seen(tmp_path: Path) -> None:
    """The hash of each file, nothing for new ones; what the agent said itself stays."""
    (tmp_path / "a").write_text("a")
    tree = Tree.scan(tmp_path)
    change = Change((Edit("a", b"1"), Edit("b", b"2"), Edit("c", b"3", "said"))).based_on(tree)
    assert [edit.before for edit in change.edits] == [tree.entries["a"].hash, None, "said"]


def test_diff_for_people(tmp_path: Path) -> None:
    """Unified, with new and deleted files; binary and huge files in one line."""
    (tmp_path / "a").write_text("1\n2\f\n3\n")
    (tmp_path / "b").write_text("gone")
    (tmp_path / "huge").write_bytes(b"x" * 600_000)
    change = Change.write({"a": "1\n2\f\n4\n", "b": None, "n": "new\n", "z": b"\0", "huge": "x"})
    assert change.diff(Tree.scan(tmp_path)) == (
        "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n 2\f\n-3\n+4\n"
        "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n"
        "Files a/huge and b/huge differ (600000 → 1 bytes)\n"
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n"
        "Files /dev/null and b/z differ (0 → 1 bytes)\n"
    )


@given(
    st.lists(
        st.builds(
            Edit,
            path=st.text(min_size=1) | st.binary(min_size=1).map(os.fsdecode),
            after=st.none() | st.binary(),
            before=st.none() | st.just(UNKNOWN) | st.text(),
            mode=st.sampled_from([None, "file", "executable", "symlink"]),
        )
    ),
    st.lists(st.lists(st.text(), min_size=1).map(tuple)),
)
def test_round_trip_through_json(edits: list[Edit], commands: list[tuple[str, ...]]) -> None:
    """Any change, names that are no UTF-8 included, is the same after JSON."""
    change = Change(tuple(edits), tuple(commands))
    assert Change.from_dict(json.loads(json.dumps(change.to_dict()))) == change


def test_an_oversized_edit_stays_oversized() -> None:
    """What was left out is remembered as left out."""
    change = Change((Edit("big", b"", None, "file", MAX_FILE_SIZE + 1),))
    assert Change.from_dict(change.to_dict()) == change


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"edits": {}}, "expected lists"),
        ({"edits": [3]}, r"edits\[0\]: expected an object with a 'path'"),
        ({"edits": [{"path": "a"}]}, r"edits\[0\]: expected 'text', 'base64' or"),
        ({"edits": [{"path": "a", "base64": "!"}]}, r"edits\[0\].base64"),
        ({"edits": [{"path": "a", "text": "", "mode": "x"}]}, "expected one of file, executable"),
        ({"edits": [{"path": "a", "text": "", "before": 1}]}, r"before: expected a hash or null"),
        ({"commands": ["x"]}, r"commands\[0\]: expected a list of words"),
    ],
)
def test_wrong_descriptions_say_where(data: dict[str, object], says: str) -> None:
    """One sentence each."""
    with pytest.raises(UsageError, match=says):
        Change.from_dict(data)
