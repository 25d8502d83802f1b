"""`loki explain` of output that is there already: what it reads, what it says, what it refuses."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from loki import recognize
from loki.memory.attempt import Attempt, History
from loki.stores.file_store import FileStore
from support.command import Ended, loki

ERROR = 'shop/till.py:3: error: Name "price" is not defined  [name-defined]\n'
OUTPUT = "".join(f"step {n} done\n" for n in range(1, 12)) + ERROR


def explain(*arguments: str | Path, cwd: Path, data: bytes = b"") -> Ended:
    return loki("explain", *map(str, arguments), cwd=cwd, data=data)


def as_json(*arguments: str | Path, cwd: Path, data: bytes = b"") -> dict[str, Any]:
    code, out, err = explain(*arguments, "--json", cwd=cwd, data=data)
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    return value


def test_a_file_stdin_and_a_text_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "build.log").write_text(OUTPUT)
    said = [
        explain("build.log", cwd=tmp_path),
        explain(cwd=tmp_path, data=OUTPUT.encode()),
        explain("-", cwd=tmp_path, data=OUTPUT.encode()),
        explain("--text", OUTPUT, cwd=tmp_path),
    ]
    assert said[0][0] == 0
    assert "  at     shop/till.py:3\n" in said[0][1]
    assert f"  > 12 | {ERROR}" in said[0][1]
    assert set(said) == {said[0]}
    assert not (tmp_path / ".loki").exists()


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text(OUTPUT))
    writer.start()
    assert "shop/till.py:3" in explain(fifo, cwd=tmp_path)[1]
    writer.join()


@pytest.mark.parametrize(
    "data",
    [
        OUTPUT.encode("utf-16"),
        b"caf\xe9 \xff\xfe opened\n" + OUTPUT.encode() + b"\xc3",
        OUTPUT.replace("\n", "\r\n").encode(),
        b"\x1b[31m" + OUTPUT.encode() + b"\x1b[0m",
    ],
    ids=["UTF-16", "no UTF-8", "CR LF", "colors"],
)
def test_any_encoding(tmp_path: Path, data: bytes) -> None:
    said = as_json(cwd=tmp_path, data=data)
    assert (said["path"], said["line"], said["source"]) == ("shop/till.py", 3, "stdin")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.log",), "cannot read none.log: No such file or directory"),
        (("TypeError: x is y",), "a text goes after --text"),
        (("folder",), "cannot read folder: it is a folder, expected a tool's output"),
        (("program",), "cannot explain program: it is binary, expected a tool's output"),
        (("sh", "-c", "exit 3"), "to run it: loki explain -- sh -c 'exit 3'"),
        (("--text", "x", "build.log"), "expected one of them"),
        (("--text", "x", "--", "true"), "found --text and a command after --"),
        (("build.log", "--", "true"), "found the file build.log and a command after --"),
        (("--",), "found nothing after --, expected a command"),
        (("--exit-code", "1", "--", "true"), "for output that is there already"),
        (("--project", "/nowhere", "--", "touch", "ran"), "no such project"),
        (
            ("--text", "x", "-o", "no/such/folder/out"),
            "cannot write no/such/folder/out: No such file",
        ),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "program").write_bytes(Path(sys.executable).read_bytes()[:100_000])
    (tmp_path / "build.log").write_text(OUTPUT)
    code, out, err = explain(*arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert err.startswith("loki: ")
    assert not (tmp_path / "ran").exists()


def test_random_bytes_are_binary(tmp_path: Path) -> None:
    code, _, err = explain(cwd=tmp_path, data=os.urandom(100_000))
    assert (code, err) == (
        2,
        "loki: cannot explain stdin: it is binary, expected a tool's output\n",
    )


def test_where_nothing_is_to_be_explained(tmp_path: Path) -> None:
    assert explain(cwd=tmp_path) == (0, "Nothing failed: stdin is empty.\n", "")
    assert explain(cwd=tmp_path, data=b" \n\n") == (0, "Nothing failed: stdin is blank.\n", "")
    code, out, _ = explain("--exit-code", "0", cwd=tmp_path, data=OUTPUT.encode())
    assert (code, out) == (0, "Nothing failed: exit code 0.\n")
    code, out, _ = explain(cwd=tmp_path, data=b"hello\nworld\n")
    assert code == 0
    assert "No rule knows a failure in this output" in out
    assert "  > 2 | world\n" in out
    assert as_json("--text", "hello", cwd=tmp_path)["verdict"] == "unclear"
    assert as_json(cwd=tmp_path)["verdict"] == "passed"
    assert as_json("--text", "TypeError: x", cwd=tmp_path)["verdict"] == "failed"


def test_what_was_run_tells_tools_apart_and_how_to_fix_it(tmp_path: Path) -> None:
    output = "shop.py:1:1: F401 [*] `os` imported but unused\nFound 1 error.\n"
    code, out, _ = explain("--command", "ruff check shop", cwd=tmp_path, data=output.encode())
    assert code == 0
    assert "  fix    ruff check --fix shop\n" in out
    said = as_json("--command", "ruff check shop", cwd=tmp_path, data=output.encode())
    assert said["next"]["fix_command"] == "ruff check --fix shop"
    assert said["command"] == "ruff check shop"


def test_paths_are_clickable_from_where_one_stands(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/till.py").write_text("x\n")
    said = as_json("--project", tmp_path, "--text", OUTPUT, cwd=tmp_path / "shop")
    assert (said["path"], said["where"]) == ("shop/till.py", "till.py:3")


def test_what_a_person_must_do_goes_to_a_person(tmp_path: Path) -> None:
    text = "PermissionError: [Errno 13] Permission denied: '/etc/till.conf'"
    out = explain("--text", text, cwd=tmp_path)[1]
    assert "next   ask a person" in out
    assert "Give the user that runs the check the rights it lacks" in out
    assert as_json("--text", text, cwd=tmp_path)["next"]["to"] == "person"


def test_secrets_are_masked(tmp_path: Path) -> None:
    text = "ValueError: cannot open https://me:hunter2@example.org/till\n"
    said = explain("--text", text, "--command", "till --password=hunter2", cwd=tmp_path)
    assert "hunter2" not in "".join(map(str, said))
    said = explain("--text", text, "--command", "till --password=hunter2", "--json", cwd=tmp_path)
    assert "hunter2" not in "".join(map(str, said))


def test_nothing_in_it_moves_the_cursor(tmp_path: Path) -> None:
    out = explain("--text", "TypeError: x\x07\x1b]0;title\x07\x1b[2J is \x9b2J bad", cwd=tmp_path)[
        1
    ]
    assert all(c.isprintable() or c == "\n" for c in out)


def _remember(root: Path, task: str, number: int, result: str, text: str | None) -> None:
    failure = recognize(text) if text else None
    History(FileStore(root / ".loki"), task).append(
        Attempt(
            attempt=number,
            timestamp=f"2026-01-{number:02}T10:00:00.000Z",
            action=f"turned screw {number}",
            result=result,
            strategy_used="context_expand" if failure else None,
            failure=failure.to_dict() if failure else None,
        )
    )


def test_what_was_seen_before_and_what_helped(tmp_path: Path) -> None:
    _remember(tmp_path, "mend", 1, "failed", OUTPUT)
    _remember(tmp_path, "mend", 2, "failed", "KeyError: 'a price that nobody knows of'")
    _remember(tmp_path, "mend", 3, "failed", OUTPUT)
    out = explain("--text", OUTPUT, cwd=tmp_path)[1]
    assert "  seen   2 times here, last in mend attempt 3, 2026-01-03 10:00\n" in out
    assert "after: turned screw 3" in out
    assert "nothing that was tried since has helped" in out
    _remember(tmp_path, "mend", 4, "success", None)
    files = sorted(p for p in (tmp_path / ".loki").rglob("*") if p.is_file())
    before = {path: path.read_bytes() for path in files}
    out = explain("--text", OUTPUT, cwd=tmp_path)[1]
    assert "what helped: mend attempt 4 succeeded: turned screw 4" in out
    seen = as_json("--text", OUTPUT, cwd=tmp_path)["seen_before"]
    assert [(one["attempt"], one["solved_by"]) for one in seen] == [(1, 4), (3, 4)]
    after = {p: p.read_bytes() for p in (tmp_path / ".loki").rglob("*") if p.is_file()}
    assert after == before, "asking writes nothing"


def test_help_teaches_by_example(tmp_path: Path) -> None:
    code, out, _ = explain("--help", cwd=tmp_path)
    assert code == 0
    for part in ("pytest 2>&1 | loki explain", "loki explain -- make -j4", "Exit codes", "127"):
        assert part in out
