"""Command lines are split as a shell would, and what only a shell can do is refused."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki.action.processes.command_line import (
    find_program,
    leading_assignments,
    split_command_line,
    why_not_runnable,
)
from loki.base.error import UsageError


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("pytest -q", ("pytest", "-q")),
        ("A=1 B='x y' make -j", ("A=1", "B=x y", "make", "-j")),
        ("grep '|&;*$`' \"a b\" c\\|d", ("grep", "|&;*$`", "a b", "c|d")),
        ("pytest t.py::test[a-1]", ("pytest", "t.py::test[a-1]")),
        ("agent {briefing}", ("agent", "{briefing}")),
        ("git show HEAD~1 x#y", ("git", "show", "HEAD~1", "x#y")),
        ("sh -c 'a && b > c'", ("sh", "-c", "a && b > c")),
    ],
)
def test_words(command: str, words: tuple[str, ...]) -> None:
    """Quotes, escapes, assignments."""
    assert split_command_line(command) == words


@pytest.mark.parametrize("command", [
    "a && b", "a | b", "a > f", "a < f", "a; b", "a &", "ls *.py", "ls a?", "echo $HOME",
    'echo "$HOME"', "echo `x`", "(a)", "a\nb", "~/bin/x", "# x",
])  # fmt: skip
def test_what_needs_a_shell(command: str) -> None:
    """The sentence says what to write instead, and that works."""
    with pytest.raises(UsageError, match="needs a shell") as caught:
        split_command_line(command)
    advice = str(caught.value).partition("or write ")[2]
    assert split_command_line(advice) == ("sh", "-c", command)


@pytest.mark.parametrize(
    ("command", "says"),
    [("", "names no program"), ("A=1", "names no program"), ("a 'b", "closed quote"),
     ("a b\\", "closed quote")],
)  # fmt: skip
def test_no_command(command: str, says: str) -> None:
    """One sentence."""
    with pytest.raises(UsageError, match=says):
        split_command_line(command)


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1))
def test_quoted_words_survive(words: list[str]) -> None:
    """Whatever is quoted for a shell comes out as it went in."""
    command = ["x", *words]
    assert split_command_line(shlex.join(command)) == tuple(command)


def test_assignments() -> None:
    """Only the leading ones."""
    assert leading_assignments(["A=1", "B=", "x", "C=2"]) == ({"A": "1", "B": ""}, ("x", "C=2"))
    assert leading_assignments(["1A=x"]) == ({}, ("1A=x",))


def test_which_program_would_run(tmp_path: Path) -> None:
    """Names on the PATH, paths from the folder; what is not there yet may come."""
    (tmp_path / "x").write_text("#!/bin/sh\n")
    assert find_program("sh") is not None
    assert find_program("./x", tmp_path) is None
    assert why_not_runnable(("./x",), tmp_path) == (
        "cannot run './x': it is not executable (chmod +x ./x)"
    )
    (tmp_path / "x").chmod(0o755)
    assert find_program("./x", tmp_path) == f"{tmp_path}/./x"
    assert why_not_runnable(("A=1", "./x"), tmp_path) is None
    assert why_not_runnable(("./later", "-q"), tmp_path) is None
    assert why_not_runnable(("./later", "-q"), tmp_path, may_come=False) == (
        f"cannot run './later': there is no such file in {tmp_path}"
    )
    assert why_not_runnable(("/nowhere/x",), tmp_path) == (
        f"cannot run '/nowhere/x': there is no such file in {tmp_path}"
    )
    assert why_not_runnable(("no-such-program",), tmp_path) == (
        "cannot run 'no-such-program': there is no such program on the PATH"
    )
    assert why_not_runnable((), tmp_path) == "the command names no program"
    assert "it is a folder" in str(why_not_runnable((str(tmp_path),), tmp_path))
